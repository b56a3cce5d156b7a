"""Validation pairs held out of a training corpus, and the batches that a plan makes."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.data.streams import pairs_of

from dragoman.data.batches import BatchConfig, Stream, plan_batches
from dragoman.data.dataset import PairDataset, format_held_out, hold_out
from dragoman.tasks.translate.batches import PairBatches

Rows = Sequence[Sequence[int]]


def dataset_of(src: Rows, tgt: Rows | None = None) -> PairDataset:
    """Return a corpus of these ids."""
    return pairs_of(src, src if tgt is None else tgt)


def sources(dataset: PairDataset, *, usable: bool = False) -> list[tuple[int, ...]]:
    """Return the source sentences, all or only those used in training."""
    which = dataset.usable(100) if usable else np.ones(len(dataset), dtype=np.bool_)
    return [tuple(dataset.src[i].tolist()) for i in np.nonzero(which)[0].tolist()]


@given(
    src=st.lists(st.lists(st.integers(4, 6), min_size=0, max_size=4), min_size=20, max_size=60),
    count=st.integers(1, 30),
    seed=st.integers(0, 5),
)
def test_no_source_is_on_both_sides(src: list[list[int]], count: int, seed: int) -> None:
    """Training keeps exactly the usable pairs whose source is not held out, or all if none is."""
    rest, held = hold_out(dataset_of(src, [2 * ids for ids in src]), count, 100, seed)
    taken, left = set(sources(held)), sources(rest, usable=True)
    assert all(held.tgt[n].tolist() == 2 * held.src[n].tolist() for n in range(len(held)))
    usable = [tuple(ids) for ids in src if ids]
    if set(usable) - taken:
        assert left == [ids for ids in usable if ids not in taken]
    else:  # nothing would be left
        assert left == usable
    if len(usable) > 1:
        assert len(held) == max(1, min(count, len(usable) // 10))


def test_the_seed_decides() -> None:
    """The seed decides which pairs are held out."""
    dataset = dataset_of([[4 + i] for i in range(500)])
    draws = [sources(hold_out(dataset, 50, 100, seed)[1]) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("src", [[[4, 5]], [[4, 5], [4, 5]]])
def test_a_corpus_too_small_to_share(src: list[list[int]]) -> None:
    """A single pair, or copies of it, are used both for training and for validation."""
    rest, held = hold_out(dataset_of(src), 1000, 100, seed=1)
    assert sources(held) == [(4, 5)]
    assert sources(rest, usable=True) == [(4, 5)] * len(src)
    assert next(Stream(PairBatches([rest], BatchConfig()), seed=1)).num_targets == 3 * len(src)


@pytest.mark.parametrize(("left_out", "trained"), [(-1, True), (0, False), (2, False)])
def test_held_out_texts_that_training_sees(left_out: int, *, trained: bool) -> None:
    """Whoever reads that texts are held out learns whether training sees them all the same."""
    said = format_held_out("a.en", 1, left_out, "pair")
    assert ("trained on too" in said) is trained


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
