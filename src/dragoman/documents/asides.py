"""Texts that stand in tags, such as the description of a picture: each is a part of its own.

Where one was, the text has its number between two marks, so that it goes with its tag to wherever
that is put.
"""

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import StringIO
from itertools import chain

from dragoman.documents.characters import Encode
from dragoman.documents.document import Document, Part, Segment, Segments, WrittenPart, cut_out

MARKS = [*map(chr, range(0xFDD0, 0xFDF0))]
"""Characters that Unicode keeps for such uses; no translation has them."""


def unused(text: str) -> str:
    """A character for marks that a text does not have."""
    used = {*text}
    private = map(chr, range(0xE000, 0x110000))  # for a file that has all marks
    return next(c for c in chain(MARKS, private) if c not in used)


class Asides:
    """The parts of a text that are set aside, one behind the other."""

    def __init__(self, text: str, name: str) -> None:
        """`name` is that of the document, for messages."""
        self._mark = unused(text)
        self._text, self._starts, self._ends = text, array("I"), array("I")
        self._raw, self._segments = StringIO(), Segments(name)

    def put(self, raw: str, segment: Segment) -> str:
        """Take a text, which is written so, and return what stands in its place.

        Where the segment begins and ends is not looked at.
        """
        start = self._raw.tell()
        self._raw.write(raw)
        self._segments.append(replace(segment, start=start, end=self._raw.tell()))
        return self._marked(len(self._segments) - 1)

    def _marked(self, number: int) -> str:
        return f"{self._mark}{number}{self._mark}"

    def cut(self, segment: Segment) -> str:
        """The same for what is at its place of the text, one after the other."""
        self._starts.append(segment.start)
        self._ends.append(segment.end)
        return self.put(self._text[segment.start : segment.end], segment)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def part(self) -> Part:
        """All that is set aside."""
        return Part(self._raw.getvalue(), self._segments)

    def filled(self, pieces: Iterable[str], written: WrittenPart) -> Iterator[str]:
        """Pieces of the text with what is set aside at its places."""
        mark = re.compile(f"{self._mark}([0-9]+){self._mark}")
        return (mark.sub(lambda found: written.at(int(found[1])), piece) for piece in pieces)

    def document(self, segments: Segments, encode: Encode, left: Iterable[str]) -> Document:
        """The whole, of which these are the other segments; `left` is what is not translated."""
        marks = map(self._marked, range(len(self._starts)))
        cuts = zip(self._starts, self._ends, marks, strict=True)
        self._text, moved = cut_out(self._text, (0, len(self._text)), cuts)
        segments.move(moved)
        parts = Part(self._text, segments), self.part
        return Document(parts, lambda each: encode(self.filled(*each)), tuple(left))
