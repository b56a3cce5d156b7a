"""Texts that stand in tags, such as the description of a picture: each is a part of its own.

Where one was, the text has its number between two marks, so that it goes with its tag to wherever
that is put.
"""

import re
from collections.abc import Callable, Sequence

from dragoman.documents.document import Part, Segment
from dragoman.text.marked import Marked


class Asides:
    """The parts of a text that were set aside."""

    def __init__(self, text: str) -> None:
        used = {*text}
        self._mark = next(c for c in map(chr, range(0xE000, 0x110000)) if c not in used)
        self.parts: list[Part] = []

    def put(
        self,
        raw: str,
        source: Marked,
        write: Callable[[Marked], str],
        where: str,
        fault: Callable[[Marked], str] = lambda _: "",
    ) -> str:
        """Take a text, which is written so, and return what stands in its place."""
        self.parts.append(Part(raw, (Segment(0, len(raw), source, write, where, fault),)))
        return f"{self._mark}{len(self.parts)}{self._mark}"

    def filled(self, text: str, texts: Sequence[str]) -> str:
        """The text with those of the parts at their places."""
        mark = f"{self._mark}([0-9]+){self._mark}"
        return re.sub(mark, lambda found: texts[int(found[1]) - 1], text)
