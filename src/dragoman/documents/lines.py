"""Plain text: a line is translated by itself, or with the one that goes on in it.

A line that begins with a small letter goes on with the one before, if that is about full; the line
break is put back by alignment. Line ends, indents and a byte order mark stay.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from dragoman.documents.characters import decoded
from dragoman.documents.document import Document, Segment, one_part
from dragoman.text.marked import Marked, Tag, merged

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_FULL = 40
"""Characters of a line that may go on in the next."""
_MOST = 100
"""Lines that are translated as one."""


def read(data: bytes, name: str) -> Document:
    """The lines of a text. Raises InputError for a damaged one in UTF-16."""
    text, encode = decoded(data, name)
    return one_part(text, encode, _segments(text), name)


def _segments(text: str) -> Iterator[Segment]:
    lines, first = list[tuple[int, int]](), 1
    for number, match in enumerate(_LINE.finditer(text), start=1):
        line = match[0].strip()
        full = bool(lines) and lines[-1][1] - lines[-1][0] >= _FULL
        if lines and not (full and line[:1].islower() and len(lines) < _MOST):
            yield _segment(text, lines, f"line {first}")
            lines = []
        if line:
            first = first if lines else number
            start = match.start() + match[0].index(line)
            lines.append((start, start + len(line)))


def _segment(text: str, lines: list[tuple[int, int]], where: str) -> Segment:
    pieces: list[str | Tag] = [text[slice(*lines[0])]]
    for before, line in pairwise(lines):
        pieces += Tag(text[before[1] : line[0]], shown=" "), text[slice(*line)]
    return Segment(lines[0][0], lines[-1][1], merged(pieces), Marked.written, where)
