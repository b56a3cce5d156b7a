"""From files to batches of ids.

    corpus      pairs of texts: two files, a TSV, JSON lines; what is found in them
    documents   texts for language models
    labelled    texts with a label each
    schemes, tagged    words with a tag each
    made, numbers   pairs that come with the package: English - Chinese, figures - words
    dataset     texts as ids, in arrays that may lie on disk
    prepare     what was tokenised once and is kept there
    holdout     what is kept for validation
    batches     length buckets under a token budget; batches without end that can resume

The tokenizer is known by a protocol only; PyTorch is imported where there are batches.
"""
