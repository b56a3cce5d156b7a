"""Counts in sentences."""

import pytest

from dragoman.wording import counted, short


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (1250, "1,250 steps"), (1.0, "1 step")],
)
def test_one_alone_is_singular(count: float, said: str) -> None:
    """And thousands have their comma."""
    assert counted(count, "step") == said


def test_a_part_of_one_is_plural() -> None:
    """As half an hour is 0.5 hours."""
    assert counted(0.5, "hour") == "0.5 hours"


@pytest.mark.parametrize(("count", "said"), [(0, "0 pairs are"), (1, "1 pair is")])
def test_what_no_s_makes_plural_is_given(count: int, said: str) -> None:
    """Another plural than that by an `s`, or a verb behind it."""
    assert counted(count, "pair is", "pairs are") == said


@pytest.mark.parametrize(
    ("number", "text"), [(41120, "41.1 k"), (1.25e6, "1.25 M"), (999, "999"), (3e12, "3 T")]
)
def test_counts_are_written_short(number: float, text: str) -> None:
    """Three digits and a letter."""
    assert short(number) == text
