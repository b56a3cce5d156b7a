"""Which source token each target token of a pair is a translation of, learnt from pairs alone.

Two models write each side of a pair from the other: a token is written for one token of the other
side (IBM model 1, Brown et al. 1993, section 4.1), rather for one near the diagonal (Dyer et al.
2013). Expectation and maximisation, in which a link is as likely as both models say together
(Liang et al. 2006, "Alignment by agreement"):

    share(t, s) = t(t | s) near(t, s) / sum_s' the same  *  t(s | t) near(t, s) / sum_t' the same
    t(t | s)    = count(t, s) / sum_t' count(t', s),  the other way round alike

where a count is the sum of the shares over all pairs. Axes: D directions, P pairs, N target tokens,
X their links, K the pairs of ids that meet in a link.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import numpy as np

from dragoman.data.dataset import PairDataset, Ragged, meetings
from dragoman.data.prepare import RaggedWriter, kept

ROUNDS = 5
"""Of expectation and maximisation."""
TENSION = 4.0
"""A token is e^-4 times as likely a text's length away from the diagonal as on it."""
LEAST = 0.2
"""Least share of a link; chosen, as TENSION is, against eflomal's links of Multi30k."""
MOST_LINKS = 2_000_000
"""Links that are learnt from, or found at a time; a pair that has more by itself has none."""
NONE = -1
"""The source place of a target token that is linked to none."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """Every source token with every target token of its pair."""

    keys_X: np.ndarray
    """`source id * target ids + target id`."""
    src_X: np.ndarray
    tgt_X: np.ndarray
    place_X: np.ndarray
    """The place of the source token in its text."""
    near_X: np.ndarray

    @classmethod
    def of(cls, src: Ragged, tgt: Ragged, tgt_size: int) -> Self:
        src_X, tgt_X = meetings(src, tgt)
        pair_X = tgt.rows[tgt_X]
        place_X = src_X - src.offsets[pair_X]
        along_X = (place_X + 0.5) / src.lengths[pair_X]
        away_X = np.abs(along_X - (tgt_X - tgt.offsets[pair_X] + 0.5) / tgt.lengths[pair_X])
        keys_X = src.ids[src_X].astype(np.int64) * tgt_size + tgt.ids[tgt_X]
        return cls(keys_X, src_X, tgt_X, place_X, np.exp(-TENSION * away_X))

    def shares(self, probs_DX: np.ndarray) -> np.ndarray:
        """How likely each link is."""
        shares_X = np.ones(len(self.near_X))
        for probs_X, of_X in zip(probs_DX, (self.tgt_X, self.src_X), strict=True):
            weight_X = probs_X * self.near_X
            shares_X *= weight_X / np.maximum(np.bincount(of_X, weight_X)[of_X], 1e-30)
        return shares_X


@dataclass(frozen=True, slots=True)
class Aligner:
    """What was learnt from pairs."""

    tgt_size: int
    keys_K: np.ndarray
    """Ascending."""
    probs_DK: np.ndarray
    """t(target | source) and t(source | target)."""

    @classmethod
    def learn(cls, datasets: Sequence[PairDataset], tgt_size: int) -> Self:
        """Learn from the pairs of corpora, whose target ids are below `tgt_size`."""
        cells = [each.src.lengths * each.tgt.lengths for each in datasets]
        step = max(1, -(-sum(int(each.sum()) for each in cells) // MOST_LINKS))
        rows = [np.nonzero((each > 0) & (each <= MOST_LINKS))[0][::step] for each in cells]
        src, tgt = (
            Ragged.concatenate([side.take(some) for side, some in zip(sides, rows, strict=True)])
            for sides in ([each.src for each in datasets], [each.tgt for each in datasets])
        )
        grid = _Grid.of(src, tgt, tgt_size)
        keys_K, which_X = np.unique(grid.keys_X, return_inverse=True)
        sides_DK = np.divmod(keys_K, tgt_size)
        probs_DK = np.ones((2, len(keys_K)))
        for _ in range(ROUNDS):
            count_K = np.bincount(which_X, grid.shares(probs_DK[:, which_X]), len(keys_K))
            for probs_K, side_K in zip(probs_DK, sides_DK, strict=True):
                probs_K[:] = count_K / np.maximum(np.bincount(side_K, count_K)[side_K], 1e-30)
        return cls(tgt_size, keys_K, probs_DK)

    @property
    def content_hash(self) -> str:
        """A hash of all that decides the links of a pair."""
        digest = sha256(f"{self.tgt_size} {TENSION} {LEAST} {MOST_LINKS}".encode())
        for array in (self.keys_K, self.probs_DK):
            digest.update(array.data)
        return digest.hexdigest()[:32]

    def kept_links(self, dataset: PairDataset, cache: Path) -> Ragged:
        """The links of a corpus: read from the cache, or found and put there.

        Raises DragomanError when the cache cannot be written.
        """

        def write(writers: Mapping[str, RaggedWriter]) -> dict[str, object]:
            for src, tgt in zip(dataset.src.chunks(), dataset.tgt.chunks(), strict=True):
                links = self.links(src, tgt)
                writers["links"].append([links[n].tolist() for n in range(len(links))])
            return {}

        content = ["links", self.content_hash, dataset.content_hash]
        return kept(cache, (content, []), {"links": "<i4"}, write)[1]["links"]

    def links(self, src: Ragged, tgt: Ragged) -> Ragged:
        """The place in its source of what each target token was written for, or NONE."""
        cells_P, places_N = src.lengths * tgt.lengths, np.full(len(tgt.ids), NONE, np.int32)
        (rows,) = np.nonzero(cells_P <= MOST_LINKS)
        parts = np.cumsum(cells_P[rows]) // MOST_LINKS
        for some in np.split(rows, np.nonzero(np.diff(parts))[0] + 1):
            own = Ragged(np.arange(len(tgt.ids)), tgt.offsets).take(some)
            places_N[own.ids] = self._links(src.take(some), tgt.take(some))
        return Ragged(places_N, tgt.offsets)

    def _links(self, src: Ragged, tgt: Ragged) -> np.ndarray:
        grid, places_N = _Grid.of(src, tgt, self.tgt_size), np.full(len(tgt.ids), NONE, np.int32)
        if not len(grid.keys_X) or not len(self.keys_K):
            return places_N
        at_X = np.minimum(np.searchsorted(self.keys_K, grid.keys_X), len(self.keys_K) - 1)
        shares_X = grid.shares(self.probs_DK[:, at_X] * (self.keys_K[at_X] == grid.keys_X))
        (likely_X,) = np.nonzero(shares_X >= LEAST)
        order_X = likely_X[np.argsort(shares_X[likely_X], kind="stable")]
        places_N[grid.tgt_X[order_X]] = grid.place_X[order_X]  # the most likely one comes last
        return places_N
