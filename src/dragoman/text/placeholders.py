"""Pieces of a vocabulary that stand for copied text: `{name}`, an address, a tag.

They are noncharacters, which Unicode reserves for use inside a program (U+FDD0 and those after it).
A tokenizer treats them like any other characters, so they are encoded, decoded and aligned.
"""

from dragoman.text.tokenizer import Tokenizer

PLACEHOLDERS = "".join(map(chr, range(0xFDD0, 0xFDD8)))
"""All placeholders: the maximum in a line."""


def placeholder_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the id of each placeholder; empty if the tokenizer does not have them all."""
    ids = [each[-1] for each in tokenizer.encode_batch([*PLACEHOLDERS]) if each]
    return ids if [tokenizer.decode([id_]) for id_ in ids] == [*PLACEHOLDERS] else []
