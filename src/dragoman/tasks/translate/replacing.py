"""Terms inserted into a finished translation, in place of what the model wrote for them.

The alignment determines these words. If there are none, the term follows the word that comes from
the source before it. The search ignores terms and is as fast as without them, but the words around
a term were written for another one and may not agree with it. Song et al. (2020,
"Alignment-Enhanced Transformer for Constraining NMT") write a term as soon as the alignment reaches
it. In greedy search that lost 1 to 2 BLEU where replacing gained as much: the text before a term is
written in either case, and the text after it was better when written without the term.

Axes as in the package; U words of a text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.preserved import protected
from dragoman.tasks.translate.removed import whole_words
from dragoman.tasks.translate.rewriting import Edit, Edited, rewritten
from dragoman.text.glossary import Occurrence, in_capitals, is_spaced
from dragoman.text.judging import judged_places
from dragoman.text.spans import Span, as_one, in_common, places_in

LEAST = 0.1
"""Minimum share of a word's attention on a term for the word to be replaced."""
MORE = 0.4
"""The same for adjacent words, which are replaced with it; 0.6 gives the same BLEU."""
_REST = re.compile(r"(?:['’]\w+)*")
"""What continues a word without a space: `l'homme`."""


class _Put(NamedTuple):
    """A term, and the edit that writes it."""

    edit: Edit
    form: str
    term: Occurrence


def replaced(
    translation: Translation,
    found: Sequence[Occurrence],
    *,
    begun: int = 0,
    kept: Sequence[str] = (),
) -> Translation:
    """Return the translation with the terms that it lacks.

    Nothing is replaced in its first `begun` characters, in `kept` and other copied texts, or in
    other terms. The scores remain those of what the model wrote.
    """
    text = translation.text
    judged = [*zip(found, judged_places(tuple(found), text), strict=True)]
    lacking = [(term, place) for term, (outcome, place) in judged if outcome != "applied"]
    if not lacking:
        return translation
    taken = [(0, begun), *protected(text)]
    taken += [place for _, (outcome, place) in judged if place and outcome == "applied"]
    taken += [(start, end) for _, _, start, end in translation.copied]
    taken += [each.span() for one in kept for each in re.finditer(re.escape(one), text)]
    begins = {
        next((n for n in range(start, end) if text[n].isalpha()), start)
        for _, _, start, end in translation.sentences
    }
    parts, fixed = translation.alignments, places_in(taken)
    lacking = [each for each in lacking if fixed.isdisjoint(range(*(each[1] or (0, 0))))]
    puts = [put for part in parts for put in _puts(part, text, lacking, fixed, begins)]
    if not puts:
        return translation
    puts.sort(key=lambda put: put.edit[:2])
    edited = Edited(text, [each.edit for each in puts])
    result = rewritten(translation, edited)
    copied = list(result.copied)
    for each, (start, _) in zip(puts, edited.written, strict=True):
        place = start + each.edit.letters.index(each.form)
        copied.append((each.term.start, each.term.end, place, place + len(each.form)))
    return replace(result, copied=tuple(copied)).aligned_as(result)


def _puts(
    part: Alignment,
    text: str,
    lacking: Sequence[tuple[Occurrence, Span | None]],
    fixed: set[int],
    begins: set[int],
) -> Iterator[_Put]:
    """Yield the edits that write the lacking terms of this part of the source.

    Another form of a term, whose span comes with it, stays if it is aligned to the term's source.
    """
    words, of_word = _words(part, text, fixed)
    read = [(n, span) for n, span in enumerate(part.src_spans) if span is not None]
    if not words or not read:
        return

    def shares(src: slice) -> list[float]:
        """Return the attention of each word to these source tokens."""
        share_T = part.weights_TS[:, src].sum(1).tolist()
        return [sum(share_T[n] for n in some) / max(1, len(some)) for some in of_word]

    free, stops = {*range(len(words))}, [end for _, end in words]
    found, rest = [], list[tuple[Occurrence, int]]()
    whole = read[0][1][0], read[-1][1][1]
    for term, place in lacking:
        src = term.start, term.end
        on = [n for n, span in read if _overlap(span, src)] if _overlap(whole, src) else []
        if not on:
            continue
        share_U = shares(slice(on[0], on[-1] + 1))
        akin = [n for n, word in enumerate(words) if place and _overlap(word, place)]
        if max((share_U[n] for n in akin), default=0) >= LEAST:
            free.difference_update(akin)
        else:
            found.append((term, on[0], share_U))
    for term, first, share_U in sorted(found, key=lambda each: -max(each[2])):
        best = max(sorted(free), key=share_U.__getitem__, default=0)
        if best not in free or share_U[best] < LEAST:
            rest.append((term, first))
            continue
        run = _run(best, words, text, {n for n in free if share_U[n] >= MORE})
        free.difference_update(run)
        start, end = words[run[0]][0], words[run[-1]][1]
        stops[run[0] : run[-1] + 1] = [end] * len(run)
        form = _form(term, text[start:end], begins=start in begins)
        yield _Put(Edit(start, end, form), form, term)
    for term, first in rest:
        before_U = shares(slice(first - 1, first)) if first else [0.0]
        after = stops[before_U.index(max(before_U))] if first else None
        yield _inserted(term, text, words[0][0], after)


def _words(part: Alignment, text: str, fixed: set[int]) -> tuple[list[Span], list[list[int]]]:
    """Return the words outside of fixed places, and the tokens of each.

    Words joined by a hyphen are one.
    """
    tokens = [(n, span) for n, span in enumerate(part.tgt_spans) if span is not None]
    whole = whole_words(text, [span for _, span in tokens])
    whole = (word for word in whole if any(map(str.isalnum, text[slice(*word)])))
    joined = as_one(whole, lambda one, other: text[one[1] : other[0]] == "-")
    words = [word for word in joined if fixed.isdisjoint(range(*word))]
    ends, of_word = [end for _, end in words], [list[int]() for _ in words]
    for n, (start, end) in tokens:
        word = bisect_right(ends, start)
        if word < len(words) and words[word][0] < end:
            of_word[word].append(n)
    return words, of_word


def _run(best: int, words: Sequence[Span], text: str, more: set[int]) -> range:
    """Return a word and adjacent words from the same term, up to any punctuation."""

    def is_next(n: int) -> bool:
        return not text[words[n][1] : words[n + 1][0]].strip()

    first = last = best
    while first - 1 in more and is_next(first - 1):
        first -= 1
    while last + 1 in more and is_next(last):
        last += 1
    return range(first, last + 1)


def _inserted(term: Occurrence, text: str, start: int, after: int | None) -> _Put:
    """Insert a term without a word of its own after the word that ends there, or at the start."""
    form = _form(term, "", begins=False)
    if after is None:
        return _Put(Edit(start, start, form + " " * is_spaced(text[start])), form, term)
    rest = _REST.match(text, after)
    end = after if rest is None else rest.end()
    return _Put(Edit(end, end, " " * is_spaced(form) + form), form, term)


def _form(term: Occurrence, was: str, *, begins: bool) -> str:
    """Return the form that ends most like what it replaces, capitalized at a sentence start."""
    if term.term.kept:
        return term.written
    forms = (term.target, *term.term.forms)
    form = max(forms, key=lambda each: in_common(each[::-1], was[::-1]))
    if term.is_in_capitals and was.isupper():
        return in_capitals(form)
    return form[:1].upper() + form[1:] if begins and was[0].isupper() else form


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
