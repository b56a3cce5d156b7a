"""The two ways in which dense attention runs: plain products, and torch's fused kernel.

Every pattern ends here, with tensors that it has cut and laid out so that little of what is
computed is hidden. Leading axes (written `...`) may be a batch, or a batch and the blocks of a
sequence. Keys and values may have fewer heads than queries: `K` divides `H`, and `H / K`
neighbouring query heads share one.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.nn.cache import KeyValue
from dragoman.nn.mask import additive, hide_blind_rows
from dragoman.nn.patterns.weighting import Weighting, distances
from dragoman.nn.products import head_product

VECTOR_KEYS = 16  # float32 numbers in the widest vector register of a CPU


def needs_products(q_BHTd: Tensor, weighting: Weighting) -> bool:
    """Whether the fused kernel cannot serve this weighting without a `T x S` matrix.

    It has no soft-cap; a bias is a matrix; and on a CPU it drops weights only as a matrix.
    """
    drops = weighting.dropout_p > 0.0 and q_BHTd.device.type == "cpu"
    return weighting.soft_cap is not None or weighting.bias is not None or drops


def attention_by_products(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    weighting: Weighting,
    distance_TS: Tensor | None = None,
) -> Tensor:
    """Return `softmax(cap(scale q k^T) + bias + mask) v`, `(..., H, T, d)`.

    `distance` is `j - i`, `(..., T, S)`, where the queries are not the last `T` of the positions.
    Query heads that share a key-value head are rows of one product, so nothing is repeated.
    """
    scores_BHTS = shared_product(q_BHTd * weighting.scale, kv.k_BKSd.transpose(-2, -1))
    scores_BHTS = adjust(scores_BHTS, mask, weighting, distance_TS)
    weights_BHTS = weighting.drop(_softmax(scores_BHTS))
    out_BHTd = shared_product(weights_BHTS, kv.v_BKSd)
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


def fused_attention(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    weighting: Weighting,
    *,
    is_causal: bool = False,
) -> Tensor:
    """Return the same from torch's fused kernel, which keeps no `T x S` matrix of scores.

    For what `needs_products` lets through. `is_causal` needs as many queries as keys.
    """
    *batch, heads, num_queries, head_dim = q_BHTd.shape
    k_BKSd, v_BKSd = kv
    added = None
    if mask is not None:
        added = additive(mask, q_BHTd.dtype)[(None,) * max(0, 3 - mask.dim())]
        added = added.expand(*batch, *added.shape[-3:]).flatten(0, -4)
    if heads != k_BKSd.shape[-3] and not _kernel_shares_heads(q_BHTd, mask):
        group = heads // k_BKSd.shape[-3]
        k_BKSd, v_BKSd = (x.repeat_interleave(group, dim=-3) for x in kv)
    out_BHTd = F.scaled_dot_product_attention(
        q_BHTd.flatten(0, -4),
        k_BKSd.flatten(0, -4),
        v_BKSd.flatten(0, -4),
        attn_mask=added,
        dropout_p=weighting.dropout_p,
        is_causal=is_causal,
        scale=weighting.scale,
        enable_gqa=heads != k_BKSd.shape[-3],
    ).view(*batch, heads, num_queries, head_dim)
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


def _kernel_shares_heads(q_BHTd: Tensor, mask: Tensor | None) -> bool:
    """Whether a kernel takes fewer key-value heads; else torch would keep a `T x S` matrix.

    Of those of a GPU flash attention alone does, which takes half precision and no mask.
    """
    half = q_BHTd.dtype in (torch.float16, torch.bfloat16)
    return q_BHTd.device.type == "cpu" or (mask is None and half)


def shared_product(a_BHTx: Tensor, b_BKxy: Tensor) -> Tensor:
    """Return `a @ b` by head, `(..., H, T, y)`, where `b` has `K` heads and `K` divides `H`."""
    heads, kv_heads = a_BHTx.shape[-3], b_BKxy.shape[-3]
    if heads == kv_heads:
        return head_product(a_BHTx, b_BKxy)
    rows = a_BHTx.unflatten(-3, (kv_heads, heads // kv_heads)).flatten(-3, -2)
    out: Tensor = head_product(rows, b_BKxy).unflatten(-2, (heads // kv_heads, -1))
    return out.flatten(-4, -3)


def adjust(
    scores_BHTS: Tensor,
    mask: Tensor | None,
    weighting: Weighting,
    distance_TS: Tensor | None = None,
) -> Tensor:
    """Cap the scores, add the bias of their distances, and hide what the mask hides."""
    scores_BHTS = weighting.cap(scores_BHTS)
    if weighting.bias is not None:
        if distance_TS is None:
            num_queries, num_keys = scores_BHTS.shape[-2:]
            distance_TS = distances(num_queries, num_keys, scores_BHTS.device)
        scores_BHTS = scores_BHTS + weighting.bias_of(distance_TS).to(scores_BHTS.dtype)
    if mask is not None:
        scores_BHTS = scores_BHTS + additive(mask, scores_BHTS.dtype)
    return scores_BHTS


def _softmax(scores_BHTS: Tensor) -> Tensor:
    """Return the softmax over the keys; masked keys added at the end change no bit of it.

    A CPU sums the exponentials of fewer keys than fill a vector register in another order than
    those of more keys, so a few keys are filled up to a register with keys that are never seen.
    """
    missing = VECTOR_KEYS - scores_BHTS.shape[-1]
    if missing <= 0:
        return scores_BHTS.softmax(dim=-1)
    lowest = torch.finfo(scores_BHTS.dtype).min
    return F.pad(scores_BHTS, (0, missing), value=lowest).softmax(dim=-1)[..., :-missing]
