"""Degenerate translations tried again: the rungs of a ladder, each for what is still degenerate.

A translation is degenerate that has broken characters, loops, reaches the length limit or is empty.
A retry is searched in batches as the first search is, so that it depends on its own source alone
too. Where none is degenerate, nothing is computed.

The thresholds are measured (docs/decisions.md): of the reference translations of five corpora,
either way, at most 0.03 % seem to loop and 0.22 % seem short. Attention is not asked: the coverage
of Tu et al. (2016) and Wu et al. (2016, section 7) finds no more truncated translations than their
length does, and costs another pass.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import eq
from typing import TypeVar

from dragoman.decode import Hypothesis, Items
from dragoman.decoding import WIDEST, Decoding
from dragoman.tasks.lines import to_chunks
from dragoman.tasks.translate.ids import Ids, Source
from dragoman.tasks.translate.terms import sources_of
from dragoman.text.tokenizer import Tokenizer

Answer = TypeVar("Answer")
Searching = Generator[Items[Source], list[list[Hypothesis]], Answer]
"""A part of a course that asks for searches."""
Search = Callable[[Sequence[Source], Decoding], Searching[list[list[Hypothesis]]]]
"""Finds the n best of each source."""

REPEATS = 4
"""A translation repeats a cycle at least so many times more than its source does."""
SHORT = 3
"""A translation has less than one token for so many of its source."""
BROKEN = "\ufffd"
"""What bytes are read as that are no character."""
LONG_ENOUGH = 8
"""Tokens from which on a source is judged by its length, and may be cut."""

SEVERITIES = {"short": 1, "broken_characters": 2, "loop": 4, "max_length": 8, "no_output": 16}
"""How bad each flag is: more than those before it together."""

BLOCKED = 3
"""Length of the n-grams that a retry does not repeat."""
WIDER = 5
"""Least width of the wider beam."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one source."""

    parts: tuple[Source, ...]
    """The source; its parts where it was cut."""
    n_best: tuple[list[Hypothesis], ...]
    """Those of each part."""
    retried: bool = False
    """Whether it comes from a retry."""

    def nth(self, n: int) -> list[tuple[Source, Hypothesis]]:
        """Each part with its n-th best; with the last where it has fewer."""
        pairs = zip(self.parts, self.n_best, strict=True)
        return [(part, best[min(n, len(best) - 1)]) for part, best in pairs]


def search_and_retry(
    search: Search,
    sources: Sequence[Source],
    options: Decoding,
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
) -> Searching[list[Found]]:
    """Search, and search again what is degenerate: one result for each source, in order.

    The ladder: blocked n-grams; a wider beam as well, unless translations are sampled; blocked
    n-grams for each half or so. All in the whole vocabulary. The first result that is not
    degenerate is taken; if there is none, the one with the least `severity`, of equal ones the
    earliest: the plain search's, unless a retry is better.
    """
    n_bests = yield from search(sources, options)
    found = [Found((src,), (best,)) for src, best in zip(sources, n_bests, strict=True)]
    if not options.retry:
        return found
    flags_of = [_flags(each, tgt_tokenizer) for each in found]
    if not any(map(is_degenerate, flags_of)):
        return found
    for chosen, cut in _ladder(options):
        failed = [n for n, each in enumerate(flags_of) if is_degenerate(each)]
        if not failed:
            break
        parts_of = {n: _cut(sources[n], src_tokenizer) if cut else [sources[n]] for n in failed}
        parts_of = {n: parts for n, parts in parts_of.items() if len(parts) > cut}
        again = yield from search([src for parts in parts_of.values() for src in parts], chosen)
        tried = iter(again)
        for n, parts in parts_of.items():
            other = Found(tuple(parts), tuple(next(tried) for _ in parts), retried=True)
            flags = _flags(other, tgt_tokenizer)
            if severity(flags) < severity(flags_of[n]):
                found[n], flags_of[n] = other, flags
    return found


def _flags(found: Found, tokenizer: Tokenizer) -> set[str]:
    flags = (quality_flags(src, best, tokenizer.decode(best.ids)) for src, best in found.nth(0))
    return set[str]().union(*flags)


def _cut(src: Source, tokenizer: Tokenizer) -> list[Source]:
    """At punctuation, else at spaces or anywhere, into parts of at most half the tokens.

    The text is cut that the ids are of: what they decode to may be less, or nothing. The prefix of
    the translation is the first one's; a term is that of the part that has all of it.
    """
    if len(src) < LONG_ENOUGH:
        return []
    (parts,) = to_chunks([src.text], tokenizer, (len(src) + 1) // 2)
    cut = [*sources_of(src.text, 0, parts or [], src.wanted, tokenizer)]
    return [
        replace(each, draw=src.draw, prefix=() if n else src.prefix) for n, each in enumerate(cut)
    ]


def _ladder(options: Decoding) -> Iterator[tuple[Decoding, bool]]:
    """The options of each rung, and whether its sources are cut."""
    ngrams = options.no_repeat_ngrams or BLOCKED
    blocked = replace(options, no_repeat_ngrams=ngrams, shortlist=False)
    if blocked != options:
        yield blocked, False
    width = min(max(2 * options.beam_size, WIDER), WIDEST)
    width -= width % options.beam_groups
    if width > options.beam_size and options.temperature == 0:
        yield replace(blocked, beam_size=width), False
    yield blocked, True


def quality_flags(src: Source, found: Hypothesis, text: str) -> set[str]:
    """The flags of a hypothesis, written as `text`: keys of `SEVERITIES`.

    `no_output`: the text is blank. `max_length`: the limit cut it. `loop`: it repeats one or more
    tokens over and over. `broken_characters`: it has bytes that are no character, each read as
    U+FFFD, more than its source has of these. `short`: it is much shorter than its source.
    """
    signs = {
        "short": len(src) >= LONG_ENOUGH and SHORT * len(found.ids) < len(src),
        "broken_characters": text.count(BROKEN) > src.text.count(BROKEN),
        "loop": loops(src.ids, found.ids),
        "max_length": found.stopped == "length",
        "no_output": not text.strip(),
    }
    return {flag for flag, holds in signs.items() if holds}


def severity(flags: Iterable[str]) -> int:
    """A number that orders sets of flags: first by the worst in them, then by the next."""
    return sum(SEVERITIES.get(flag, 0) for flag in flags)


def is_degenerate(flags: set[str]) -> bool:
    """Whether another search may help: a short translation may be right, the others are not."""
    return bool(flags - {"short"})


def loops(src: Ids, tgt: Ids) -> bool:
    """Whether the target repeats a cycle of tokens `REPEATS` times more than the source does.

    A source may say "no no no no", and a row of dots or digits repeats as well.
    """
    written = repeats(tgt, REPEATS + 1)
    return written > REPEATS and written >= repeats(src, 2) + REPEATS


def repeats(ids: Ids, least: int) -> int:
    """How often the most repeated cycle occurs in a row, where that is at least `least`; else 1.

    A cycle of p tokens occurs r times in a row where r * p - p tokens in a row equal the one p
    places after them. Costs O(n^2 / least) for n tokens.
    """
    most = 1
    for period in range(1, len(ids) // least + 1):
        same = groupby(map(eq, ids, ids[period:]))
        longest = max((sum(1 for _ in run) for equal, run in same if equal), default=0)
        if (times := longest // period + 1) >= least:
            most = max(most, times)
    return most
