"""Texts that stand in tags, such as the description of a picture: each is a part of its own.

Where one was, the text has its number between two marks, so that it goes with its tag to wherever
that is put.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from dragoman.documents.document import Document, Part, Segment, cut_out
from dragoman.text.marked import Marked

MARKS = [*map(chr, range(0xFDD0, 0xFDF0))]
"""Characters that Unicode keeps for such uses; no translation has them."""
Write = Callable[[Marked], str]


class Asides:
    """The parts of a text that are set aside."""

    def __init__(self, text: str) -> None:
        used = {*text}
        private = map(chr, range(0xE000, 0x110000))  # for a file that has all marks
        self._mark = next(c for c in chain(MARKS, private) if c not in used)
        self._text, self._places = text, list[tuple[int, int, str]]()
        self.parts: list[Part] = []

    def put(
        self,
        raw: str,
        source: Marked,
        write: Write,
        where: str,
        fault: Callable[[Marked], str] = lambda _: "",
    ) -> str:
        """Take a text, which is written so, and return what stands in its place."""
        self.parts.append(Part(raw, (Segment(0, len(raw), source, write, where, fault),)))
        return f"{self._mark}{len(self.parts)}{self._mark}"

    def cut(self, start: int, end: int, source: Marked, write: Write, where: str) -> str:
        """The same for what is at a place of the text, one after the other."""
        mark = self.put(self._text[start:end], source, write, where)
        self._places.append((start, end, mark))
        return mark

    def filled(self, text: str, texts: Sequence[str]) -> str:
        """The text with those of the parts at their places."""
        mark = f"{self._mark}([0-9]+){self._mark}"
        return re.sub(mark, lambda found: texts[int(found[1]) - 1], text)

    def document(
        self,
        segments: Iterable[Segment],
        encode: Callable[[str], bytes],
        left: Iterable[str],
    ) -> Document:
        """The whole, of which these are the other segments; `left` is what is not translated."""
        part = cut_out(self._text, (0, len(self._text)), self._places, segments)

        def assemble(texts: Sequence[str]) -> bytes:
            return encode(self.filled(texts[0], texts[1:]))

        return Document((part, *self.parts), assemble, tuple(left))
