"""Local attention in blocks of queries: time and memory grow with the length and not its square.

The queries are cut into blocks of `c`; each block meets its own stretch of `s` keys, which reaches
some positions back and some ahead. All blocks are one batch of small dense attentions.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.nn.cache import KeyValue
from dragoman.nn.patterns.kernels import attention_by_products, fused_attention, needs_products
from dragoman.nn.patterns.weighting import Weighting

STRIP_SCORES = 2**19  # scores of a strip of blocks that a CPU's cache holds


class Reach(NamedTuple):
    """How far a query sees, itself aside: positions behind it and ahead of it."""

    behind: int
    ahead: int

    def allows(self, distance_TS: Tensor) -> Tensor:
        """Whether keys at distances `j - i` can be seen."""
        return (distance_TS >= -self.behind) & (distance_TS <= self.ahead)


class Blocks(NamedTuple):
    """Queries in `n` blocks of `c`, each with `s` keys."""

    q_BnHcd: Tensor
    kv: KeyValue
    """`(B, n, K, s, d)`."""
    mask_BnHcs: Tensor
    """Which keys there are and may be seen; `(B or 1, n, H or 1, c, s)`."""
    distance_cs: Tensor
    """`j - i`, the same for every block."""


def cut(q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, reach: Reach, num_block: int) -> Blocks:
    """Cut the last `T` of `S` positions into blocks of `num_block` queries with their keys.

    A `mask` hides keys, the same from every query: `(B or 1, H or 1, 1, S)`. The last block is
    filled up with queries of zeros.
    """
    num_queries, num_keys, device = q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device
    n, c = -(-num_queries // num_block), num_block
    back, ahead = (-(-far // c) for far in reach)
    start = num_keys - num_queries - back * c
    stop = start + (back + n + ahead) * c

    def stretches(x: Tensor) -> Tensor:
        """Cut axis 2 of `(., ., S, .)` into `(., n, ., s, .)`, with zeros where no keys are."""
        x = x[:, :, max(start, 0) : stop]
        x = F.pad(x, (0, 0, max(-start, 0), max(stop - num_keys, 0)))
        x = x.unflatten(2, (-1, c)).transpose(1, 2)
        return torch.cat([x[:, i : i + n] for i in range(back + 1 + ahead)], dim=3)

    if mask is None:
        mask = torch.ones(1, 1, 1, num_keys, dtype=torch.bool, device=device)
    distance_cs = torch.arange(-back * c, (1 + ahead) * c, device=device)
    distance_cs = distance_cs - torch.arange(c, device=device)[:, None]
    q_BnHcd = F.pad(q_BHTd, (0, 0, 0, n * c - num_queries)).unflatten(2, (n, c)).transpose(1, 2)
    seen_Bn1s1 = stretches(mask[(None,) * (4 - mask.dim())].transpose(-2, -1))
    return Blocks(
        q_BnHcd,
        KeyValue(stretches(kv.k_BKSd), stretches(kv.v_BKSd)),
        seen_Bn1s1.transpose(-2, -1) & reach.allows(distance_cs),
        distance_cs,
    )


def attend_blocks(blocks: Blocks, weighting: Weighting) -> Tensor:
    """Attend in every block: `(B, H, n c, d)`, the filled-up queries still at its end."""
    q_BnHcd, kv, mask_BnHcs, _ = blocks
    if needs_products(q_BnHcd, weighting):
        out_BnHcd = _by_strips(blocks, weighting)
    else:
        out_BnHcd = fused_attention(q_BnHcd, kv, mask_BnHcs, weighting)
    return out_BnHcd.transpose(1, 2).flatten(2, 3)


def _by_strips(blocks: Blocks, weighting: Weighting) -> Tensor:
    """Attend by products to as many blocks at a time as a CPU's cache holds the scores of."""
    q_BnHcd, kv, mask_BnHcs, distance_cs = blocks
    scores_of_block = q_BnHcd[:, 0, ..., 0].numel() * distance_cs.shape[1]
    step = max(1, STRIP_SCORES // scores_of_block)
    parts = (x.split(step, dim=1) for x in (q_BnHcd, *kv, mask_BnHcs))
    outs = [
        attention_by_products(q, KeyValue(k, v), mask, weighting, distance_cs)
        for q, k, v, mask in zip(*parts, strict=True)
    ]
    return torch.cat(outs, dim=1)
