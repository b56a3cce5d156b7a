"""Length normalisation and forced decoding."""

import math

import pytest
import torch
from tests.unit.decode.tables import BOS, EOS, PAD, TableModel, limits, random_table, sources
from torch import Tensor

from dragoman.decode import Beam, force, length_penalty, score_pairs, search
from dragoman.errors import InputError


def test_the_length_penalty_is_gnmts() -> None:
    """lp(n) = ((5 + n) / 6) ** alpha."""
    for n in range(8):
        assert length_penalty(n, 1.0) == pytest.approx((5 + n) / 6)
        assert length_penalty(n, 0.0) == 1.0
    assert length_penalty(7, 0.5) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("alpha", [30.0, 500.0, 1e300])
def test_a_length_penalty_has_a_bound(alpha: float) -> None:
    """Beyond the largest float32 it stays there: it never falls, and scores stay below 0."""
    penalties = torch.tensor([length_penalty(n, alpha) for n in range(301)])
    assert bool((penalties.diff() >= 0).all())
    assert penalties[-1].item() == torch.finfo(torch.float32).max
    assert (-20.0 / penalties[-1]).item() < (-10.0 / penalties[-1]).item() < 0.0


def test_scores_of_pairs_are_the_logits_log_softmax_at_the_target() -> None:
    """Token by token; padding counts nothing, whatever the logits there are."""
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


def test_forcing_a_found_hypothesis_gives_its_score() -> None:
    """What the search says about its results, forced decoding says too."""
    table, src_BS = random_table(5, 7), sources([3, EOS], [4, 5, EOS])

    def forward(src_BS: Tensor, tgt_in_BT: Tensor) -> Tensor:
        rows = []
        for src, tgt_in in zip(src_BS.tolist(), tgt_in_BT.tolist(), strict=True):
            source = tuple(token for token in src if token != PAD)
            rows.append([table(source, tuple(tgt_in[1 : t + 1])) for t in range(len(tgt_in))])
        return torch.tensor(rows)

    def never_pad(src: tuple[int, ...], prefix: tuple[int, ...]) -> list[float]:
        return [-30.0 if token in (PAD, BOS) else x for token, x in enumerate(table(src, prefix))]

    beam = Beam(beam_size=3, length_penalty=0.8)
    found = search(TableModel(table), src_BS, beam, limits=limits(12, 12))
    for sentence, [best] in enumerate(found):
        if PAD in best.ids:
            continue
        tgt_out = [*best.ids, *([EOS] if best.stopped == "eos" else [])]
        tgt_in_BT = torch.tensor([[BOS, *tgt_out[:-1], PAD]])
        tgt_out_BT = torch.tensor([[*tgt_out, PAD]])
        pair = (src_BS[sentence : sentence + 1], tgt_in_BT, tgt_out_BT)
        forced = force(forward, pair, pad_id=PAD, alpha=0.8)
        assert forced.log_prob_B.item() == pytest.approx(best.log_prob, rel=1e-5)
        assert forced.score_B.item() == pytest.approx(best.score, rel=1e-5)
        token_log_probs = forced.token_log_probs_BT[0].tolist()
        assert token_log_probs == pytest.approx([*best.token_log_probs, 0.0], rel=1e-5)


def test_a_negative_alpha_is_refused() -> None:
    """Forced decoding has the same limits as the search."""
    pair = (torch.zeros(1, 1).long(), torch.zeros(1, 1).long(), torch.zeros(1, 1).long())
    with pytest.raises(InputError, match="length_penalty"):
        force(lambda src_BS, _: torch.zeros(*src_BS.shape, 3), pair, pad_id=PAD, alpha=-1)
