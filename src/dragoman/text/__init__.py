"""Text to ids and back.

    tokenizer   the trained tokenizer: encode, decode, save, load; subword sampling on ids
    train       how one is trained: alphabet, BPE or Unigram, bytes for the rest
    spans       where the pieces of a text stand in it
    sentences   an over-long line cut into chunks that join again without loss

Nothing here knows of tensors, files of pairs or models.
"""
