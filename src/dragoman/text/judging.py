"""How a translation used the terms of its text: applied, inflected or missed."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import Literal

from dragoman.text.glossary import Occurrence, fold, in_capitals, is_boundary
from dragoman.text.spans import Span, in_common

Outcome = Literal["applied", "inflected", "missed"]

SAME_STEM, LEAST_STEM, LONGEST_ENDING = 0.7, 4, 4
"""A word is another form of a term's word if both begin with the same letters: at least this share
of the term's word, and at least this many. The rest of either has at most this many letters (a
longer one makes another word: Hand, Handschuh)."""


def judge(found: Sequence[Occurrence], translation: str) -> list[Outcome]:
    """Return the outcome of each term; a place in the translation counts for one term only.

    In a translation in capitals, a form in capitals counts as applied.
    """
    return [outcome for outcome, _ in judged_places(tuple(found), translation)]


@lru_cache(1)  # what was searched for missing terms is judged next
def judged_places(
    found: tuple[Occurrence, ...], translation: str
) -> tuple[tuple[Outcome, Span | None], ...]:
    """Return the outcome and the span in the translation of each term; None if it is missed."""
    is_upper = translation.isupper()
    forms_of = [
        (*each.forms, *(in_capitals(form) for form in each.forms if is_upper)) for each in found
    ]
    outcomes: dict[int, tuple[Outcome, Span]] = {}
    taken = bytearray(len(translation))
    kinds: tuple[tuple[Outcome, Callable[[str], Iterator[Span]]], ...]
    kinds = (("applied", partial(exact, translation)), ("inflected", _Words(translation).akin))
    longest_first = sorted(range(len(found)), key=lambda n: -len(found[n].target))
    for outcome, places in kinds:
        left = dict[str, Iterator[Span]]()  # the places of a form, from its first free one
        for n in longest_first:
            if n in outcomes or (found[n].term.kept and outcome == "inflected"):
                continue
            spans = (s for form in forms_of[n] for s in left.setdefault(form, places(form)))
            if (span := next((s for s in spans if taken.find(1, *s) < 0), None)) is not None:
                outcomes[n] = outcome, span
                taken[slice(*span)] = b"\1" * (span[1] - span[0])
    return tuple(outcomes.get(n, ("missed", None)) for n in range(len(found)))


def exact(text: str, form: str) -> Iterator[Span]:
    """Yield the spans where a form is a whole word."""
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        if is_boundary(text, start) and is_boundary(text, end):
            yield start, end
        start = text.find(form, start + 1)


class _Words:
    """The words of a text, by their first letters."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _words(self) -> list[re.Match[str]]:
        return [*re.finditer(r"\w+(?:[-'’]\w+)*", fold(self._text))]

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        numbers = defaultdict[str, list[int]](list)
        for n, word in enumerate(self._words):
            for size in range(1, min(LEAST_STEM, len(word[0])) + 1):
                numbers[word[0][:size]].append(n)
        return numbers

    def akin(self, form: str) -> Iterator[Span]:
        """Yield the spans of words that begin like those of a form."""
        wanted = fold(form).split()
        for n in self._numbers.get(wanted[0][:LEAST_STEM], ()) if wanted else ():
            some = self._words[n : n + len(wanted)]
            pairs = zip(some, wanted, strict=False)
            if len(some) == len(wanted) and all(_akin(word[0], each) for word, each in pairs):
                yield some[0].start(), some[-1].end()


def _akin(word: str, wanted: str) -> bool:
    """Return whether a word may be another form of the wanted one."""
    common = in_common(word, wanted)
    needed = min(len(wanted), max(LEAST_STEM, SAME_STEM * len(wanted)))
    return common >= needed and max(len(word), len(wanted)) - common <= LONGEST_ENDING
