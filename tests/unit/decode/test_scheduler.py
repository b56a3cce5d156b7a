"""Packing inputs into batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decode import run_in_batches, schedule
from dragoman.errors import InputError

LENGTHS = st.lists(st.integers(0, 60), max_size=60)


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


def test_a_runner_that_loses_a_result_is_a_bug() -> None:
    """It is an error, not a shift of all that follows."""
    with pytest.raises(ValueError, match="shorter"):
        dict(run_in_batches([[1], [2]], lambda batch: batch[1:], max_batch_tokens=10))


def test_a_budget_must_be_positive() -> None:
    """The error names the option."""
    with pytest.raises(InputError, match="max_batch_tokens"):
        schedule([1], 0)
