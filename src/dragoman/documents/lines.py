"""Plain text: a line is translated by itself, or with the one that goes on in it.

A line that begins with a small letter goes on with the one before, if that is about full; the line
break is put back by alignment. Line ends, indents and a byte order mark stay.

In all formats a line break is read as a space, but between Chinese or Japanese characters as none.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from dragoman.documents.characters import decoded
from dragoman.documents.document import Document, Segment, one_part
from dragoman.text.marked import Marked, Tag, merged
from dragoman.text.spans import Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
FULL = 40
"""Characters of a line that may go on in the next."""
_MOST = 100
"""Lines that are translated as one."""
_EITHER = "“”‘’…—·"
"""Marks of Chinese and of other languages."""


def at_break(before: str, after: str) -> str:
    """What is read for a line break between two texts."""
    beside = before[-8:].rstrip(_EITHER)[-1:], after[:8].lstrip(_EITHER)[:1]
    return "" if all(map(_needs_no_space, beside)) else " "


def _needs_no_space(char: str) -> bool:
    """Whether it is a character of Chinese or Japanese; Korean has spaces."""
    wide = char > "\u2e7f" and unicodedata.east_asian_width(char) in {"W", "F", "H"}
    kind = unicodedata.category(char)[0] if wide else ""
    return kind in {"L", "N", "P"} and "HANGUL" not in unicodedata.name(char, "")


def unwrapped(pieces: Iterable[tuple[str, str | Tag]]) -> Iterator[tuple[str, str | Tag]]:
    """The pieces with what is read for those that are a line break: a space in what is copied."""
    items = [*pieces]
    shown = [piece if isinstance(piece, str) else piece.shown for _, piece in items]
    whole, end, copied = "".join(shown), 0, None
    for (name, piece), text in zip(items, shown, strict=True):
        start, end = end, end + len(text)
        if isinstance(piece, Tag):
            copied = name if piece.kept else None if name == copied else copied
            yield name, piece
        elif piece == "\n" and copied is None:
            sides = whole[max(0, start - 8) : start].rstrip(), whole[end : end + 8].lstrip()
            yield name, at_break(*sides)
        else:
            yield name, " " if piece == "\n" else piece


def read(data: bytes, name: str) -> Document:
    """The lines of a text. Raises InputError for a damaged one in UTF-16."""
    text, encode = decoded(data, name)
    return one_part(text, encode, _segments(text), name)


def _segments(text: str) -> Iterator[Segment]:
    for number, lines in wrapped(text, map(_stripped, _LINE.finditer(text))):
        yield _joined(text, lines, f"line {number}")


def _stripped(match: re.Match[str]) -> Span:
    line = match[0].strip()
    start = match.start() + match[0].index(line)
    return start, start + len(line)


def wrapped(text: str, lines: Iterable[Span]) -> Iterator[tuple[int, list[Span]]]:
    """The lines that go on in one another, without blank ones; and the number of the first."""
    found, first = list[Span](), 1
    for number, (start, end) in enumerate(lines, start=1):
        full = bool(found) and found[-1][1] - found[-1][0] >= FULL
        if found and not (full and text[start:end][:1].islower() and len(found) < _MOST):
            yield first, found
            found = []
        if start < end:
            first = first if found else number
            found.append((start, end))
    if found:
        yield first, found


def _joined(text: str, lines: Sequence[Span], where: str) -> Segment:
    pieces: list[str | Tag] = [text[slice(*lines[0])]]
    for before, line in pairwise(lines):
        shown = at_break(text[slice(*before)], text[slice(*line)])
        pieces += Tag(text[before[1] : line[0]], shown=shown), text[slice(*line)]
    return Segment(lines[0][0], lines[-1][1], merged(pieces), Marked.written, where)
