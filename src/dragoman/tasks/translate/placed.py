"""A line in which placeholders stand for text that is copied, and the way back from these.

For models that have learned placeholders (`dragoman.tasks.translate.placing`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice

from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.preserved import PRESERVED, differences, emoji, protected
from dragoman.tasks.translate.removed import words_copied
from dragoman.text.placeholders import PLACEHOLDERS
from dragoman.text.spans import Span, trimmed_spans


@dataclass(frozen=True)
class Placed:
    """A line with placeholders."""

    line: str
    """Without them."""
    spans: tuple[Span, ...] = ()
    """What they stand for, in order."""

    @classmethod
    def of(cls, line: str, kept: Iterable[Span]) -> "Placed":
        """Replace what is kept, and URLs, addresses, tags and placeholders, the vocabulary's too.

        A line with more of them than there are placeholders has none.
        """
        found, spans = {*protected(line)} - {*emoji(line)}, list[Span]()
        found |= {(n, n + 1) for n, char in enumerate(line) if char in PLACEHOLDERS}
        for start, end in sorted({*found, *filter(None, trimmed_spans(line, kept))}):
            if spans and start < spans[-1][1]:
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((start, end))
        return cls(line, tuple(spans) if len(spans) <= len(PLACEHOLDERS) else ())

    @cached_property
    def text(self) -> str:
        """The line with them."""
        text, end = "", 0
        for (start, stop), char in zip(self.spans, PLACEHOLDERS, strict=False):
            text, end = text + self.line[end:start] + char, stop
        return text + self.line[end:]

    @property
    def places(self) -> list[Span]:
        """Where in the text they are."""
        return [(n, n + 1) for n, char in enumerate(self.text) if self._stands_for.get(char)]

    def restored(self, translation: Translation) -> Translation:
        """The translation with what they stand for, and without any that the line does not have."""
        written = self._written(translation.text)
        whole = "".join(written)
        src, tgt = _places(self._written(self.text)), _places(written)
        copied = [(src[a], src[b], tgt[c], tgt[d]) for a, b, c, d in translation.copied]
        known = {n for start, end, _, _ in translation.copied for n in range(start, end)}
        for n, char in enumerate(translation.text):
            if written[n] and char in self._stands_for and self.text.index(char) not in known:
                copied += words_copied(written[n], src[self.text.index(char)], tgt[n])
        differ = differences(self.line, whole)
        sentences = ((src[a], src[b], tgt[c], tgt[d]) for a, b, c, d in translation.sentences)
        return replace(
            translation,
            text=whole,
            tokens=self._shown(translation.tokens),
            flags=(
                *(flag for flag in translation.flags if flag not in PRESERVED),
                *(flag for flag in PRESERVED if flag in differ),
            ),
            sentences=tuple(sentences),
            copied=tuple(copied),
            alternatives=tuple(map(self.restored, translation.alternatives)),
        ).aligned_by(lambda: tuple(self._moved(each, src, tgt) for each in translation.alignments))

    def _moved(self, alignment: Alignment, src: list[int], tgt: list[int]) -> Alignment:
        """Tokens and their places in the line, and in the translation with it."""
        moved = alignment.moved(lambda s: (src[s[0]], src[s[1]]), lambda t: (tgt[t[0]], tgt[t[1]]))
        tokens = self._shown(moved.src_tokens), self._shown(moved.tgt_tokens)
        return replace(moved, src_tokens=tokens[0], tgt_tokens=tokens[1])

    def _shown(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Tokens with the text that is written for placeholders."""
        written = iter(self._written("".join(tokens)))
        return tuple("".join(islice(written, len(token))) for token in tokens)

    @cached_property
    def _stands_for(self) -> dict[str, str]:
        """The text of each placeholder; none for those of which the line has none."""
        texts = [self.line[start:end] for start, end in self.spans]
        absent = {char: "" for char in PLACEHOLDERS if char not in self.text}
        return absent | dict(zip(PLACEHOLDERS, texts, strict=False))

    def _written(self, text: str) -> list[str]:
        """What is written for each character of a text; for a placeholder at its first place."""
        first = {char: text.find(char) for char in self._stands_for}
        return [
            self._stands_for[char] * (first[char] == n) if char in first else char
            for n, char in enumerate(text)
        ]


def _places(written: list[str]) -> list[int]:
    """Where each begins, and where the last one ends."""
    return [*accumulate(map(len, written), initial=0)]
