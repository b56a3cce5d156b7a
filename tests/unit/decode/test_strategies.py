"""Greedy and Beam on tables of log-probabilities, step by step."""

import math
import tracemalloc

import pytest
import torch
from torch import Tensor

from dragoman.decode import Beam, Greedy, Sample, Strategy
from dragoman.errors import InputError

EOS = 2


def table(*rows: list[float]) -> Tensor:
    """Return log-probabilities of these probabilities."""
    return torch.tensor(rows).log()


def test_the_bound_is_that_of_the_sentences_own_limit() -> None:
    """With alpha 1 the same prefix can still win within 9 tokens, but not within 2."""
    frontier = Beam(beam_size=2, length_penalty=1.0).begin(torch.tensor([9, 2]), EOS)
    row = [0.1, 0.3, 0.5, 0.1]
    advance = frontier.advance(table(row, row, row, row))
    assert advance.open_N.tolist() == [False, True, False, False]


@pytest.mark.parametrize("strategy", [Greedy(), Beam(beam_size=2), Sample()], ids=str)
def test_a_limit_takes_no_memory(strategy: Strategy) -> None:
    """Nothing is allocated for lengths that no text reaches."""
    tracemalloc.start()
    try:
        frontier = strategy.begin(torch.tensor([10**7]), EOS)
        advance = frontier.advance(table(*[[0.1, 0.1, 0.8]] * strategy.beam_size))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert math.isfinite(advance.scores_N[0].item())


def test_a_beam_gives_no_more_than_it_holds() -> None:
    """The error is for the user and names the option."""
    with pytest.raises(InputError, match="n_best"):
        Beam(beam_size=2, n_best=3)
