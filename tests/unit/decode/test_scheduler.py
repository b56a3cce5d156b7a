"""Packing inputs into batches."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.decode.tables import EOS, Ids, TableModel, limits, random_table, sources

from dragoman.decode import Beam, Hypothesis, run_in_batches, schedule, search
from dragoman.errors import InputError

LENGTHS = st.lists(st.integers(0, 60), max_size=60)
SOURCES = st.lists(st.lists(st.integers(3, 6), max_size=6), max_size=12)
BROKEN = 7
"""A token that the table has no probabilities for."""


@given(LENGTHS, st.integers(1, 300), st.integers(1, 6))
def test_every_input_is_in_one_batch_within_the_budget(
    lengths: list[int], budget: int, beam_size: int
) -> None:
    """A partition; padded tokens times beams fit, except for an input that is too long alone."""
    batches = schedule(lengths, budget, beam_size=beam_size)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        cost = len(batch) * max(lengths[index] for index in batch) * beam_size
        assert cost <= budget or len(batch) == 1


@given(LENGTHS, st.integers(1, 300))
def test_the_longest_come_first_and_batches_are_full(lengths: list[int], budget: int) -> None:
    """Lengths fall through the batches, and the next input never had room in the one before."""
    batches = schedule(lengths, budget)
    order = [index for batch in batches for index in batch]
    assert order == sorted(order, key=lambda index: (-lengths[index], index))
    for batch in batches[:-1]:
        assert (len(batch) + 1) * max(1, lengths[batch[0]]) > budget


@given(LENGTHS, st.integers(1, 100))
def test_results_come_with_the_index_of_their_input(lengths: list[int], budget: int) -> None:
    """Put back by index they are in the order of the inputs, empty inputs included."""
    inputs = [[index] * length for index, length in enumerate(lengths)]

    def run(batch: list[list[int]]) -> list[list[int]]:
        return [[*ids, -1] for ids in batch]

    results = dict(run_in_batches(inputs, run, max_batch_tokens=budget))
    assert [results[index] for index in range(len(inputs))] == [[*ids, -1] for ids in inputs]


def searched(batch: Sequence[Sequence[int]], seed: int, beam_size: int) -> list[list[Hypothesis]]:
    """The n best of each source by a random table; NaN for what has a broken token."""
    known = random_table(seed, 7)

    def table(src: Ids, prefix: Ids) -> Sequence[float]:
        return [math.nan] * 7 if BROKEN in src else known(src, prefix)

    most = limits(*(len(src) + 3 for src in batch))
    beam = Beam(beam_size=beam_size, n_best=beam_size)
    return search(TableModel(table), sources(*([*src, EOS] for src in batch)), beam, limits=most)


@given(SOURCES, st.integers(0, 99), st.integers(1, 60), st.integers(1, 4))
@settings(max_examples=50)
def test_each_source_is_searched_as_if_alone(
    inputs: list[list[int]], seed: int, budget: int, beam_size: int
) -> None:
    """Whatever the budget puts beside it, and wherever in a batch others end before it."""
    found = dict(
        run_in_batches(
            inputs,
            lambda batch: searched(batch, seed, beam_size),
            max_batch_tokens=budget,
            beam_size=beam_size,
        )
    )
    assert sorted(found) == list(range(len(inputs)))
    for index, src in enumerate(inputs):
        assert found[index] == searched([src], seed, beam_size)[0]


@given(SOURCES, st.integers(0, 11), st.integers(1, 60))
@settings(max_examples=50)
def test_what_fails_harms_nothing_before_it(
    inputs: list[list[int]], place: int, budget: int
) -> None:
    """Batches that were done have come, each result its own; then the failure comes, unchanged."""
    inputs.insert(place, [BROKEN, 3, 4])
    place, found = inputs.index([BROKEN, 3, 4]), dict[int, list[Hypothesis]]()
    results = run_in_batches(inputs, lambda batch: searched(batch, 1, 2), max_batch_tokens=budget)
    with pytest.raises(InputError, match="NaN"):
        found.update(results)
    batches = schedule([len(src) for src in inputs], budget)
    before = batches[: [place in batch for batch in batches].index(True)]
    assert list(found) == [index for batch in before for index in batch]
    for index, best in found.items():
        assert best == searched([inputs[index]], 1, 2)[0]


def test_a_runner_that_loses_a_result_is_a_bug() -> None:
    """It is an error, not a shift of all that follows."""
    with pytest.raises(ValueError, match="shorter"):
        dict(run_in_batches([[1], [2]], lambda batch: batch[1:], max_batch_tokens=10))


def test_a_budget_must_be_positive() -> None:
    """The error names the option."""
    with pytest.raises(InputError, match="max_batch_tokens"):
        schedule([1], 0)
