"""Edited texts, and translations whose spans follow the edits."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from dragoman.tasks.results import Translation
from dragoman.text.spans import Span


class Edit(NamedTuple):
    """The replacement of a span of a text; the span or the letters may be empty."""

    start: int
    end: int
    letters: str


class Edited:
    """A text after edits, which are sorted and do not overlap."""

    def __init__(self, before: str, edits: Sequence[Edit] = ()) -> None:
        self.before, self.edits = before, edits
        self.written = list[Span]()
        """The span of the letters of each edit."""
        pieces, end, size = list[str](), 0, 0
        for edit in edits:
            pieces += before[end : edit.start], edit.letters
            size += edit.start - end + len(edit.letters)
            end = edit.end
            self.written.append((size - len(edit.letters), size))
        self.text = "".join([*pieces, before[end:]])
        self._starts = [edit.start for edit in edits]
        self._ends = [edit.end for edit in edits]

    @cached_property
    def undone(self) -> "Edited":
        """The original text, as edits of the new one."""
        pairs = zip(self.edits, self.written, strict=True)
        return Edited(self.text, [Edit(*now, self.before[e.start : e.end]) for e, now in pairs])

    def moved(self, span: Span) -> Span:
        """Return the new place of a span of the original text, without insertions at its ends.

        A place within replaced text moves to the start or the end of the replacement.
        """
        done = bisect_right(self._ends, span[0])
        is_inside = done < len(self.edits) and self._starts[done] <= span[0]
        start = self.written[done][0] if is_inside else self._after(span[0], done)
        return start, self._after(span[1], bisect_left(self._starts, span[1]))

    def around(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the new places of sorted spans, including an insertion at an end of one."""
        last = 0
        for start, stop in spans:
            first = max(last, self._after(start, bisect_left(self._starts, start)))
            done = max(bisect_left(self._starts, stop), bisect_right(self._ends, stop))
            last = self._after(stop, done)
            yield first, last

    def _after(self, place: int, done: int) -> int:
        """Return the new place of one that `done` edits precede or contain."""
        if not done:
            return place
        return self.written[done - 1][1] + max(0, place - self._ends[done - 1])


AS_IT_WAS = Edited("")
"""No edits, so no place moves."""


def rewritten(translation: Translation, text: Edited, line: Edited = AS_IT_WAS) -> Translation:
    """Return a translation with its text edited, and possibly its line.

    `line` contains the edits that turn the line that was read into the original one.
    """
    read = line.around((a, b) for a, b, _, _ in translation.sentences)
    made = text.around((c, d) for _, _, c, d in translation.sentences)
    found = replace(
        translation,
        text=text.text,
        sentences=tuple((*one, *other) for one, other in zip(read, made, strict=True)),
        copied=tuple(
            (*line.moved((a, b)), *text.moved((c, d))) for a, b, c, d in translation.copied
        ),
    )
    return found.aligned_by(
        lambda: tuple(each.moved(line.moved, text.moved) for each in translation.alignments)
    )
