"""The look of a word as numbers: its form, its shape, its prefixes and its suffixes.

Named-entity recognition has used such features for thirty years (Ratinov and Roth, 2009); each is a
row of a table, found by a hash, as in spaCy's encoder (Honnibal's Bloom embeddings).
"""

import re
import zlib
from functools import lru_cache

COUNT = 10
"""Number of features per word."""


@lru_cache(maxsize=100_000)
def word_features(word: str, rows: int) -> tuple[int, ...]:
    """Return `COUNT` numbers from 1 to `rows - 1`, the same on every machine.

    They encode the form, the lower-case form, the shape, and of the lower-case form the first 2, 3
    and 4 characters and the last 1, 2, 3 and 4.
    """
    small = word.lower()
    beginnings, ends = (small[:n] for n in (2, 3, 4)), (small[-n:] for n in (1, 2, 3, 4))
    features = enumerate((word, small, word_shape(word), *beginnings, *ends))
    return tuple(
        1 + zlib.crc32(f"{n} {text}".encode(errors="replace")) % (rows - 1) for n, text in features
    )


def word_shape(word: str) -> str:
    """Return capitals as X, lower case as x, digits as d, with runs shortened to two."""
    kinds = "".join(
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1{2,}", r"\1\1", kinds)
