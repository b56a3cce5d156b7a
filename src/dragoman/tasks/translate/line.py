"""A line to translate, and what is known about its translation before a model reads it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.tasks.lines import LinePart
from dragoman.tasks.translate.ids import Ids
from dragoman.tasks.translate.preserved import protected
from dragoman.tasks.translate.removed import Shortened
from dragoman.text.glossary import Glossary, Occurrence, is_spaced
from dragoman.text.items import numbered, sign_of
from dragoman.text.spans import Span, places_in

Kept = Sequence[Span]
"""The spans of a line that are copied."""


@dataclass(frozen=True)
class Line:
    """A line to translate, and the requirements on its translation."""

    text: str
    parts: list[LinePart] | None
    """Its sentences; None for a line that cannot be encoded."""
    prefix: Ids = ()
    """The ids with which the translation begins."""
    glossary: Glossary | None = None
    kept: Kept = ()
    known: str | None = None
    """Its translation, if a memory contains one."""
    placed: Kept = ()
    """The spans of placeholders of the vocabulary, which the model copies by itself."""

    @cached_property
    def terms(self) -> list[Occurrence]:
        """Its glossary terms; a part of a placeholder or a URL is not a term."""
        return [] if self.glossary is None else self.glossary.find(self.text, protected(self.text))

    @property
    def term_places(self) -> set[int]:
        """The positions of the characters of its terms."""
        return places_in((term.start, term.end) for term in self.terms)

    @property
    def free_terms(self) -> list[Occurrence]:
        """The terms without any kept part."""
        kept = places_in(self.kept)
        return [term for term in self.terms if kept.isdisjoint(range(term.start, term.end))]

    def whole_term(self) -> str | None:
        """Return the translation if the line is one glossary term, possibly with punctuation."""
        if len(self.terms) != 1 or self.prefix or self.kept:
            return None
        (term,), text = self.terms, self.text.strip()
        before, found, after = text.partition(term.written)
        same_spacing = is_spaced(term.written) == is_spaced(term.alone)
        if not found or is_readable(before + after) or not (same_spacing or text == found):
            return None
        return f"{before}{term.alone}{after}"

    @cached_property
    def copied(self) -> list[Span]:
        """The spans that are not translated: kept text, URLs, placeholders and the like."""
        return [*self.kept, *protected(self.text)]

    @cached_property
    def rest(self) -> str:
        """The text without `copied`."""
        return Shortened(self.text, self.copied).text

    def texts_of(self, spans: Iterable[Span]) -> list[str]:
        """Return the text at some of its spans."""
        return [self.text[start:end].strip() for start, end in spans]

    @property
    def sign(self) -> list[Span]:
        """The span of its item number, which no model needs to read.

        Empty if the line has none or has a prefix, or if it overlaps a term or other copied text.
        """
        listed, found = numbered(self.text), sign_of(self.text)
        if listed is not None and listed.span in self.kept:
            return [listed.span] * (not self.prefix)
        if found is None or self.prefix:
            return []
        taken = self.term_places | places_in(self.copied)
        return [found] if taken.isdisjoint(range(*found)) else []


def remembered(memory: Mapping[str, str], text: str) -> str | None:
    """Return a memory's translation of a text as one line; None if it has none."""
    found = memory.get(" ".join(text.split()))
    if isinstance(found, str):
        return " ".join(found.splitlines())
    if found is not None:
        raise TypeError(f"The memory has {found!r:.40} for {text[:40]!r}; give a str.")
    return None


def is_readable(text: str) -> bool:
    """Return whether a text contains anything for a model to translate."""
    return any(map(str.isalnum, text))
