"""How scores become weights, and the paper's formula as it stands."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import additive
from dragoman.nn.position.place import Bias
from dragoman.nn.softcap import soft_cap


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """`weights = dropout(softmax(cap(scale q k^T) + bias + mask))`, `cap(z) = c tanh(z / c)`."""

    scale: float
    """On the products; the paper's is `d^-0.5`."""
    soft_cap: float | None = None
    """`c`: no score gets further from 0 than this (Gemma 2, section 2); none unless given."""
    bias: Bias | None = None
    """Added to the scores by distance (T5, ALiBi)."""
    dropout: Dropout | None = None
    """On the weights, in training."""

    def cap(self, scores: Tensor) -> Tensor:
        """Bound the scores smoothly."""
        return soft_cap(scores, self.soft_cap)

    def drop(self, weights: Tensor) -> Tensor:
        """Drop weights in training."""
        return weights if self.dropout is None else self.dropout(weights)

    def bias_of(self, distance_TS: Tensor) -> Tensor:
        """Return the bias of distances `(..., T, S)` for each head: `(..., H, T, S)`."""
        if self.bias is None:
            raise ValueError("this weighting has no bias")
        *blocks, num_queries, num_keys = distance_TS.shape
        if not blocks:
            return self.bias(distance_TS)
        bias_HTS = self.bias(distance_TS.reshape(-1, num_keys))
        return torch.movedim(bias_HTS.unflatten(1, (*blocks, num_queries)), 0, -3)

    @property
    def dropout_p(self) -> float:
        """The probability with which a weight is dropped now."""
        return self.dropout.p if self.dropout is not None and self.dropout.training else 0.0


def distances(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Return `j - i` for queries that are the last `T` of the `S` positions: shape `(T, S)`."""
    keys_S = torch.arange(num_keys, device=device)
    queries_T = torch.arange(num_keys - num_queries, num_keys, device=device)
    return keys_S[None, :] - queries_T[:, None]


def reference_attention(
    q_BHTd: Tensor,
    k_BKSd: Tensor,
    v_BKSd: Tensor,
    mask: Tensor | None = None,
    weighting: Weighting | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the paper's formula (section 3.2.1) as it stands: outputs and weights.

    `weights = softmax(q k^T / sqrt(d))` over the keys that the mask lets a query see, and
    `out = weights v`; with the scale, the cap and the bias of `weighting` where it is given, and
    without its dropout. A query that sees nothing has weights and an output of zeros. This is the
    readable twin of every fast path and the one that returns the weights `(B, H, T, S)`. Of fewer
    key-value heads than heads, each stands in for a group of neighbours.
    """
    weighting = weighting or Weighting(scale=q_BHTd.shape[-1] ** -0.5)
    group = q_BHTd.shape[1] // k_BKSd.shape[1]
    k_BHSd, v_BHSd = (x.repeat_interleave(group, dim=1) for x in (k_BKSd, v_BKSd))
    scores_BHTS = weighting.cap(q_BHTd @ k_BHSd.transpose(-2, -1) * weighting.scale)
    if weighting.bias is not None:
        distance_TS = distances(q_BHTd.shape[2], k_BHSd.shape[2], q_BHTd.device)
        scores_BHTS = scores_BHTS + weighting.bias(distance_TS).to(scores_BHTS.dtype)
    if mask is None:
        weights_BHTS = scores_BHTS.softmax(dim=-1)
    else:
        weights_BHTS = (scores_BHTS + additive(mask, scores_BHTS.dtype)).softmax(dim=-1)
        weights_BHTS = weights_BHTS.masked_fill(~mask, 0.0)
    return weights_BHTS @ v_BHSd, weights_BHTS
