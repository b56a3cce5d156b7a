"""The results of a validation."""

import math
from collections.abc import Mapping

import pytest

from dragoman.train.job import is_better

ONE, TWO = ({"loss": x, "bleu": x, "chrf": x} for x in (1.0, 2.0))
FAILED, POOR = {"loss": math.nan, "bleu": math.nan}, {"loss": 99.0, "bleu": 0.0}


@pytest.mark.parametrize(
    ("better", "worse", "metric"),
    [
        (ONE, TWO, "loss"),
        (TWO, ONE, "bleu"),
        (TWO, ONE, "chrf"),
        (TWO, {"loss": 1.0, "bleu": math.nan}, "bleu"),
        (POOR, FAILED, "loss"),
        (POOR, FAILED, "bleu"),
        ({"loss": 6.0, "bleu": 20.0}, {"loss": 6.5, "bleu": 20.0}, "bleu"),
        ({"loss": 6.0, "bleu": 0.0}, {"loss": 6.5, "bleu": 0.4}, "bleu"),
        ({"loss": 7.0, "bleu": 1.1}, {"loss": 6.0, "bleu": 0.9}, "bleu"),
        ({"loss": 9.0, "bleu": 3.0}, {"loss": math.inf, "bleu": 50.0}, "bleu"),
        ({"loss": 9.0, "bleu": 3.0}, {"loss": math.nan, "bleu": 50.0}, "bleu"),
    ],
)
def test_which_is_better(
    better: Mapping[str, float], worse: Mapping[str, float], metric: str
) -> None:
    """A smaller loss or a larger score is better; ties go to the smaller loss, and NaN loses.

    Scores below 1 are ties: the loss is more informative than a BLEU of 0.4. No score makes up for
    a loss that is not finite, since such a model is never exported. Equal results are not better,
    and any result is better than none.
    """
    assert is_better(better, worse, metric)
    assert not is_better(worse, better, metric)
    for found in (better, worse):
        assert not is_better(found, found, metric)
        assert is_better(found, None, metric)
