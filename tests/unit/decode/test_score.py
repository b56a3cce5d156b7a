"""Length normalisation and forced decoding."""

import math

import pytest
import torch
from tests.unit.decode.tables import PAD

from dragoman.decode import force, length_penalty, score_pairs
from dragoman.errors import InputError


@pytest.mark.parametrize("alpha", [30.0, 500.0, 1e300])
def test_a_length_penalty_has_a_bound(alpha: float) -> None:
    """It stops at the largest float32: it never falls, and scores stay below 0."""
    penalties = torch.tensor([length_penalty(n, alpha) for n in range(301)])
    assert bool((penalties.diff() >= 0).all())
    assert penalties[-1].item() == torch.finfo(torch.float32).max
    assert (-20.0 / penalties[-1]).item() < (-10.0 / penalties[-1]).item() < 0.0


def test_scores_of_pairs_are_the_logits_log_softmax_at_the_target() -> None:
    """The scores are per token; padding adds nothing, whatever the logits there are."""
    logits_BTV = torch.tensor(
        [[[0.0, 0.0, 2.0], [1.0, 0.0, 0.0]], [[0.0, 5.0, 0.0], [9.0, 9.0, 9.0]]]
    )
    tgt_out_BT = torch.tensor([[2, 1], [2, PAD]])
    scores_BT = score_pairs(logits_BTV, tgt_out_BT, PAD)
    expected = [
        [2 - math.log(2 + math.exp(2)), -math.log(2 + math.e)],
        [-math.log(2 + math.exp(5)), 0.0],
    ]
    for row, wanted in zip(scores_BT.tolist(), expected, strict=True):
        assert row == pytest.approx(wanted, rel=1e-5)


def test_shapes_that_disagree_are_refused() -> None:
    """Both shapes are in the message."""
    with pytest.raises(ValueError, match=r"\(2, 3, 5\) and \(2, 4\)"):
        score_pairs(torch.zeros(2, 3, 5), torch.zeros(2, 4).long(), PAD)


def test_a_negative_alpha_is_refused() -> None:
    """Forced decoding has the same limits as the search."""
    pair = (torch.zeros(1, 1).long(), torch.zeros(1, 1).long(), torch.zeros(1, 1).long())
    with pytest.raises(InputError, match="length_penalty"):
        force(lambda src_BS, _: torch.zeros(*src_BS.shape, 3), pair, pad_id=PAD, alpha=-1)
