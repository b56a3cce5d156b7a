"""From files to batches of ids.

    files       lines of a text file, plain or compressed, with errors that name the line
    records     JSON lines
    encode      a tokenizer as this room knows it
    dataset     texts as ids, in arrays that may lie on disk
    cache       what was tokenised once and is kept there
    plan        which examples share a batch: length buckets under a token budget
    stream      batches without end that go on exactly where they were saved
    sampling    subword sampling of whole corpora
    tensors     ids as padded tensors

What the tasks learn from, each with its batches:

    corpus, check, prepare, holdout, batch    pairs of texts: two files, a TSV, JSON lines
    documents, packed                         texts for language models
    labelled                                  texts with a label each
    schemes, tagged, tag_batch                words with a tag each
    masked                                    any of these, with hidden tokens
    grammar, numbers                          made pairs: English - Chinese, figures - words

The tokenizer is known by a protocol only; PyTorch is imported where there are batches.
"""
