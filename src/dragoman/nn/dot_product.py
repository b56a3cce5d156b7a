"""Scaled dot-product attention (paper, section 3.2.1): masks, the formula and its options.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d) + mask) V

Masks are boolean, True means *may attend*; they combine with `&` and broadcast to `(B, H, T, S)`.
Only this file makes the additive form that the products need.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.nn.cpu.elementwise import Dropout


def reference_attention(
    q_BHTd: Tensor,
    k_BKSd: Tensor,
    v_BKSd: Tensor,
    mask: Tensor | None = None,
    scoring: "Scoring | None" = None,
) -> tuple[Tensor, Tensor]:
    """Compute outputs and weights by the paper's formula (section 3.2.1).

    `weights = softmax(q k^T / sqrt(d))` over the keys that the mask lets a query see, and
    `out = weights v`. If `scoring` is given, its scale, cap and bias apply, but not its dropout. A
    query that sees nothing has zero weights and a zero output. Every fast path is tested against
    this one, which returns the weights `(B, H, T, S)`. If there are fewer key-value heads than
    heads, each serves a group of neighbours.
    """
    scoring = scoring or Scoring(scale=q_BHTd.shape[-1] ** -0.5)
    group = q_BHTd.shape[1] // k_BKSd.shape[1]
    k_BHSd, v_BHSd = (x.repeat_interleave(group, dim=1) for x in (k_BKSd, v_BKSd))
    scores_BHTS = scoring.cap(q_BHTd @ k_BHSd.transpose(-2, -1) * scoring.scale)
    if scoring.bias is not None:
        distance_TS = distances(q_BHTd.shape[2], k_BHSd.shape[2], q_BHTd.device)
        scores_BHTS = scores_BHTS + scoring.bias(distance_TS).to(scores_BHTS.dtype)
    if mask is None:
        weights_BHTS = scores_BHTS.softmax(dim=-1)
    else:
        weights_BHTS = (scores_BHTS + additive(mask, scores_BHTS.dtype)).softmax(dim=-1)
        weights_BHTS = weights_BHTS.masked_fill(~mask, 0.0)
    return weights_BHTS @ v_BHSd, weights_BHTS


def padding_mask(ids_BS: Tensor, pad_id: int) -> Tensor:
    """Hide padding keys: `mask[b, 0, 0, s] = (ids[b, s] != pad_id)`, shape `(B, 1, 1, S)`."""
    return (ids_BS != pad_id)[:, None, None, :]


def length_mask(lengths_B: Tensor, num_keys: int) -> Tensor:
    """Hide the keys beyond each length: `mask[b, 0, 0, s] = (s < lengths[b])`, `(B, 1, 1, S)`."""
    return (torch.arange(num_keys, device=lengths_B.device) < lengths_B[:, None])[:, None, None, :]


def causal_mask(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Let query `i` see the keys up to its own position: shape `(T, S)`.

    The queries are the last `T` of the `S` positions (the earlier ones are in a cache), so query
    `i` is at position `S - T + i`, and `mask[i, j] = (j <= S - T + i)`.
    """
    square = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return square.tril(num_keys - num_queries)


def both_masks(own: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """Combine a pattern's own mask with another one; None if both are None."""
    if own is None or mask is None:
        return mask if own is None else own
    return own & mask


def distances(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Return `j - i` for queries that are the last `T` of the `S` positions: shape `(T, S)`."""
    keys_S = torch.arange(num_keys, device=device)
    queries_T = torch.arange(num_keys - num_queries, num_keys, device=device)
    return keys_S[None, :] - queries_T[:, None]


def check_mask(mask: Tensor, shape_BHTS: tuple[int, int, int, int]) -> None:
    """Reject a mask that is not boolean or does not broadcast to `(B, H, T, S)`.

    The dtype is checked because an additive mask of zeros and minus infinities, read as boolean,
    would hide exactly what it should show.
    """
    if mask.dtype is not torch.bool:
        raise TypeError(f"a mask must be boolean, True where a query may attend; got {mask.dtype}")
    wanted = shape_BHTS[max(0, 4 - mask.dim()) :]
    if mask.dim() > 4 or any(m not in (1, w) for m, w in zip(mask.shape, wanted, strict=True)):
        raise ValueError(f"a mask of {tuple(mask.shape)} does not broadcast to {shape_BHTS}")


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 0 where `mask` is True and a number that the softmax turns into exactly 0 elsewhere.

    The number is half the lowest finite one: added to any score it neither overflows (as
    `-1e9` does in float16) nor turns a fully masked row into NaN (as `-inf` does).
    """
    zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return zeros.masked_fill_(~mask, torch.finfo(dtype).min / 2)


Bias = Callable[[Tensor], Tensor]
"""From distances `j - i` (key minus query), `(T, S)`, to score biases, `(H, T, S)`."""


def soft_cap(x: Tensor, cap: float | None) -> Tensor:
    """Compute `c tanh(x / c)`: close to `x` near zero, never further from zero than `c`.

    For scores and for logits (Gemma 2, section 2). Without a cap, return `x`.
    """
    return x if cap is None else cap * torch.tanh(x / cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How scores become weights: `dropout(softmax(cap(scale q k^T) + bias + mask))`."""

    scale: float
    """Factor of the products; the paper's is `d^-0.5`."""
    soft_cap: float | None = None
    """Bound of the scores, `cap(z) = c tanh(z / c)`; none by default."""
    bias: Bias | None = None
    """Added to the scores by distance (T5, ALiBi)."""
    dropout: Dropout | None = None
    """Dropout on the weights, in training."""

    def cap(self, scores: Tensor) -> Tensor:
        """Apply the soft cap."""
        return soft_cap(scores, self.soft_cap)

    def drop(self, weights: Tensor) -> Tensor:
        """Apply dropout to the weights in training."""
        return weights if self.dropout is None else self.dropout(weights)

    @property
    def dropout_p(self) -> float:
        """The current probability of dropping a weight, 0 outside training."""
        return self.dropout.p if self.dropout is not None and self.dropout.training else 0.0
