"""What is tagged: the words of a text, and where they stand in it.

A word is what white space and punctuation part, in Chinese and Japanese each character; or, as a
model has learnt it, any character.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.models.folder import Words

__all__ = ["Place", "join_words", "split_words"]


_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_PATTERNS = {
    "spaced": re.compile(
        rf"[{_UNSPACED}]"
        r"|(?:[^\W\d_]\.){2,}"  # U.S.
        rf"|[^\W{_UNSPACED}]+(?:[.,'’\-/&][^\W{_UNSPACED}]+)*"  # 3.5, don't, twenty-one
        r"|[^\w\s]"
    ),
    "characters": re.compile(r"\S"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A word and the characters of the text that it is."""

    text: str
    start: int
    end: int


def split_words(text: str, words: Words) -> list[Place]:
    """The words of a text, in order; white space is in none."""
    return [Place(m.group(), m.start(), m.end()) for m in _PATTERNS[words].finditer(text)]


def join_words(words: Sequence[str], kind: Words) -> tuple[str, list[Place]]:
    """Words that were given as such as one text, with spaces where words are spaced."""
    gap = " " if kind == "spaced" else ""
    return gap.join(words), list(_placed(words, len(gap)))


def _placed(words: Sequence[str], gap: int) -> Iterator[Place]:
    start = 0
    for word in words:
        yield Place(word, start, start + len(word))
        start += len(word) + gap
