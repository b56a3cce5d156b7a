"""The order of pairs, the boundaries of batches, and their transfer to a device."""

import numpy as np
import pytest

from dragoman.data.batches import plan_batches


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_have_nearly_the_same_lengths(seed: int) -> None:
    """If all lengths occur, no step along the order changes a length by more than one."""
    src, tgt = (axis.ravel() for axis in np.meshgrid(np.arange(1, 20), np.arange(1, 20)))
    plan = plan_batches(src, tgt, 40, np.random.default_rng(seed))
    assert np.abs(np.diff(src[plan.order])).max() <= 1
    assert np.abs(np.diff(tgt[plan.order])).max() <= 1


def test_a_batch_is_filled_to_the_last_token() -> None:
    """Ten pairs of 5 and 5 tokens fill a budget of 100, in all batches but the first and last."""
    lengths = np.full(105, 5)
    plan = plan_batches(lengths, lengths, 100, np.random.default_rng(0))
    sizes = np.diff(plan.bounds).tolist()
    assert set(sizes[1:-1]) == {10}
    assert 5 <= sizes[0] <= 10
    assert plan.padding == 0.0


def test_wider_strips_are_taken_where_they_pad_less() -> None:
    """For a batch that is large relative to its corpus, the plan pads less than strips of one."""
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(1, 60, (2, 600))
    order = np.lexsort((src, tgt))
    budget = 3000
    narrow, start = 0, 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and _cost(src, tgt, order[start : stop + 1]) <= budget:
            stop += 1
        narrow += _cost(src, tgt, order[start:stop])
        start = stop
    for seed in range(4):
        assert plan_batches(src, tgt, budget, np.random.default_rng(seed)).num_padded < narrow


def _cost(src: np.ndarray, tgt: np.ndarray, rows: np.ndarray) -> int:
    return len(rows) * int(src[rows].max() + tgt[rows].max())
