"""Counts in sentences."""

import pytest

from dragoman.wording import counted, short


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, ("step",), "0 steps"),
        (1, ("step",), "1 step"),
        (1250, ("step",), "1,250 steps"),
        (1.0, ("step",), "1 step"),
        (0.5, ("hour",), "0.5 hours"),
        (0, ("pair is", "pairs are"), "0 pairs are"),
        (1, ("pair is", "pairs are"), "1 pair is"),
    ],
)
def test_one_alone_is_singular(count: float, noun: tuple[str, ...], said: str) -> None:
    """A part of one is not; thousands have their comma, and another plural may be given."""
    assert counted(count, *noun) == said


@pytest.mark.parametrize(
    ("number", "text"), [(41120, "41.1 k"), (1.25e6, "1.25 M"), (999, "999"), (3e12, "3 T")]
)
def test_counts_are_written_short(number: float, text: str) -> None:
    """Three digits and a letter."""
    assert short(number) == text
