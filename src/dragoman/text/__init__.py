"""Text to ids and back.

    tokenizer   the trained tokenizer: encode, decode, save, load; subword sampling on ids
    train       how one is trained: alphabet, BPE or Unigram, bytes for the rest
    spans       where the pieces of a text stand in it
    sentences   an over-long line cut into chunks that join again without loss
    detection   the language of a text
    marked      text with markup; `putback` puts its tags into a translation
    glossary    terms and their translations; `judging` tells what became of them
    tags, placeholders   pieces that ask for a language, and that stand for what is copied
    limits, unreadable   what tokenizers from elsewhere may do, and what they cannot encode

Nothing here knows of tensors, files of pairs or models.
"""
