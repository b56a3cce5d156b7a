"""Plain text: a line is translated by itself, or with the one that goes on in it.

A line that begins with a small letter goes on with the one before, if that is about full; the line
break is put back by alignment. Line ends, indents and a byte order mark stay.
"""

import re
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
        pieces += Tag(text[before[1] : line[0]], shown=" "), text[slice(*line)]
    return Segment(lines[0][0], lines[-1][1], merged(pieces), Marked.written, where)
