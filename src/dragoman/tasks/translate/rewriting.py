"""Edited texts, and translations whose spans follow the edits.

For models that have learned placeholders (`dragoman.tasks.translate.placing`), copied text is
replaced by them in the line, and put back into its translation.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.preserved import PRESERVED, differences, of_kind, protected
from dragoman.text.placeholders import PLACEHOLDERS
from dragoman.text.spans import Span, as_one, places_in, trimmed_spans

Copied = tuple[int, int, int, int]
"""A span of the line and its span in the text, as in `Translation.copied`."""


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


def words_copied(text: str, src: int, tgt: int) -> list[Copied]:
    """Return each word's span in the line and in the text, for text copied from `src` to `tgt`.

    Each word is separate: tags around one of them are not around the others.
    """
    words = (each.span() for each in re.finditer(r"\S+", text))
    return [(src + a, src + b, tgt + a, tgt + b) for a, b in words]


class Placed:
    """A line with placeholders."""

    def __init__(self, line: str, spans: Sequence[Span] = ()) -> None:
        """Replace `spans`, in order, with placeholders."""
        pairs = zip(spans, PLACEHOLDERS, strict=False)
        self.line, self.spans = line, spans
        self._read = Edited(line, [Edit(*span, char) for span, char in pairs])
        self.text = self._read.text
        """The line with placeholders."""
        self.places = self._read.written
        """The spans of the placeholders in the text."""
        self._stands_for = {char: "" for char in PLACEHOLDERS if char not in self.text}
        self._stands_for |= {edit.letters: line[edit.start : edit.end] for edit in self._read.edits}

    @classmethod
    def of(cls, line: str, kept: Sequence[Span]) -> "Placed":
        """Replace kept text, URLs, addresses, tags and placeholders, also those of the vocabulary.

        Nothing is replaced if there are more of them than placeholders.
        """
        found = {*protected(line)} - {*of_kind("symbols", line)}
        found |= {(n, n + 1) for n, char in enumerate(line) if char in PLACEHOLDERS}
        found.update(filter(None, trimmed_spans(line, kept)))
        spans = [*as_one(found, lambda one, other: other[0] < one[1])]
        return cls(line, spans if len(spans) <= len(PLACEHOLDERS) else ())

    def restored(self, translation: Translation) -> Translation:
        """Return the translation with the text of the placeholders, and without surplus ones."""
        text, line = self._written(translation.text), self._read.undone
        found = rewritten(translation, text, line)
        copied, known = [*found.copied], places_in((a, b) for a, b, *_ in translation.copied)
        for edit, (start, _) in zip(text.edits, text.written, strict=True):
            place = self.text.find(translation.text[edit.start])
            if edit.letters and place not in known:
                copied += words_copied(edit.letters, line.moved((place, place + 1))[0], start)
        differ = differences(self.line, found.text)
        return replace(
            found,
            tokens=self._shown(translation.tokens),
            flags=(
                *(flag for flag in translation.flags if flag not in PRESERVED),
                *(flag for flag in PRESERVED if flag in differ),
            ),
            copied=tuple(copied),
        ).aligned_by(lambda: tuple(map(self._aligned, found.alignments)))

    def _aligned(self, alignment: Alignment) -> Alignment:
        tokens = self._shown(alignment.src_tokens), self._shown(alignment.tgt_tokens)
        return replace(alignment, src_tokens=tokens[0], tgt_tokens=tokens[1])

    def _shown(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Return tokens with the text that replaces placeholders."""
        written = self._written("".join(tokens))
        spans = pairwise(accumulate(map(len, tokens), initial=0))
        return tuple(written.text[slice(*written.moved(span))] for span in spans)

    def _written(self, text: str) -> Edited:
        """Replace the first occurrence of each placeholder with its text; remove the others."""
        return Edited(
            text,
            [
                Edit(n, n + 1, self._stands_for[char] * (text.find(char) == n))
                for n, char in enumerate(text)
                if char in self._stands_for
            ],
        )
