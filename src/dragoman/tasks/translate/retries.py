"""Retries of degenerate translations: a ladder of searches, each for what is still degenerate.

A translation is degenerate if it has broken characters, loops, reaches the length limit or is
empty. Retries are searched in batches like the first search, so each depends only on its own
source, too. If no translation is degenerate, nothing is computed.

The thresholds are measured (docs/decisions.md): of the reference translations of five corpora, in
both directions, at most 0.03 % seem to loop and 0.22 % seem short. Attention is not used: the
coverage of Tu et al. (2016) and Wu et al. (2016, section 7) finds no more truncated translations
than their length does, and costs another pass.
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
"""A part of a course that requests searches."""
Search = Callable[[Sequence[Source], Decoding], Searching[list[list[Hypothesis]]]]
"""Finds the n best of each source."""

REPEATS = 4
"""A translation loops if it repeats a cycle at least this many times more than its source."""
SHORT = 3
"""A translation is short if it has less than one token for this many of its source."""
BROKEN = "\ufffd"
"""The character that invalid bytes are decoded to."""
LONG_ENOUGH = 8
"""Minimum number of tokens of a source that is judged by its length, and may be split."""

SEVERITIES = {"short": 1, "broken_characters": 2, "loop": 4, "max_length": 8, "no_output": 16}
"""Severity of each flag: greater than the sum of those before it."""

BLOCKED = 3
"""Length of the n-grams that a retry does not repeat."""
WIDER = 5
"""Minimum width of the wider beam."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result for one source."""

    parts: tuple[Source, ...]
    """The source, or its parts if it was split."""
    n_best: tuple[list[Hypothesis], ...]
    """The n best of each part."""
    retried: bool = False
    """Whether it comes from a retry."""

    def nth(self, n: int) -> list[tuple[Source, Hypothesis]]:
        """Return each part with its n-th best, or with its last if it has fewer."""
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

    The ladder: blocked n-grams; also a wider beam, unless translations are sampled; blocked n-grams
    for each half or so. All use the whole vocabulary. The first result that is not degenerate is
    returned, or else the one with the least `severity`, among equals the earliest: that of the
    plain search, unless a retry is better.
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
    """Split a source into parts of at most half its tokens: at punctuation, spaces, or anywhere.

    The text of the ids is split, since they may decode to less, or to nothing. The first part gets
    the prefix of the translation; a term belongs to the part that contains all of it.
    """
    if len(src) < LONG_ENOUGH:
        return []
    (parts,) = to_chunks([src.text], tokenizer, (len(src) + 1) // 2)
    cut = [*sources_of(src.text, 0, parts or [], src.wanted, tokenizer)]
    return [
        replace(each, draw=src.draw, prefix=() if n else src.prefix) for n, each in enumerate(cut)
    ]


def _ladder(options: Decoding) -> Iterator[tuple[Decoding, bool]]:
    """Yield the options of each rung, and whether it splits the sources."""
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
    """Return the flags of a hypothesis with this `text`: keys of `SEVERITIES`.

    `no_output`: the text is blank. `max_length`: the limit cut it off. `loop`: it repeats one or
    more tokens over and over. `broken_characters`: it contains invalid bytes, each decoded to
    U+FFFD, more than its source contains of these. `short`: it is much shorter than its source.
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
    """Return a number that orders sets of flags by their worst flag, then by the next."""
    return sum(SEVERITIES.get(flag, 0) for flag in flags)


def is_degenerate(flags: set[str]) -> bool:
    """Return whether another search may help; a translation that is only short may be right."""
    return bool(flags - {"short"})


def loops(src: Ids, tgt: Ids) -> bool:
    """Return whether the target repeats a cycle `REPEATS` times more than the source does.

    A source may contain "no no no no", and a row of dots or digits repeats as well.
    """
    written = repeats(tgt, REPEATS + 1)
    return written > REPEATS and written >= repeats(src, 2) + REPEATS


def repeats(ids: Ids, least: int) -> int:
    """Return how often the most repeated cycle occurs in a row if at least `least` times, else 1.

    A cycle of p tokens occurs r times in a row if r * p - p tokens in a row equal the one p places
    after them. Costs O(n^2 / least) for n tokens.
    """
    most = 1
    for period in range(1, len(ids) // least + 1):
        same = groupby(map(eq, ids, ids[period:]))
        longest = max((sum(1 for _ in run) for equal, run in same if equal), default=0)
        if (times := longest // period + 1) >= least:
            most = max(most, times)
    return most
