"""From files to batches of ids.

    corpus      pairs of texts: two files, a TSV, JSON lines; what is found in them
    documents   texts for language models
    labelled    texts with a label each
    tagged      words with a tag each, and the schemes of tagging spans
    made        what comes with the package: English - Chinese, figures - words, dialogues
    dataset     texts as ids, in arrays that may be on disk; what is kept for validation
    prepare     what was tokenised once and is kept there
    batches     length buckets under a token budget; batches without end that can resume

The tokenizer is known by a protocol only; PyTorch is imported where there are batches.
"""
