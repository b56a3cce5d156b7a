"""Degenerate translations tried again: the rungs of a ladder, each for what is still degenerate.

A translation is degenerate that loops, reaches the length limit or is empty (`doubts`). All of them
that were searched together are retried together, in batches as in the search, so that a retry
depends on its own source alone too. Where none is degenerate, nothing is computed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.decode import Hypothesis
from dragoman.models.defaults import WIDEST
from dragoman.tasks.lines import to_chunks
from dragoman.tasks.options import DecodingOptions
from dragoman.tasks.translate.doubts import LONG_ENOUGH, badness, doubts, is_degenerate
from dragoman.tasks.translate.ids import Source
from dragoman.text.tokenizer import Tokenizer

Search = Callable[[Sequence[Source], DecodingOptions], list[list[Hypothesis]]]

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


def search_and_retry(
    search: Search,
    sources: Sequence[Source],
    options: DecodingOptions,
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
) -> list[Found]:
    """Search, and search again what is degenerate: one result for each source, in order.

    The ladder: blocked n-grams; a wider beam as well, unless translations are sampled; blocked
    n-grams for each half or so. All in the whole vocabulary. The first result that is not
    degenerate is taken; if there is none, the one with the least `badness`, of equal ones the
    earliest: the plain search's, unless a retry is better.
    """
    n_bests = search(sources, options)
    found = [Found((src,), (best,)) for src, best in zip(sources, n_bests, strict=True)]
    if not options.retry:
        return found
    doubted = [_doubts(each, tgt_tokenizer) for each in found]
    for chosen, cut in _ladder(options):
        failed = [n for n, each in enumerate(doubted) if is_degenerate(each)]
        if not failed:
            break
        parts_of = {n: _cut(sources[n], src_tokenizer) if cut else [sources[n]] for n in failed}
        parts_of = {n: parts for n, parts in parts_of.items() if len(parts) > cut}
        tried = iter(search([src for parts in parts_of.values() for src in parts], chosen))
        for n, parts in parts_of.items():
            again = Found(tuple(parts), tuple(next(tried) for _ in parts), retried=True)
            if badness(now := _doubts(again, tgt_tokenizer)) < badness(doubted[n]):
                found[n], doubted[n] = again, now
    return found


def _doubts(found: Found, tokenizer: Tokenizer) -> set[str]:
    """The doubts about the best translation of any part."""
    pairs = [(src.ids, best[0]) for src, best in zip(found.parts, found.n_best, strict=True)]
    return set[str]().union(*(doubts(ids, best, tokenizer.decode(best.ids)) for ids, best in pairs))


def _cut(src: Source, tokenizer: Tokenizer) -> list[Source]:
    """At punctuation, else at spaces or anywhere, into parts of at most half the tokens.

    The prefix of the translation is the first one's.
    """
    if len(src) < LONG_ENOUGH:
        return []
    (parts,) = to_chunks([tokenizer.decode(src.ids)], tokenizer, (len(src) + 1) // 2)
    first, *rest = parts
    return [replace(src, ids=first), *(replace(src, ids=ids, prefix=()) for ids in rest)]


def _ladder(options: DecodingOptions) -> Iterator[tuple[DecodingOptions, bool]]:
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
