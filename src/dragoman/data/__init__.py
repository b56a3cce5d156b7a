"""From files of pairs to batches of ids.

    files       lines of a text file, plain or compressed, with errors that name the line
    corpus      where pairs come from: two files, a TSV, JSON lines
    check       what was found in a corpus: counts and examples
    dataset     pairs as ids, in arrays that may lie on disk
    prepare     a corpus tokenised once and kept on disk
    plan        which pairs share a batch: length buckets under a token budget
    batch       the tensors of one batch, and the endless stream of batches of a training run

The tokenizer is known by a protocol only; PyTorch is imported by ``batch`` alone.
"""
