"""Tokenizers of other libraries, with the same ids as in those."""
