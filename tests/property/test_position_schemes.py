"""Laws of the position schemes, each against an independently written formula."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.family import DECODER, make_decoder
from tests.unit.models.small import distance, random_ids

from dragoman.errors import InputError
from dragoman.nn import (
    ALiBi,
    DynamicScaling,
    LearnedPositions,
    LinearScaling,
    Llama3Scaling,
    NoPositions,
    PositionScheme,
    RelativeBias,
    Rotary,
    Sinusoidal,
    SinusoidalPositions,
    YaRN,
    rotate,
)
from dragoman.nn.position.bias import alibi_slopes
from dragoman.nn.position.scheme import Pairing
from dragoman.nn.position.sinusoidal import Exponent, Layout

SEEDS = st.integers(0, 2**32)
PAIRINGS: st.SearchStrategy[Pairing] = st.sampled_from(["halves", "adjacent"])


@given(SEEDS, PAIRINGS, st.integers(1, 8), st.integers(0, 10**5), st.floats(10.0, 1e6))
@settings(max_examples=100)
def test_rotation_is_the_complex_formula(
    seed: int, pairing: Pairing, half: int, first: int, base: float
) -> None:
    """A pair is a complex number; position `p` multiplies it by `exp(i p base^(-2k/d))`."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 3, 5, 2 * half))
    a, b = (x[..., :half], x[..., half:]) if pairing == "halves" else (x[..., ::2], x[..., 1::2])
    theta = base ** (-np.arange(half) / half)
    turned = (a + 1j * b) * np.exp(1j * np.arange(first, first + 5)[:, None] * theta)
    expected = np.empty_like(x)
    if pairing == "halves":
        expected[..., :half], expected[..., half:] = turned.real, turned.imag
    else:
        expected[..., ::2], expected[..., 1::2] = turned.real, turned.imag
    rotation = Rotary(base=base, pairing=pairing).make_rotation(2 * half)
    x_BHLd = torch.from_numpy(x)
    got = rotate(x_BHLd, rotation.angles(range(first, first + 5), x_BHLd))
    assert distance(got, torch.from_numpy(expected)) < 1e-10


def test_alibi_slopes_are_the_papers() -> None:
    """Eight heads: 1/2 ... 1/256; sixteen: the roots between them too; twelve: eight of one and
    every other of the next (section 3 and the code of the paper).
    """
    assert alibi_slopes(8) == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(16) == pytest.approx([2.0 ** (-n / 2) for n in range(1, 17)])
    assert alibi_slopes(12) == pytest.approx(
        [2.0**-n for n in range(1, 9)] + [2.0 ** (-n / 2) for n in (1, 3, 5, 7)]
    )
    assert alibi_slopes(1) == [2.0**-8]


def test_alibi_falls_with_the_distance() -> None:
    """`bias[h, i, j] = -m_h |i - j|`."""
    bias = ALiBi().make_bias(2, bidirectional=True)(torch.tensor([[-3, 0, 2]]))
    expected = [[-3 * m, 0.0, -2 * m] for m in alibi_slopes(2)]
    torch.testing.assert_close(bias[:, 0], torch.tensor(expected))


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize("exponent", ["d/2", "d/2-1"])
@given(half=st.integers(2, 20), first=st.integers(0, 5), start=st.integers(0, 300))
@settings(max_examples=30)
def test_sinusoidal_choices_are_their_formulas(
    layout: Layout, exponent: Exponent, half: int, first: int, start: int
) -> None:
    """`sin(p / 10000^(i / steps))` and its cosine, side by side or in two halves, from `first`."""
    steps = half if exponent == "d/2" else half - 1
    places = np.arange(start + first, start + first + 7)[:, None]
    angles = places / 10000.0 ** (np.arange(half) / steps)
    expected = np.empty((7, 2 * half))
    if layout == "halves":
        expected[:, :half], expected[:, half:] = np.sin(angles), np.cos(angles)
    else:
        expected[:, ::2], expected[:, 1::2] = np.sin(angles), np.cos(angles)
    scheme = Sinusoidal(layout=layout, exponent=exponent, first=first)
    table = SinusoidalPositions(2 * half, scheme, initial_length=8)
    zeros = torch.zeros(1, 7, 2 * half, dtype=torch.float64)
    for places_of in (range(start, start + 7), torch.arange(start, start + 7)[None]):
        assert distance(table(zeros, places_of)[0], torch.from_numpy(expected)) < 1e-10


SCHEMES: dict[str, PositionScheme] = {
    "sinusoidal": Sinusoidal(),
    "halves": Sinusoidal(layout="halves", exponent="d/2-1", first=2),
    "rotary": Rotary(),
    "rotary, linear": Rotary(scaling=LinearScaling(factor=4.0)),
    "rotary, dynamic": Rotary(scaling=DynamicScaling(factor=2.0, trained_length=20)),
    "rotary, yarn": Rotary(scaling=YaRN(factor=4.0, trained_length=20)),
    "rotary, llama 3": Rotary(scaling=Llama3Scaling(trained_length=20)),
    "relative bias": RelativeBias(),
    "alibi": ALiBi(),
    "none": NoPositions(),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_but_the_learned_one_goes_beyond_what_it_has_seen(name: str) -> None:
    """A text longer than any before runs, and its beginning is unchanged."""
    model = make_decoder(replace(DECODER, positions=SCHEMES[name]))
    ids_BL = random_ids(0, 1, 700)
    with torch.no_grad():
        short, long = model(ids_BL[:, :20]), model(ids_BL)
    assert bool(long.isfinite().all())
    if name != "rotary, dynamic":  # whose frequencies all change with the length
        assert distance(long[:, :20], short) < 1e-10


@given(st.integers(1, 50), st.integers(1, 20))
@settings(max_examples=30)
def test_learned_positions_end_where_they_end(max_length: int, beyond: int) -> None:
    """The last position has a vector; a later one is an error that names both numbers."""
    table = LearnedPositions(max_length, 4)
    x = torch.zeros(1, 1, 4)
    assert torch.equal(table(x, range(max_length - 1, max_length))[0, 0], table.weight[-1])
    place = max_length + beyond - 1
    for places in (range(place, place + 1), torch.tensor([[place]])):
        with pytest.raises(InputError, match=rf"{place + 1} tokens.*{max_length} only"):
            table(x, places)
