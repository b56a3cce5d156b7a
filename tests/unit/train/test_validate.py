"""What a validation found."""

import math

import pytest
import torch
from tests.unit.train.made import make_model

from dragoman.train.job import Validation, evaluating, is_better


def test_which_is_better() -> None:
    """A smaller loss, a larger BLEU or chrF is better; the same model or a NaN is not."""
    one, two = ({"loss": x, "bleu": x, "chrf": x} for x in (1.0, 2.0))
    assert is_better(one, two, "loss")
    assert is_better(two, one, "bleu")
    assert is_better(two, one, "chrf")
    assert not is_better(one, one, "loss")
    assert not is_better(one, one, "bleu")
    assert not is_better({"loss": float("nan")}, one, "loss")
    assert not is_better({"loss": 1.0, "bleu": float("nan")}, two, "bleu")
    assert is_better(two, None, "loss")


def test_a_draw_goes_to_the_smaller_loss() -> None:
    """Of two models with the same score the one with the smaller loss is better.

    Scores below 1 count as the same: the loss tells more than a BLEU of 0.4.
    """
    for score, chance in ((0.0, 0.4), (20.0, 20.0)):
        first, later = {"loss": 6.5, "bleu": chance}, {"loss": 6.0, "bleu": score}
        assert is_better(later, first, "bleu")
        assert not is_better(first, later, "bleu")
    assert is_better({"loss": 7.0, "bleu": 1.1}, {"loss": 6.0, "bleu": 0.9}, "bleu")


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_nan_is_beaten(metric: str) -> None:
    """A validation of NaN that came first is worse than any number, and than nothing it is not."""
    failed, poor = {"loss": math.nan, "bleu": math.nan}, {"loss": 99.0, "bleu": 0.0}
    assert is_better(poor, failed, metric)
    assert not is_better(failed, poor, metric)
    assert not is_better(failed, failed, metric)


def test_in_words() -> None:
    """A validation reads as one short line."""
    validation = Validation(loss=1.0, diagnostics={"gain": 3.0}, scores={"bleu": 12.0})
    assert str(validation) == "loss 1.000, bleu 12.00"
    assert validation.to_dict() == {"loss": 1.0, "gain": 3.0, "bleu": 12.0}


def test_evaluating() -> None:
    """Inside there is no dropout and no gradient; afterwards the model learns again."""
    model, modes = make_model(), []
    with evaluating(model) as device:
        modes.append((model.training, torch.is_inference_mode_enabled()))
    modes.append((model.training, torch.is_inference_mode_enabled()))
    assert modes == [(False, True), (True, False)]
    assert device == torch.device("cpu")
