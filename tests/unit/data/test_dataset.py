"""Validation pairs held out of a training corpus."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.data.streams import pairs_of

from dragoman.data.batches import BatchConfig, Stream
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
