r"""Subword sampling on ids: each piece is taken apart into two with some probability.

BPE-dropout (Provilkov et al. 2020, section 3) shows the model several segmentations of the same
word by skipping merges at random while the text is tokenised. Here the segmentation that has been
stored is randomised instead: a piece :math:`c = ab` is replaced by :math:`a, b` with probability
:math:`p`, then :math:`a` and :math:`b` in turn, until nothing is taken apart any more. The text
stays the same, the text is not needed, and a whole corpus takes a few array operations.

The distribution is not that of BPE-dropout (a skipped merge there can give way to another one),
but it has its purpose and its limits: p = 0 changes nothing, p = 1 leaves what cannot be split.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SubwordSplits"]

Ids = npt.NDArray[np.integer]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordSplits:
    """The ways to take each piece of a vocabulary apart into two pieces.

    Piece ``i`` is ``left[k]`` and ``right[k]`` concatenated, for each ``k`` from ``first[i]`` to
    ``first[i + 1] - 1``.
    """

    first: npt.NDArray[np.int64]
    """Where the splits of each piece begin; shape (vocab_size + 1,)."""
    left: npt.NDArray[np.int64]
    """The first part of each split."""
    right: npt.NDArray[np.int64]
    """The second part of each split."""

    @classmethod
    def of(cls, triples: Iterable[tuple[int, int, int]], vocab_size: int) -> "SubwordSplits":
        """From triples (piece, its first part, its second part)."""
        table = np.array(sorted(set(triples)), dtype=np.int64).reshape(-1, 3)
        counts = np.bincount(table[:, 0], minlength=vocab_size)
        first = np.concatenate([[0], np.cumsum(counts)])
        return cls(first=first, left=table[:, 1], right=table[:, 2])

    def sample(
        self, ids: Ids, offsets: Offsets, *, probability: float, rng: np.random.Generator
    ) -> tuple[Ids, Offsets]:
        """Take pieces of many texts apart at random.

        ``ids`` are the pieces of all texts one after another; text ``k`` is
        ``ids[offsets[k]:offsets[k + 1]]``. Gives the same two arrays of the sampled texts, with
        the type of ``ids``; the arguments are not changed.
        """
        fresh = np.ones(len(ids), dtype=np.bool_)
        while fresh.any():
            (at,) = np.nonzero(fresh)
            starts = self.first[ids[at]]
            choices = self.first[ids[at].astype(np.int64) + 1] - starts
            chosen = (choices > 0) & (rng.random(len(at), dtype=np.float32) < probability)
            at, starts, choices = at[chosen], starts[chosen], choices[chosen]
            split = starts + rng.integers(0, choices) if len(at) else starts
            ids, offsets, fresh = self._apply(ids, offsets, at, split)
        return ids, offsets

    def _apply(
        self, ids: Ids, offsets: Offsets, at: Offsets, split: Offsets
    ) -> tuple[Ids, Offsets, npt.NDArray[np.bool_]]:
        """Put both parts of ``split`` in the place of the pieces ``at``, and mark the parts."""
        lengths = np.ones(len(ids), dtype=np.int64)
        lengths[at] = 2
        out = np.repeat(ids, lengths)
        place = at + np.arange(len(at))
        out[place] = self.left[split]
        out[place + 1] = self.right[split]
        fresh = np.zeros(len(out), dtype=np.bool_)
        fresh[place] = True
        fresh[place + 1] = True
        grown = offsets + np.searchsorted(at, offsets)
        return out, grown, fresh
