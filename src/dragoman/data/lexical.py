"""Which words of one side become which of the other, learnt from pairs alone: IBM model 1.

Each target word of a pair was written by one of the pair's source words, any of them as likely as
the others (Brown et al. 1993, section 4.1), and t(target | source) is found by expectation and
maximisation,

    count(t, s) = sum over pairs and places of t(t | s) / sum_s' t(t | s')
    t(t | s)    = count(t, s) / sum_t' count(t', s)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROUNDS = 5
"""Of expectation and maximisation."""
MOST_LINKS = 10_000_000
"""Pairs of a source and a target place that are counted; of more, every n-th pair of texts is
taken. The 29,000 pairs of Multi30k have 7.8 million, and learning from them takes 1.2 GB."""

Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """How often each source word has written each target word; K are those that meet in a pair."""

    keys_K: np.ndarray
    """`source * tgt_size + target`, ascending."""
    counts_K: np.ndarray
    totals_V: np.ndarray
    """Of each source word, all that it has written."""
    tgt_size: int

    @property
    def probs_K(self) -> np.ndarray:
        """t(target | source)."""
        return np.asarray(self.counts_K / self.totals_V[self.keys_K // self.tgt_size])


def count_links(pairs: Pairs, src_size: int, tgt_size: int) -> LinkCounts:
    """Learn from pairs of ids, some of which have text on both sides."""
    links = sum(len(src) * len(tgt) for src, tgt in pairs)
    taken = [pair for pair in pairs[:: -(-links // MOST_LINKS)] if pair[0] and pair[1]]
    met = [np.add.outer(np.array(tgt), np.array(src) * tgt_size).ravel() for src, tgt in taken]
    keys, which = np.unique(np.concatenate(met), return_inverse=True)
    # Links of one target position are adjacent.
    widths = np.repeat([len(src) for src, _ in taken], [len(tgt) for _, tgt in taken])
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    sources = keys // tgt_size
    probs = np.ones(len(keys))
    for _ in range(ROUNDS):
        shares = probs[which]
        shares /= np.repeat(np.add.reduceat(shares, starts), widths)
        counts = np.bincount(which, weights=shares)
        totals = np.bincount(sources, weights=counts, minlength=src_size)
        probs = counts / totals[sources]
    return LinkCounts(keys, counts, totals, tgt_size)
