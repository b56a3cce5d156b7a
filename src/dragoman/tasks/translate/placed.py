"""Lines with placeholders for copied text, and the text put back into their translations.

For models that have learned placeholders (`dragoman.tasks.translate.placing`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.preserved import PRESERVED, differences, of_kind, protected
from dragoman.tasks.translate.removed import words_copied
from dragoman.tasks.translate.rewriting import Edit, Edited, rewritten
from dragoman.text.placeholders import PLACEHOLDERS
from dragoman.text.spans import Span, as_one, places_in, trimmed_spans


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
