"""Scores: length normalisation, and the probability of a given target.

The log-probability of a sequence is the sum over its tokens,
`log p(y | x) = sum_t log p(y_t | y_<t, x)`; longer sequences have smaller ones. Wu et al. 2016
("Google's Neural Machine Translation System", section 7) therefore compare

    score(y) = log p(y | x) / lp(n),    lp(n) = ((5 + n) / 6) ** alpha

where n counts the generated tokens, including the end-of-sentence token. `alpha = 0` compares
plain sums; lp(1) = 1 for any alpha.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.ranges import NonNegative, check_range

LARGEST = torch.finfo(torch.float32).max


def length_penalty(length: int, alpha: float) -> float:
    """Return `lp(n)`, rounded to float32; the largest float32 if it overflows."""
    base = (5 + length) / 6
    fits = alpha * math.log(base) < math.log(LARGEST)
    return float(np.float32(base**alpha if fits else LARGEST))


def score_pairs(logits_BTV: Tensor, tgt_out_BT: Tensor, pad_id: int) -> Tensor:
    """Return `log p(y_t | y_<t, x)` of given targets, float32 (B, T), 0.0 at padding.

    The sums equal those of a search with processors only if these have already changed the
    logits.
    """
    if logits_BTV.shape[:2] != tgt_out_BT.shape:
        shapes = f"{tuple(logits_BTV.shape)} and {tuple(tgt_out_BT.shape)}"
        raise ValueError(f"logits (B, T, V) and targets (B, T) disagree: {shapes}")
    losses_M = F.cross_entropy(
        logits_BTV.flatten(0, 1).float(),
        tgt_out_BT.flatten(),
        ignore_index=pad_id,
        reduction="none",
    )
    return -losses_M.view(tgt_out_BT.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """The result of forced decoding for a batch of pairs."""

    token_log_probs_BT: Tensor
    """Log-probability of each target token, 0.0 at padding."""
    log_prob_B: Tensor
    """Their sum for each pair (added up in float64)."""
    score_B: Tensor
    """The sum, normalised for length as in a search with the same alpha."""


@torch.inference_mode()
def force(
    forward: Callable[[Tensor, Tensor], Tensor],
    pair: tuple[Tensor, Tensor, Tensor],
    *,
    pad_id: int,
    alpha: float = 0.0,
) -> Forced:
    """Score given targets: one pass of the decoder instead of a search.

    `forward` maps `(src_BS, tgt_in_BT)` to `logits_BTV`; `pair` is src_BS, tgt_in_BT
    (bos + y) and tgt_out_BT (y + eos).
    """
    check_range("length_penalty", alpha, NonNegative)
    src_BS, tgt_in_BT, tgt_out_BT = pair
    token_log_probs_BT = score_pairs(forward(src_BS, tgt_in_BT), tgt_out_BT, pad_id)
    log_prob_B = token_log_probs_BT.double().sum(1)
    lengths_B = (tgt_out_BT != pad_id).sum(1)
    penalties_B = log_prob_B.new_tensor([length_penalty(n, alpha) for n in lengths_B.tolist()])
    return Forced(
        token_log_probs_BT=token_log_probs_BT,
        log_prob_B=log_prob_B,
        score_B=log_prob_B / penalties_B,
    )
