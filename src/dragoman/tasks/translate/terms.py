"""Texts that a translation must contain, their places in the source, and their outcomes.

They are terms of a glossary, and kept text: placeholders, code, and what a document marks as not to
be translated. The search gets their ids (`dragoman.decode.constrained`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import index

import torch

from dragoman.decode.constrained import Edges, Term
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.tasks.lines import Chunk
from dragoman.tasks.results import TermUse
from dragoman.tasks.translate.ids import Source, WantedText
from dragoman.tasks.translate.linking import places_of
from dragoman.text.glossary import Occurrence, is_boundary, is_spaced, joins
from dragoman.text.judging import exact, judge
from dragoman.text.sentences import SPACED_ENDS, UNSPACED_ENDS, sentences_of
from dragoman.text.spans import Span, places_in
from dragoman.text.tokenizer import Tokenizer


def wanted_of(
    line: str, found: Iterable[Occurrence], kept: Sequence[Span], tokenizer: Tokenizer
) -> list[WantedText]:
    """Return the kept text of a line, and its terms outside of it, in order.

    Text that the target vocabulary cannot spell is left out.
    """
    wanted, copied = list[tuple[int, int, tuple[str, ...]]](), places_in(kept)
    for start, end in kept:
        text = line[start:end].rstrip()
        wanted.append((start, start + len(text), (text,)))
    wanted += (
        (term.start, term.end, term.forms)
        for term in found
        if copied.isdisjoint(range(term.start, term.end))
    )
    ids = ((a, b, _ids_of(forms, line[:a][-1:], tokenizer)) for a, b, forms in wanted)
    return sorted(WantedText(*each) for each in ids if each[2])


def sources_of(
    line: str,
    place: int,
    chunks: Sequence[Chunk],
    wanted: Sequence[WantedText],
    tokenizer: Tokenizer,
) -> Iterator[Source]:
    """Yield the source of each chunk of a line, which contains them from `place` on.

    Wanted text of the line is wanted in the chunk that contains all of it.
    """
    texts = [chunk.text for chunk in chunks]
    for start, chunk in zip(places_of(line, place, texts, tokenizer), chunks, strict=True):
        end = start + len(chunk.text)
        inside = (each for each in wanted if start <= each.start and each.end <= end)
        own = [WantedText(each.start - start, each.end - start, each.forms) for each in inside]
        spans, terms = tokenizer.spans(chunk.text) if own else [], list[Term]()
        for each in own:
            on = [n for n, s in enumerate(spans) if s and s[0] < each.end and each.start < s[1]]
            terms += [Term(on[0], on[-1] + 1, each.forms)] if on else []
        yield Source(chunk.ids, text=chunk.text, terms=tuple(terms), wanted=tuple(own))


def _ids_of(forms: Sequence[str], before: str, tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """Return the ids of forms as words begin, and as they continue if no space precedes them.

    No space precedes a form in a script without spaces, or directly after a mark such as a bracket.
    """
    is_glued = bool(before) and not (before.isspace() or before.isalnum())
    close = forms if is_glued else [form for form in forms if not is_spaced(form)]
    cut = [*tokenizer.encode_batch(forms), *tokenizer.encode_rest(close)]
    whole = (tuple(ids) for ids in cut if ids and tokenizer.unk_id not in ids)
    return tuple(dict.fromkeys(whole))


def edges_of(tokenizer: Tokenizer, size: int) -> Edges:
    """Return which of `size` tokens join the words before and after them, decoded after a word.

    A byte token does not count as a letter: which one it is a part of is not known.
    """
    ids, decode = range(tokenizer.vocab_size), tokenizer.decode
    word, before = next(((i, t) for i in ids if (t := decode([i])).isalpha()), (0, decode([0])))
    after = [decode([word, id_])[len(before) :] for id_ in ids] + [""] * (size - len(ids))
    edges = ([bool(text) and joins(text[place]) for text in after] for place in (0, -1))
    return Edges(*map(torch.tensor, edges))


def used(found: Sequence[Occurrence], translation: str) -> tuple[TermUse, ...]:
    """Return the outcome of each term of a line."""
    outcomes = zip(found, judge(found, translation), strict=True)
    return tuple(
        TermUse(source=each.written, target=each.target, outcome=outcome)
        for each, outcome in outcomes
    )


_STOP = re.compile(rf"[{SPACED_ENDS}]+[\"'”’»)\]]*(?=\s|\Z)|[{UNSPACED_ENDS}]+")


def is_apart(found: Sequence[Occurrence], line: str, translation: str) -> bool:
    """Return whether a term is in the last sentence of a translation with more than its source."""
    *before, last = sentences_of(translation) if found else [""]
    if not before:
        return False
    made, given = (sum(map(bool, map(str.strip, _STOP.split(t)))) for t in (translation, line))
    return made > given and any(any(exact(last, form)) for each in found for form in each.forms)


def changed(line: str, kept: Sequence[Span], translation: str) -> list[Span]:
    """Return the kept spans of a line that are not as often in its translation.

    Text that is not part of a longer word or number in the line must not be part of one in the
    translation either.
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
    """Return whether the search can be told what to write."""
    return all(getattr(options, name) == plain for name, plain in _PLAIN.items())


def check_plain_search(options: Decoding) -> None:
    """Raise InputError unless the search can be told what to write."""
    for name, plain in _PLAIN.items():
        if (value := getattr(options, name)) != plain:
            raise InputError(
                f"{name} is {value} with a glossary or with text to keep, which a plain beam "
                f"search writes; set it to {plain}, or leave them out"
            )


def check_kept(texts: Sequence[str], kept: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Return the kept spans of each text, without white space at their start.

    Raises InputError for spans that are not in their text or overlap.
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
