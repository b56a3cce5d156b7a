"""Text to ids and back.

    tokenizer   the trained tokenizer: encode, decode, save, load
    train       how one is trained: alphabet, BPE or Unigram, bytes for the rest
    splits      every piece taken apart: subword sampling without tokenising again
    sentences   an over-long line cut into chunks that join again without loss

Nothing here knows of tensors, files of pairs or models.
"""
