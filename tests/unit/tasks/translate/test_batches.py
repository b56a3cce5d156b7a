"""Batches: budget, padding, order, weights, resuming and tensors."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from trace import Trace

import numpy as np
import pytest
import torch
from tests.unit.data.streams import Doubling, assert_fixed, assert_resumes, epoch_of
from tests.unit.data.streams import pairs_of as made_of
from tests.unit.tasks.tiny import make_tokenizer

from dragoman.data.batches import BatchConfig, Stream, plan_batches
from dragoman.data.dataset import PairDataset
from dragoman.errors import InputError
from dragoman.tasks.hiding import NoisyBatchConfig, hide_tokens
from dragoman.tasks.translate.batches import PairBatch, PairBatches

MakeDataset = Callable[..., PairDataset]


def pairs_of(batches: list[PairBatch]) -> Counter[int]:
    """Return how often each pair occurs."""
    return Counter(int(index) for batch in batches for index in batch.indices)


def small_dataset() -> PairDataset:
    """Return three pairs, one of them with an empty source."""
    return made_of([[11, 12, 13], [], [14]], [[21], [22], [23, 24]])


def test_tensors_of_a_batch() -> None:
    """The source is ids, eos, padding; the target input is bos, ids; the output is ids, eos."""
    (batch,) = PairBatches([small_dataset()], BatchConfig(max_tokens=100)).fixed()
    rows = {int(index): row for row, index in enumerate(batch.indices)}
    order = [rows[0], rows[1], rows[2]]
    assert batch.src_BS[order].tolist() == [[11, 12, 13, 3], [3, 0, 0, 0], [14, 3, 0, 0]]
    assert batch.tgt_in_BT[order].tolist() == [[2, 21, 0], [2, 22, 0], [2, 23, 24]]
    assert batch.tgt_out_BT[order].tolist() == [[21, 3, 0], [22, 3, 0], [23, 24, 3]]
    assert (batch.num_tokens, batch.num_targets) == (14, 7)
    assert batch.src_BS.dtype == torch.int64


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_an_epoch_holds_every_pair_once(make_dataset: MakeDataset, sampling: float) -> None:
    """Batches are within the budget including padding, and report their share of padding.

    A row has the ids of the pair that `indices` names, unless sampling lengthens it in each epoch.
    """
    datasets, tokens = [make_dataset(200, "a"), make_dataset(300, "b")], list[int]()
    config = BatchConfig(max_tokens=300, subword_sampling=sampling)
    batches = Stream(PairBatches(datasets, config, splits=(Doubling(), Doubling())), seed=1)
    for number in range(2):
        epoch = epoch_of(batches)
        assert pairs_of(epoch) == Counter(range(500))
        assert batches.epoch == number
        sizes = [batch.src_BS.numel() + batch.tgt_out_BT.numel() for batch in epoch]
        assert max(sizes) <= 300
        tokens.append(sum(batch.num_tokens for batch in epoch))
        assert batches.padding == pytest.approx(1 - tokens[-1] / sum(sizes))
    least = sum(int(side.lengths.sum()) + len(side) for d in datasets for side in (d.src, d.tgt))
    if sampling:
        assert min(tokens) > least + 200
        assert tokens[0] != tokens[1]
        return
    assert tokens == [least, least]
    for batch in epoch:
        for row, index in enumerate(batch.indices):
            dataset, i = (datasets[0], index) if index < 200 else (datasets[1], index - 200)
            for ids_BL, side in ((batch.src_BS, dataset.src), (batch.tgt_out_BT, dataset.tgt)):
                expected = [*side[i].tolist(), 3]
                assert ids_BL[row, : len(expected)].tolist() == expected
                assert (ids_BL[row, len(expected) :] == 0).all()


def test_epochs_differ_in_batches_and_in_their_order(make_dataset: MakeDataset) -> None:
    """Pairs are grouped differently in each epoch, and lengths are in random order."""
    batches = Stream(PairBatches([make_dataset(2000)], BatchConfig(max_tokens=1000)), seed=3)
    first, second = epoch_of(batches), epoch_of(batches)
    groups = [{tuple(sorted(b.indices.tolist())) for b in epoch} for epoch in (first, second)]
    assert len(groups[0] & groups[1]) < len(groups[0]) / 4
    widths = [batch.tgt_out_BT.shape[1] for batch in first]
    assert widths != sorted(widths)
    assert widths != sorted(widths, reverse=True)


@pytest.mark.parametrize(("sampling", "after"), [(0.0, 3), (0.2, 40)])
def test_resuming_goes_on_with_the_same_batches(
    make_dataset: MakeDataset, sampling: float, after: int
) -> None:
    """A saved stream continues exactly; another corpus, weight or setting is refused."""
    config = BatchConfig(max_tokens=300, subword_sampling=sampling)
    splits = (Doubling(), Doubling())
    dataset = make_dataset(200, weight=1.5)
    assert_resumes(
        PairBatches([dataset], config, splits),
        after,
        PairBatches([make_dataset(201, weight=1.5)], config, splits),
        PairBatches([make_dataset(200, weight=2.0)], config, splits),
        PairBatches([dataset], replace(config, max_tokens=301), splits),
    )


def test_a_weight_is_the_number_of_passes(make_dataset: MakeDataset) -> None:
    """Weight 2 gives every pair twice; 0.25 gives a quarter of the pairs, others each epoch."""
    datasets = [make_dataset(100, "a", 2.0), make_dataset(400, "b", 0.25)]
    batches = Stream(PairBatches(datasets, BatchConfig(max_tokens=500)), seed=1)
    quarters = []
    for _ in range(2):
        counts = pairs_of(epoch_of(batches))
        assert {counts[i] for i in range(100)} == {2}
        quarter = {i for i in counts if i >= 100}
        assert len(quarter) == 100
        assert {counts[i] for i in quarter} == {1}
        quarters.append(quarter)
    assert quarters[0] != quarters[1]


def test_a_small_weight_is_met_on_average(make_dataset: MakeDataset) -> None:
    """A pair with weight 0.5 comes in about half of the epochs, and empty epochs are skipped."""
    batches = Stream(PairBatches([make_dataset(1, weight=0.5)], BatchConfig()), seed=1)
    for _ in range(100):
        next(batches)
    assert 120 < batches.epoch < 300


def test_long_and_empty_pairs_are_left_out_of_training(make_dataset: MakeDataset) -> None:
    """An epoch has exactly the pairs that the report says are used; none at all is refused."""
    dataset = make_dataset(300)
    batches = Stream(PairBatches([dataset], BatchConfig(max_tokens=300, max_length=12)), seed=1)
    counts = pairs_of(epoch_of(batches))
    assert set(counts) == set(np.nonzero(dataset.usable(12))[0].tolist())
    assert f": {len(counts)} of 300 pairs" in next(dataset.report(12))
    assert set(
        pairs_of(epoch_of(Stream(PairBatches([small_dataset()], BatchConfig()), seed=0)))
    ) == {0, 2}
    with pytest.raises(InputError, match=r"made .*max_length = 1 "):
        Stream(PairBatches([small_dataset()], BatchConfig(max_length=1)), seed=0)


def test_evaluation_holds_all_pairs_in_fixed_batches(make_dataset: MakeDataset) -> None:
    """Every pair comes once, even empty and long ones, in the same batches each time."""
    assert_fixed(PairBatches([make_dataset(300)], BatchConfig(max_tokens=200)), 300)
    assert_fixed(PairBatches([small_dataset()], BatchConfig(max_tokens=5)), 3)


def test_an_epoch_is_planned_at_once() -> None:
    """The plan is vectorized: fewer lines of Python run than there are pairs."""
    rng, counter = np.random.default_rng(0), Trace(trace=0)
    src, tgt = rng.integers(5, 40, (2, 29_000))
    plan = counter.runfunc(plan_batches, src, tgt, 4096, rng)
    assert 0 < sum(counter.results().counts.values()) < 29_000
    assert sorted(plan.order.tolist()) == list(range(29_000))


def test_hiding_tokens_changes_no_batch(make_dataset: MakeDataset) -> None:
    """So runs that started before the setting existed can be resumed; 0 draws no number either."""
    datasets = [make_dataset(9)]
    hidden, plain = (
        PairBatches(datasets, config)
        for config in (NoisyBatchConfig(token_dropout=0.1), BatchConfig())
    )
    assert hidden.fingerprint == plain.fingerprint
    assert PairBatches(datasets, BatchConfig(max_length=7)).fingerprint != plain.fingerprint
    ids_BL, before = torch.full((4, 5), 300), torch.get_rng_state()
    assert hide_tokens(ids_BL, 0.0, make_tokenizer()) is ids_BL
    assert torch.equal(torch.get_rng_state(), before)
