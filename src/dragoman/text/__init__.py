"""Text to ids and back.

    tokenizer   the trained tokenizer: encode, decode, save, load; subword sampling on ids
    train       training a tokenizer: alphabet, BPE or Unigram, bytes for the rest
    spans       the positions of pieces in their text
    sentences   splitting over-long lines into chunks that join again without loss
    detection   the language of a text
    marked      text with markup; `putback` puts its tags into a translation
    glossary    terms and their translations; `judging` checks how a translation used them
    tags, placeholders   tokens that select a language, and that stand for copied text
    limits, unreadable   what third-party tokenizers may do, and what they cannot encode

Nothing here depends on tensors, files of pairs or models.
"""
