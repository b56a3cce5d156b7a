"""The two ways in which dense attention runs: plain products, and torch's fused kernel.

Every pattern ends here, with tensors laid out so that little of what is computed is masked.
Leading axes (written `...`) may be a batch, or a batch and the blocks of a sequence. Keys and
values may have fewer heads than queries: `K` divides `H`, and `H / K` neighbouring query heads
share one.
"""

from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from dragoman.nn.cache import KeyValue
from dragoman.nn.cpu.products import head_product
from dragoman.nn.dot_product import Scoring, additive, both_masks, causal_mask, distances

PRODUCT_KEYS = 2048  # up to this many keys plain products are best on a CPU
LEARNT_KEYS = 512  # the same when a float32 model trains on rows without padding
BLOCK_QUERIES = 256  # queries at a time if the fused kernel would need a matrix
VECTOR_KEYS = 16  # float32 numbers in the widest vector register of a CPU
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""The kernels of a GPU without cuDNN's, which torch prefers on a Hopper: it makes a plan for each
shape of a batch, which takes longer than the step (`docs/decisions.md`)."""


def dense_attention(
    q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring, *, is_causal: bool = False
) -> Tensor:
    """Compute dense attention the fast way for the device; only this function decides which.

    Measured (`docs/decisions.md`): on a CPU the fused kernel's backward pass takes up to nine times
    as long as plain products on sentences, and its result changes when keys are padded, while
    that of plain products does not (a translation must not depend on its neighbours). Beyond
    `PRODUCT_KEYS` keys, and on every other device, the fused kernel saves memory and time. In
    training, where neighbours do not matter, it does so from fewer keys on if there is no padding.
    If it would need a `T x S` matrix (a soft-cap, a bias, a mask that differs by query), the
    queries are processed in blocks, each with its rows of that matrix.
    """
    num_queries, num_keys = q_BHTd.shape[2], kv.k_BKSd.shape[2]
    if q_BHTd.device.type == "cpu" and num_keys <= _product_keys(q_BHTd, mask, scoring):
        if is_causal:
            mask = both_masks(causal_mask(num_queries, num_keys, q_BHTd.device), mask)
        return attention_by_products(q_BHTd, kv, mask, scoring)
    knows_pattern = not is_causal or (mask is None and num_queries == num_keys)
    if needs_products(q_BHTd, scoring) or differs_by_query(mask) or not knows_pattern:
        return attention_by_blocks(q_BHTd, kv, mask, scoring, is_causal=is_causal)
    return fused_attention(q_BHTd, kv, mask, scoring, is_causal=is_causal)


def _product_keys(q_BHTd: Tensor, mask: Tensor | None, scoring: Scoring) -> int:
    learns = torch.is_grad_enabled() and q_BHTd.dtype is torch.float32 and mask is None
    return LEARNT_KEYS if learns and not needs_products(q_BHTd, scoring) else PRODUCT_KEYS


def attention_by_blocks(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    scoring: Scoring,
    *,
    is_causal: bool,
    block_queries: int = BLOCK_QUERIES,
) -> Tensor:
    """Attend with one block of queries at a time; if causal, without keys after its last query.

    In training each block is recomputed in the backward pass with the same dropout, so that the
    weights of at most one block exist at any time.
    """
    num_queries, num_keys = q_BHTd.shape[2], kv.k_BKSd.shape[2]
    by_products = needs_products(q_BHTd, scoring)
    attend: Callable[..., Tensor] = attention_by_products if by_products else fused_attention
    outs = []
    for start in range(0, num_queries, block_queries):
        stop = min(start + block_queries, num_queries)
        seen = num_keys - num_queries + stop if is_causal else num_keys
        part = None if mask is None else _rows(mask, start, stop)[..., :seen]
        if is_causal:
            part = both_masks(causal_mask(stop - start, seen, q_BHTd.device), part)
        near = KeyValue(*(x[:, :, :seen] for x in kv))
        block: tuple[object, ...] = (q_BHTd[:, :, start:stop], near, part, scoring)
        if by_products:
            keys_S = torch.arange(seen, device=q_BHTd.device)
            queries_T = torch.arange(start, stop, device=q_BHTd.device) + num_keys - num_queries
            block += (keys_S - queries_T[:, None],)
        if torch.is_grad_enabled():
            outs.append(checkpoint(attend, *block, use_reentrant=False))
        else:
            outs.append(attend(*block))
    return torch.cat(outs, dim=2)


def needs_products(q_BHTd: Tensor, scoring: Scoring) -> bool:
    """Return whether the fused kernel would need a `T x S` matrix for this scoring.

    It has no soft-cap, a bias is a matrix, and on a CPU it drops weights only as a matrix.
    """
    drops = scoring.dropout_p > 0.0 and q_BHTd.device.type == "cpu"
    return scoring.soft_cap is not None or scoring.bias is not None or drops


def attention_by_products(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    scoring: Scoring,
    distance_TS: Tensor | None = None,
) -> Tensor:
    """Return `softmax(cap(scale q k^T) + bias + mask) v`, `(..., H, T, d)`.

    `distance_TS` is `j - i`, `(..., T, S)`, if the queries are not the last `T` of the positions.
    Query heads that share a key-value head are rows of one product, so nothing is repeated.
    """
    scores_BHTS = shared_product(q_BHTd * scoring.scale, kv.k_BKSd.transpose(-2, -1))
    scores_BHTS = adjust(scores_BHTS, mask, scoring, distance_TS)
    weights_BHTS = scoring.drop(_softmax(scores_BHTS))
    out_BHTd = shared_product(weights_BHTS, kv.v_BKSd)
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


def fused_attention(
    q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring, *, is_causal: bool = False
) -> Tensor:
    """Return the same from torch's fused kernel, which stores no `T x S` matrix of scores.

    Only for scoring without `needs_products`; `is_causal` needs as many queries as keys.
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
    with sdpa_kernel(KERNELS) if q_BHTd.is_cuda else nullcontext():
        out_BHTd = F.scaled_dot_product_attention(
            q_BHTd.flatten(0, -4),
            k_BKSd.flatten(0, -4),
            v_BKSd.flatten(0, -4),
            attn_mask=added,
            dropout_p=scoring.dropout_p,
            is_causal=is_causal,
            scale=scoring.scale,
            enable_gqa=heads != k_BKSd.shape[-3],
        )
    out_BHTd = out_BHTd.view(*batch, heads, num_queries, head_dim)
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


def _kernel_shares_heads(q_BHTd: Tensor, mask: Tensor | None) -> bool:
    """Return whether a kernel accepts fewer key-value heads; else torch needs a `T x S` matrix.

    On a GPU only flash attention does, which requires half precision and no mask.
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
    scores_BHTS: Tensor, mask: Tensor | None, scoring: Scoring, distance_TS: Tensor | None = None
) -> Tensor:
    """Cap the scores, add the bias of their distances and apply the mask."""
    scores_BHTS = scoring.cap(scores_BHTS)
    if scoring.bias is not None:
        if distance_TS is None:
            num_queries, num_keys = scores_BHTS.shape[-2:]
            distance_TS = distances(num_queries, num_keys, scores_BHTS.device)
        *blocks, num_queries, num_keys = distance_TS.shape
        bias_HTS = scoring.bias(distance_TS.reshape(-1, num_keys) if blocks else distance_TS)
        if blocks:
            bias_HTS = torch.movedim(bias_HTS.unflatten(1, (*blocks, num_queries)), 0, -3)
        scores_BHTS = scores_BHTS + bias_HTS.to(scores_BHTS.dtype)
    if mask is not None:
        scores_BHTS = scores_BHTS + additive(mask, scores_BHTS.dtype)
    return scores_BHTS


def _softmax(scores_BHTS: Tensor) -> Tensor:
    """Return the softmax over the keys; masked keys appended to it do not change its bits.

    A CPU sums the exponentials of a partial vector register in another order than those of a full
    one: in float32 if there is no full one, in bfloat16 whenever one is partial. So registers are
    filled with hidden keys; in bfloat16 only without gradients.
    """
    num_keys = scores_BHTS.shape[-1]
    ragged = scores_BHTS.dtype is torch.bfloat16 and not torch.is_grad_enabled()
    missing = -num_keys % VECTOR_KEYS if ragged or num_keys < VECTOR_KEYS else 0
    if not missing:
        return scores_BHTS.softmax(dim=-1)
    lowest = torch.finfo(scores_BHTS.dtype).min
    return F.pad(scores_BHTS, (0, missing), value=lowest).softmax(dim=-1)[..., :num_keys]


def differs_by_query(mask: Tensor | None) -> bool:
    """Return whether a mask hides different keys from different queries."""
    return mask is not None and mask.dim() > 1 and mask.shape[-2] > 1


def _rows(mask: Tensor, start: int, stop: int) -> Tensor:
    return mask[..., start:stop, :] if differs_by_query(mask) else mask


def hide_blind_rows(out_BHTd: Tensor, mask: Tensor) -> Tensor:
    """Zero the output of every query that may attend to nothing, forward and backward."""
    sees_something = mask.any(dim=-1, keepdim=True)
    if mask.device.type == "cpu" and bool(sees_something.all()):  # a GPU would have to wait
        return out_BHTd
    return out_BHTd.masked_fill(~sees_something, 0.0)
