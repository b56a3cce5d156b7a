"""A finished translation in which parts of the text are replaced, and all places moved with it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.tasks.results import Translation
from dragoman.text.spans import Span


class Edit(NamedTuple):
    """What is written in place of a part of a text, either of which may be empty."""

    start: int
    end: int
    letters: str


def rewritten(translation: Translation, edits: Sequence[Edit]) -> tuple[Translation, list[Span]]:
    """The translation after edits that are in order and apart, and where the letters of each stand.

    What is put in between two places is of neither; a place within what is replaced goes to its
    beginning or its end.
    """
    text, pieces, end, size = translation.text, list[str](), 0, 0
    written = list[Span]()
    for edit in edits:
        pieces += text[end : edit.start], edit.letters
        size += edit.start - end + len(edit.letters)
        end = edit.end
        written.append((size - len(edit.letters), size))

    def after(place: int, done: int) -> int:
        """Where a place is that so many edits precede, or are around."""
        return written[done - 1][1] + max(0, place - edits[done - 1].end) if done else place

    def moved(span: Span) -> Span:
        done = sum(edit.end <= span[0] for edit in edits)
        is_inside = done < len(edits) and edits[done].start <= span[0]
        start = written[done][0] if is_inside else after(span[0], done)
        return start, after(span[1], sum(edit.start < span[1] for edit in edits))

    sentences, last = list[tuple[int, int, int, int]](), 0
    for a, b, start, stop in translation.sentences:  # what is put in at an end is of the sentence
        first = max(last, after(start, sum(edit.start < start for edit in edits)))
        last = after(stop, sum(edit.start <= stop for edit in edits))
        sentences.append((a, b, first, last))
    found = replace(
        translation,
        text="".join([*pieces, text[end:]]),
        sentences=tuple(sentences),
        copied=tuple((a, b, *moved((c, d))) for a, b, c, d in translation.copied),
    )
    found.aligned_by(
        lambda: tuple(each.moved(lambda span: span, moved) for each in translation.alignments)
    )
    return found, written
