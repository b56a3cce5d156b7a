"""Plain text: a line is translated by itself, or with the one that goes on in it.

A line that begins with a small letter goes on with the one before, if that is about full; so do
lines of Chinese or Japanese that are as full as any, up to the end of a sentence. The line break is
put back by alignment. Line ends, indents and a byte order mark stay.

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
"""Characters of a line that may go on in the next; of Chinese half as many, which are as wide."""
_MOST = 100
"""Lines that are translated as one."""
_RAGGED = 4
"""By how much a full line of Chinese may be shorter than another: no line begins with some marks,
and none ends with others."""
_ENDED = re.compile("[。！？｡…；：][”’」』）】]*$")
_SENTENCE = re.compile("[。｡][”’」』）】]*$|[！？…][”’」』]$")
"""What a paragraph ends with, but no title."""
_ITEM = re.compile("[【■●◆・]|[（(]?[一二三四五六七八九十０-９]{1,3}[、）)．]|第.{1,3}[条章节]")
"""How a line begins that goes on with no other."""
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
    widest = widest_of(text[slice(*_stripped(line))] for line in _LINE.finditer(text))
    found = wrapped(text, map(_stripped, _LINE.finditer(text)), widest)
    segments = (_joined(text, lines, f"line {number}") for number, lines in found)
    return one_part(text, encode, segments, name)


def _stripped(match: re.Match[str]) -> Span:
    line = match[0].strip()
    start = match.start() + match[0].index(line)
    return start, start + len(line)


def widest_of(lines: Iterable[str]) -> int:
    """How wide the widest line is of those that may go on in others as Chinese does."""
    return max((width(line) for line in lines if not at_break(line, "。")), default=0)


def width(text: str) -> int:
    """How wide a text is, in letters of Latin: in this encoding a wide one has two bytes."""
    return len(text.encode("gb18030", "replace"))


def goes_on(before: str, after: str, widest: int) -> bool:
    """Whether a line of Chinese or Japanese goes on in the next, the widest of all being so."""
    is_open = not (at_break(before, after) or _ENDED.search(before) or _ITEM.match(after))
    return is_open and width(before) >= max(FULL, widest - _RAGGED)


def wrapped(text: str, lines: Iterable[Span], widest: int) -> Iterator[tuple[int, list[Span]]]:
    """The lines that go on in one another, without blank ones; and the number of the first."""
    found, first = list[Span](), 1
    for number, (start, end) in enumerate(lines, start=1):
        before, line = text[slice(*found[-1])] if found else "", text[start:end]
        is_next = line[:1].islower() and len(before) >= FULL
        is_next = len(found) < _MOST and (is_next or goes_on(before, line, widest))
        if found and not is_next:
            yield from _sure(text, first, found)
            found = []
        if start < end:
            first = first if found else number
            found.append((start, end))
    if found:
        yield from _sure(text, first, found)


def _sure(text: str, first: int, lines: list[Span]) -> Iterator[tuple[int, list[Span]]]:
    """The lines as one, and the number of the first; but titles, which end no sentence, are not."""
    begun, is_whole = 0, _SENTENCE.search(text[slice(*lines[-1])])
    for number, (start, _) in enumerate((*lines[1:], (len(text),) * 2), start=1):
        if number == len(lines) or not (is_whole or text[start].islower()):
            yield first + begun, lines[begun:number]
            begun = number


def _joined(text: str, lines: Sequence[Span], where: str) -> Segment:
    pieces: list[str | Tag] = [text[slice(*lines[0])]]
    for before, line in pairwise(lines):
        shown = at_break(text[slice(*before)], text[slice(*line)])
        pieces += Tag(text[before[1] : line[0]], shown=shown), text[slice(*line)]
    return Segment(lines[0][0], lines[-1][1], merged(pieces), Marked.written, where)
