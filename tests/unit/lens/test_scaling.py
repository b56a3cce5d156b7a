"""The picture of a scaling law."""

from pathlib import Path

import pytest

from dragoman.lens.scaling import ScalingPicture, plot_scaling
from dragoman.wording import short


def law(size: float, tokens: float) -> float:
    """Some law."""
    return float(1.0 + 30.0 * size**-0.3 + 200.0 * tokens**-0.4)


def picture(*, predicted: bool) -> ScalingPicture:
    """Two sizes on two lengths, and one run beside the curve."""
    runs = [(n, d, law(n, d)) for n in (1e4, 1e5) for d in (1e6, 4e6)]
    return ScalingPicture(
        law=law,
        floor=1.0,
        flops=lambda size: 6 * size,
        best=lambda budget: (budget**0.5, budget**0.5 / 6),
        runs=runs,
        predicted=[(1e6, 8e6, 1.9, 1.8, 2.1)] if predicted else [],
    )


@pytest.mark.parametrize("predicted", [True, False])
def test_the_law_is_drawn(tmp_path: Path, *, predicted: bool) -> None:
    """A PNG comes out, with a run that was predicted or without, the same bytes each time."""
    one = plot_scaling(picture(predicted=predicted), tmp_path / "one.png")
    two = plot_scaling(picture(predicted=predicted), tmp_path / "two.png")
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("number", "text"), [(41120, "41.1 k"), (1.25e6, "1.25 M"), (999, "999"), (3e12, "3 T")]
)
def test_counts_are_written_short(number: float, text: str) -> None:
    """Three digits and a letter."""
    assert short(number) == text
