"""Plain text: each line is translated separately, or with the line that continues it.

A line that begins with a small letter continues the one before, if that is nearly full; so do lines
of Chinese or Japanese that are as full as any, up to the end of a sentence. Line breaks are put
back by alignment. Line endings, indents and a byte order mark are preserved.

All formats read a line break as a space, but as nothing between Chinese or Japanese characters.
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
"""Minimum width of a line that continues in the next: Latin letters are one wide, Chinese two."""
_MOST = 100
"""Maximum number of lines that are translated as one."""
_RAGGED = 4
"""How much shorter a full line of Chinese may be than another: some marks may not begin a line, and
others may not end one."""
_ENDED = re.compile("[。！？｡…；：][”’」』）】]*$")
_SENTENCE = re.compile("[。｡][”’」』）】]*$|[！？…][”’」』]$")
"""The end of a paragraph, but not of a title."""
_ITEM = re.compile("[【■●◆・]|[（(]?[一二三四五六七八九十０-９]{1,3}[、）)．]|第.{1,3}[条章节]")
"""The start of a line that continues no other."""
_EITHER = "“”‘’…—·"
"""Marks used in Chinese and in other languages."""


def at_break(before: str, after: str) -> str:
    """Return what is read for a line break between two texts."""
    beside = before[-8:].rstrip(_EITHER)[-1:], after[:8].lstrip(_EITHER)[:1]
    return "" if all(map(_needs_no_space, beside)) else " "


def _needs_no_space(char: str) -> bool:
    """Return whether a character is Chinese or Japanese; Korean has spaces."""
    wide = char > "\u2e7f" and unicodedata.east_asian_width(char) in {"W", "F", "H"}
    kind = unicodedata.category(char)[0] if wide else ""
    return kind in {"L", "N", "P"} and "HANGUL" not in unicodedata.name(char, "")


def unwrapped(pieces: Iterable[tuple[str, str | Tag]]) -> Iterator[tuple[str, str | Tag]]:
    """Yield the pieces with each line break as it is read; in copied text, that is a space."""
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
    """Read the lines of a text. Raises InputError for damaged UTF-16."""
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
    """Return the width of the widest line among those that may continue as Chinese does."""
    return max((width(line) for line in lines if not at_break(line, "。")), default=0)


def width(text: str) -> int:
    """Return the width of a text in Latin letters: wide ones have two bytes in this encoding."""
    return len(text.encode("gb18030", "replace"))


def goes_on(before: str, after: str, widest: int) -> bool:
    """Return whether a Chinese or Japanese line continues in the next, given the largest width."""
    is_open = not (at_break(before, after) or _ENDED.search(before) or _ITEM.match(after))
    return is_open and width(before) >= max(FULL, widest - _RAGGED)


def wrapped(text: str, lines: Iterable[Span], widest: int) -> Iterator[tuple[int, list[Span]]]:
    """Yield the lines that continue one another, without blank ones, and the first one's number."""
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
    """Yield the lines as one, with the first number; titles, which end no sentence, stay apart."""
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
