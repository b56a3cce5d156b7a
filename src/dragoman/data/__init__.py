"""From files to batches of ids.

    corpus      pairs of texts: two files, a TSV, JSON lines; findings about them
    documents   texts for language models
    labelled    texts with a label each
    tagged      words with a tag each, and the schemes of tagging spans
    made        texts in the package: English - Chinese, figures - words, dialogues
    dataset     texts as ids, in arrays that may be on disk; validation splits
    prepare     the cache of tokenised corpora
    batches     length buckets under a token budget; endless batches that can resume

The tokenizer is known only through a protocol; only modules that make tensors import PyTorch.
"""
