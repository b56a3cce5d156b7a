"""Which texts a translation is to have, where their sources are, and what became of them.

They are terms of a glossary, and text that is kept: placeholders, code, what a document marks as
not to be translated. The search is told which ids they are (`dragoman.decode.constrained`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index

import torch

from dragoman.decode.constrained import Edges, Term
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.tasks.results import TermUse
from dragoman.tasks.translate.ids import Source
from dragoman.tasks.translate.linking import read_spans
from dragoman.text.glossary import Occurrence, is_boundary, is_spaced, joins
from dragoman.text.judging import exact, judge
from dragoman.text.sentences import SPACED_ENDS, UNSPACED_ENDS, sentences_of
from dragoman.text.spans import Span
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class WantedText:
    """What the translation of a line is to have, for these characters of the line."""

    start: int
    end: int
    forms: tuple[str, ...]
    """One of them."""
    glued: bool = False
    """Whether it follows a mark without a space, such as a bracket."""


def wanted_of(line: str, found: Iterable[Occurrence], kept: Iterable[Span]) -> list[WantedText]:
    """What is kept of a line, and its terms outside of that, in order."""

    def wanted(start: int, end: int, forms: tuple[str, ...]) -> WantedText:
        before = line[:start][-1:]
        return WantedText(
            start, end, forms, bool(before) and not (before.isspace() or before.isalnum())
        )

    copied = [wanted(start, end, (line[start:end].strip(),)) for start, end in kept]
    terms = [wanted(each.start, each.end, each.forms) for each in found]
    free = [t for t in terms if all(t.end <= c.start or c.end <= t.start for c in copied)]
    return sorted([*copied, *free], key=lambda each: each.start)


def with_terms(
    source: Source, spans: Sequence[Span | None], wanted: Iterable[WantedText], tokenizer: Tokenizer
) -> Source:
    """The source with what is wanted of it; `spans` are the characters of each of its ids.

    What no id stands for, or the target's vocabulary has no letters for, is left out.
    """
    terms = []
    for each in wanted:
        on = [n for n, s in enumerate(spans) if s and s[0] < each.end and each.start < s[1]]
        forms = _ids_of(each, tokenizer)
        if on and forms:
            terms.append(Term(on[0], on[-1] + 1, forms))
    return replace(source, terms=tuple(terms))


def terms_of_parts(
    source: Source, texts: Sequence[str], tokenizer: Tokenizer
) -> Iterator[tuple[Term, ...]]:
    """Yield the terms of each text that a source is cut into; a term that is cut has no part."""
    (whole,) = read_spans(source.text, 0, [source.text], tokenizer)
    for spans in read_spans(source.text, 0, texts, tokenizer):
        shown = [(n, span) for n, span in enumerate(spans) if span]
        found = list[Term]()
        for term in source.terms:
            seen = [span for span in whole[term.start : term.end] if span]
            if not seen:
                continue
            start, end = seen[0][0], seen[-1][1]
            on = [n for n, span in shown if span[0] < end and start < span[1]]
            if on and shown[0][1][0] <= start and end <= shown[-1][1][1]:
                found.append(replace(term, start=on[0], end=on[-1] + 1))
        yield tuple(found)


def _ids_of(wanted: WantedText, tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """The ids of forms as words begin, and as they go on where no space precedes them."""
    close = wanted.forms if wanted.glued else [f for f in wanted.forms if not is_spaced(f)]
    cut = [*tokenizer.encode_batch(wanted.forms), *tokenizer.encode_rest(close)]
    whole = (tuple(ids) for ids in cut if ids and tokenizer.unk_id not in ids)
    return tuple(dict.fromkeys(whole))


def edges_of(tokenizer: Tokenizer, size: int) -> Edges:
    """Which of `size` tokens make one word with those beside them, as a word goes before each.

    A byte token counts as no letter: which one it is a part of is not known.
    """
    ids, decode = range(tokenizer.vocab_size), tokenizer.decode
    word, before = next(((i, t) for i in ids if (t := decode([i])).isalpha()), (0, decode([0])))
    after = [decode([word, id_])[len(before) :] for id_ in ids] + [""] * (size - len(ids))
    edges = ([bool(text) and joins(text[place]) for text in after] for place in (0, -1))
    return Edges(*map(torch.tensor, edges))


def used(found: Sequence[Occurrence], translation: str) -> tuple[TermUse, ...]:
    """What became of the terms of a line."""
    outcomes = zip(found, judge(found, translation), strict=True)
    return tuple(
        TermUse(source=each.written, target=each.target, outcome=outcome)
        for each, outcome in outcomes
    )


_STOP = re.compile(rf"[{SPACED_ENDS}]+[\"'”’»)\]]*(?=\s|\Z)|[{UNSPACED_ENDS}]+")


def is_apart(found: Sequence[Occurrence], line: str, translation: str) -> bool:
    """Whether a term stands in the last sentence of a translation that has more than its source."""
    *before, last = sentences_of(translation)
    made, given = (sum(map(bool, map(str.strip, _STOP.split(t)))) for t in (translation, line))
    is_longer = bool(before) and made > given
    return is_longer and any(any(exact(last, form)) for each in found for form in each.forms)


def changed(line: str, kept: Sequence[Span], translation: str) -> list[Span]:
    """What is to be kept of a line, and is not in its translation as often.

    What is no part of a word or number in the line is none in the translation either.
    """
    rest, found = translation, list[Span]()
    for start, end in sorted(kept, key=lambda span: span[0] - span[1]):  # the longest first
        text = line[start:end].strip()
        is_whole = is_boundary(line, start) and is_boundary(line, end)
        place = next((a for a, _ in exact(rest, text)), -1) if is_whole else rest.find(text)
        if place < 0:
            found.append((start, end))
        else:
            rest = f"{rest[:place]}\n{rest[place + len(text) :]}"
    return found


_PLAIN = {"temperature": 0.0, "mbr": 0, "beam_groups": 1}


def is_plain_search(options: Decoding) -> bool:
    """Whether the search can be told what to write."""
    return all(getattr(options, name) == plain for name, plain in _PLAIN.items())


def check_plain_search(options: Decoding) -> None:
    """Raise InputError unless it can."""
    for name, plain in _PLAIN.items():
        if (value := getattr(options, name)) != plain:
            raise InputError(
                f"{name} is {value} with a glossary or with text to keep, which a plain beam "
                f"search writes; set it to {plain}, or leave them out"
            )


def check_kept(texts: Sequence[str], kept: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Return the places of each text, without white space before what is kept.

    Raises InputError unless they are its own, and apart.
    """
    if len(kept) != len(texts):
        raise InputError(
            f"There are {len(texts)} lines and kept has {len(kept)}; give one for each."
        )
    found = []
    for number, (text, given) in enumerate(zip(texts, kept, strict=True), start=1):
        end = 0
        try:
            spans = [(index(start), index(stop)) for start, stop in given]
        except (TypeError, ValueError):
            raise InputError(
                f"Line {number} has {given!r:.40} in kept; give a list of (start, end) for it."
            ) from None
        for start, stop in sorted(spans):
            if not end <= start < stop <= len(text):
                raise InputError(
                    f"Line {number} has {len(text)} characters, and {(start, stop)} in kept is "
                    "none of its places, or overlaps another; give (start, end) of each."
                )
            end = stop
        begun = ((stop - len(text[start:stop].lstrip()), stop) for start, stop in spans)
        found.append([span for span in begun if span[0] < span[1]])
    return found
