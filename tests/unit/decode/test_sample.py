"""Strategies on tables of probabilities: limits, what may be drawn, how often, and from what."""

import math
import tracemalloc
from collections import Counter

import pytest
import torch
from torch import Tensor

from dragoman.decode import Beam, Greedy, Sample, Strategy
from dragoman.decode.sample import keep_best
from dragoman.errors import InputError

EOS = 2
ROW = [0.05, 0.4, 0.1, 0.25, 0.2]


def table(*rows: list[float]) -> Tensor:
    """Return log-probabilities of these probabilities."""
    return torch.tensor(rows).log()


def draw(options: Sample, row: list[float], count: int) -> Counter[int]:
    """Count how often each token is drawn, in many sequences of one step."""
    frontier = options.begin(torch.full((count,), 9), EOS)
    return Counter(frontier.advance(table(row).expand(count, -1)).tokens_N.tolist())


def kept(options: Sample, row: list[float]) -> dict[int, float]:
    """Return the tokens that may be drawn, with their probabilities."""
    weights_Nk, tokens_Nk = keep_best(table(row), options)
    pairs = zip(tokens_Nk[0].tolist(), (weights_Nk[0] / weights_Nk.sum()).tolist(), strict=True)
    return {token: weight for token, weight in pairs if weight > 0}


def chi_square(found: Counter[int], expected: dict[int, float], count: int) -> float:
    """Compute Pearson's statistic; its mean is the number of tokens less 1."""
    assert set(found) <= set(expected)
    return sum((found[i] - count * p) ** 2 / (count * p) for i, p in expected.items())


@pytest.mark.parametrize(
    "options",
    [
        Sample(),
        Sample(temperature=0.5),
        Sample(temperature=3.0),
        Sample(top_k=3),
        Sample(top_p=0.8),
        Sample(min_p=0.3),
        Sample(temperature=1.5, top_k=4, top_p=0.9, min_p=0.2),
    ],
)
def test_tokens_are_drawn_as_often_as_they_are_probable(options: Sample) -> None:
    """Pearson's statistic over 20,000 sequences is below what 1 of 100,000 seeds exceeds."""
    expected = kept(options, ROW)
    bound = {1: 19.5, 2: 23.0, 3: 25.9, 4: 28.5}[len(expected) - 1]
    assert chi_square(draw(options, ROW, 20_000), expected, 20_000) < bound


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_temperature_is_a_power(temperature: float) -> None:
    """`p ** (1 / temperature)`, normalised; with 1 the distribution is the model's."""
    powers = [p ** (1 / temperature) for p in ROW]
    expected = {i: power / sum(powers) for i, power in enumerate(powers)}
    assert kept(Sample(temperature=temperature), ROW) == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-30])
def test_the_lowest_temperatures_are_greedy(temperature: float) -> None:
    """However small the temperature, only each row's most probable token keeps a weight."""
    weights_Nk, tokens_Nk = keep_best(
        table(ROW, [0.9, 0.1, 0, 0, 0]), Sample(temperature=temperature)
    )
    assert weights_Nk.tolist() == [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert tokens_Nk.tolist() == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("options", [Sample(), Sample(top_k=3), Sample(top_p=0.8)])
def test_what_may_be_drawn_is_on_the_device_of_the_model(options: Sample) -> None:
    """Weights and tokens are on its device: "meta" stands for a GPU here."""
    for kept_Nk in keep_best(torch.zeros(2, 5, device="meta"), options):
        assert kept_Nk.device.type == "meta"


@pytest.mark.parametrize(("number", "token"), [(0.0, 1), (math.nextafter(1.0, 0.0), 3)])
def test_the_ends_of_the_random_numbers_have_tokens(number: float, token: int) -> None:
    """The least and the greatest number select tokens with a weight, whatever the weights' sum."""

    class Fixed:
        def random(self) -> float:
            return number

    for scale in (1.0, 0.7, 0.3, 1e-9):
        frontier = Sample().begin(torch.tensor([9]), EOS)
        frontier._chooser._generators = [Fixed()]  # type: ignore[attr-defined]
        row = [0.0, scale * 0.1, scale * 0.3, scale * 0.6, 0.0]
        assert frontier.advance(table(row)).tokens_N.tolist() == [token]


def test_seeds_and_numbers_differ() -> None:
    """Two seeds, and two sequences of one seed, draw differently."""

    def drawn(seed: int, number: int) -> list[float]:
        frontier = Sample(seed=seed, numbers=(number,)).begin(torch.tensor([99]), EOS)
        return [frontier.advance(table([0.125] * 8)).tokens_N.item() for _ in range(30)]

    assert drawn(1, 0) == drawn(1, 0)
    assert len({tuple(drawn(*pair)) for pair in ((1, 0), (2, 0), (1, 1), (0, 1))}) == 4


def test_numbers_belong_to_the_sequences() -> None:
    """Each sequence needs one number."""
    with pytest.raises(ValueError, match="2 numbers for 3 sequences"):
        Sample(numbers=(0, 1)).begin(torch.tensor([9, 9, 9]), EOS)


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
