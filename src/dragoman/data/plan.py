r"""Which pairs share a batch: length buckets under a token budget.

A batch of :math:`n` pairs padded to its longest source and its longest target costs

.. math:: n \, (\max_i S_i + \max_i T_i)

tokens. Pairs are put into strips by the length of one side and, within a strip, in order of the
other, up one strip and down the next, so that neighbours have nearly the same two lengths even
where a strip ends. Then the row is cut: each batch takes as many of the following pairs as the
budget allows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Plan", "plan_batches"]

Lengths = npt.NDArray[np.int64]

LONGEST = (1 << 19) - 1
"""Lengths beyond it are not told apart when pairs are put in order."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Batch ``k`` holds the pairs ``order[bounds[k]:bounds[k + 1]]``."""

    order: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]
    num_tokens: int
    """Source and target tokens of all pairs."""
    num_padded: int
    """The same with padding."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, batch: int) -> npt.NDArray[np.int64]:
        return self.order[self.bounds[batch] : self.bounds[batch + 1]]

    @property
    def padding(self) -> float:
        """The share of padding in all tokens."""
        return 1.0 - self.num_tokens / self.num_padded if self.num_padded else 0.0


def plan_batches(
    src_lengths: Lengths, tgt_lengths: Lengths, max_tokens: int, rng: np.random.Generator
) -> Plan:
    """Put all pairs into batches of at most ``max_tokens`` source and target tokens with padding.

    Lengths are those in the batch, with eos. A pair that is over the budget by itself makes a
    batch. What differs from one state of ``rng`` to the next: which side makes the strips, the
    order of pairs with equal lengths, and where the first cut falls. The strips are made wider as
    long as that saves padding, which it does when a batch is large for the corpus. Batches come in
    order of length.
    """
    by_src = bool(rng.integers(2))
    first, second = (src_lengths, tgt_lengths) if by_src else (tgt_lengths, src_lengths)
    ties = rng.integers(0, 1 << 24, len(src_lengths))
    first_budget = int(max_tokens * rng.uniform(0.5, 1.0))
    best: Plan | None = None
    for width in (1, 2, 3, 4):
        order = _snake(first // width, second, ties)
        plan = _cut(order, src_lengths[order], tgt_lengths[order], (first_budget, max_tokens))
        if best is not None and plan.num_padded >= best.num_padded:
            break
        best = plan
    assert best is not None  # noqa: S101
    return best


def _snake(strip: Lengths, within: Lengths, ties: Lengths) -> npt.NDArray[np.int64]:
    """Pairs by strip, then up or down by the other length, then by chance."""
    strip, within = np.minimum(strip, LONGEST), np.minimum(within, LONGEST)
    turning = np.where(strip % 2 == 0, within, LONGEST - within)
    return np.argsort((strip << 43) | (turning << 24) | ties)


def _cut(
    order: npt.NDArray[np.int64], src: Lengths, tgt: Lengths, budgets: tuple[int, int]
) -> Plan:
    """Cut the ordered pairs greedily; the first batch has a budget of its own."""
    budget, later_budget = budgets
    bounds, num_padded = [0], 0
    while (start := bounds[-1]) < len(order):
        most = max(1, budget // int(src[start] + tgt[start]))
        width = np.maximum.accumulate(src[start : start + most])
        width += np.maximum.accumulate(tgt[start : start + most])
        cost = width * np.arange(1, len(width) + 1)
        count = max(1, int(np.searchsorted(cost, budget, side="right")))
        num_padded += int(cost[count - 1])
        bounds.append(start + count)
        budget = later_budget
    return Plan(order, np.array(bounds), int(src.sum() + tgt.sum()), num_padded)
