"""Pieces of a vocabulary that stand for text which is copied: `{name}`, an address, a tag.

They are noncharacters, which Unicode keeps for use inside of a program (U+FDD0 and those after it):
to a tokenizer characters as any other, so that what has them is encoded, decoded and aligned.
"""

from dragoman.text.tokenizer import Tokenizer

PLACEHOLDERS = "".join(map(chr, range(0xFDD0, 0xFDD8)))
"""As many as a line can have."""


def placeholder_ids(tokenizer: Tokenizer) -> list[int]:
    """The id of each placeholder; none for a tokenizer that does not have them all."""
    ids = [each[-1] for each in tokenizer.encode_batch([*PLACEHOLDERS]) if each]
    return ids if [tokenizer.decode([id_]) for id_ in ids] == [*PLACEHOLDERS] else []
