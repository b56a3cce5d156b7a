"""Local attention in blocks of queries, with time and memory linear in the length.

The queries are cut into blocks of `c`. Each block attends to its own stretch of `s` keys, which
reaches some positions back and some ahead. All blocks form one batch of small dense attentions.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.nn.cache import KeyValue
from dragoman.nn.cpu.attention import (
    adjust,
    attention_by_products,
    fused_attention,
    needs_products,
    shared_product,
)
from dragoman.nn.dot_product import Scoring

SEGMENT = 1024  # queries that are cut into blocks at a time
STRIP_SCORES = 2**19  # scores of a strip of blocks, which fit in a CPU's cache


class Reach(NamedTuple):
    """Number of positions that a query sees behind and ahead of itself."""

    behind: int
    ahead: int

    def allows(self, distance_TS: Tensor) -> Tensor:
        """Return whether keys at distances `j - i` can be seen."""
        return (distance_TS >= -self.behind) & (distance_TS <= self.ahead)


class Blocks(NamedTuple):
    """Queries in `n` blocks of `c`, each with `s` keys. An axis of 1 is broadcast."""

    q_BnHcd: Tensor
    kv: KeyValue
    """`(B, n, K, s, d)`."""
    mask_BnHcs: Tensor
    """Which keys exist and may be seen; `(B or 1, n or 1, H or 1, c or 1, s)`."""
    distance_ncs: Tensor
    """`j - i`; `(n or 1, c, s)`."""

    def strips(self) -> Iterator["Blocks"]:
        """Split the blocks into strips whose scores fit in a CPU's cache."""
        num_scores = self.q_BnHcd[:, 0, ..., 0].numel() * self.distance_ncs.shape[-1]
        step = max(1, STRIP_SCORES // max(1, num_scores))  # a batch may be empty
        parts = (x.split(step, dim=1) for x in (self.q_BnHcd, *self.kv))
        for index, (q, k, v) in enumerate(zip(*parts, strict=True)):
            here = slice(index * step, (index + 1) * step)
            mask, distance = self.mask_BnHcs, self.distance_ncs
            mask = mask if mask.shape[1] == 1 else mask[:, here]
            distance = distance if distance.shape[0] == 1 else distance[here]
            yield Blocks(q, KeyValue(k, v), mask, distance)


def cut(
    q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, reach: Reach, num_block: int
) -> Iterator[Blocks]:
    """Cut the last `T` of `S` positions into blocks of `num_block` queries with their keys.

    They are yielded in segments, so that no tensor is large: large ones cost more to allocate than
    to compute with. A `mask` hides the same keys from every query: `(B or 1, H or 1, 1, S)`. The
    last block is padded with queries of zeros.
    """
    first = kv.k_BKSd.shape[2] - q_BHTd.shape[2]
    whole = (*kv,) if mask is None else (*kv, mask_of_keys(mask, kv).mT)
    size = -(-max(SEGMENT, *reach) // num_block) * num_block
    queries = q_BHTd.split(size, dim=2)
    lengths = [q.shape[2] for q in queries]
    lengths[0] += first
    parts = list(zip(*(x.split(lengths, dim=2) for x in whole), strict=True))
    nothing = tuple(x[:, :, :0] for x in whole)
    for index, q in enumerate(queries):
        before = parts[index - 1] if index else nothing
        after = parts[index + 1] if index + 1 < len(parts) else nothing
        near = [
            torch.cat(
                [old[:, :, max(old.shape[2] - reach.behind, 0) :], x, new[:, :, : reach.ahead]],
                dim=2,
            )
            for old, x, new in zip(before, parts[index], after, strict=True)
        ]
        num_after = min(after[0].shape[2], reach.ahead)
        yield _cut_segment(q, near, num_after, reach, num_block)


def _cut_segment(
    q_BHTd: Tensor, near: Sequence[Tensor], num_after: int, reach: Reach, c: int
) -> Blocks:
    """Cut one segment of queries; `near` has `num_after` positions after its last query."""
    (num_queries, num_keys), device = (q_BHTd.shape[2], near[0].shape[2]), q_BHTd.device
    n = -(-num_queries // c)
    back, ahead = (-(-far // c) for far in reach)
    start = num_keys - num_after - num_queries - back * c
    stop = start + (back + n + ahead) * c

    before, behind = max(-start, 0), max(stop - num_keys, 0)

    def stretches(x: Tensor) -> Tensor:
        """Cut axis 2 of `(., ., S, .)` into `(., n, ., s, .)`, zeros where there are no keys."""
        x = x[:, :, max(start, 0) : stop]
        x = F.pad(x, (0, 0, before, behind)) if before or behind else x
        x = x.unflatten(2, (-1, c)).transpose(1, 2)
        return torch.cat([x[:, i : i + n] for i in range(back + 1 + ahead)], dim=3)

    distance_cs = torch.arange(-back * c, (1 + ahead) * c, device=device)
    distance_cs = distance_cs - torch.arange(c, device=device)[:, None]
    seen_BnHcs = reach.allows(distance_cs)[None, None, None]
    k_BnKsd, v_BnKsd, *real = (stretches(x) for x in near)
    if before or behind or real:
        real_BnHs1 = real[0] if real else stretches(near[0].new_ones(1, 1, num_keys, 1).bool())
        seen_BnHcs = seen_BnHcs & real_BnHs1.mT
    q_BHTd = F.pad(q_BHTd, (0, 0, 0, n * c - num_queries)) if num_queries < n * c else q_BHTd
    q_BnHcd = q_BHTd.unflatten(2, (n, c)).transpose(1, 2)
    return Blocks(q_BnHcd, KeyValue(k_BnKsd, v_BnKsd), seen_BnHcs, distance_cs[None])


def mask_of_keys(mask: Tensor | None, kv: KeyValue) -> Tensor:
    """Return the mask of visible keys with all four axes, `(B or 1, H or 1, 1, S)`."""
    if mask is None:
        num_keys, device = kv.k_BKSd.shape[2], kv.k_BKSd.device
        return torch.ones(1, 1, 1, num_keys, dtype=torch.bool, device=device)
    return mask[(None,) * (4 - mask.dim())]


def attend_blocks(blocks: Blocks, scoring: Scoring) -> Tensor:
    """Attend in every block: `(B, n, H, c, d)`."""
    if not needs_products(blocks.q_BnHcd, scoring):
        return fused_attention(blocks.q_BnHcd, blocks.kv, blocks.mask_BnHcs, scoring)
    outs = [
        attention_by_products(q, kv, mask, scoring, distance_ncs)
        for q, kv, mask, distance_ncs in blocks.strips()
    ]
    return torch.cat(outs, dim=1)


class PartialSoftmax(NamedTuple):
    """Attention over some of the keys; `join` combines it with attention over the others."""

    sums_BHTd: Tensor
    """`sum_j e_j v_j` with `e_j = exp(score_j - top)`."""
    total_BHT: Tensor
    """`sum_j e_j`; 0 if no key is seen."""
    top_BHT: Tensor
    """The highest score."""

    def map(self, change: Callable[[Tensor], Tensor]) -> "PartialSoftmax":
        """Change the layout of all three; the axis after `T` has size `d` or 1."""
        total, top = (change(x[..., None])[..., 0] for x in self[1:])
        return PartialSoftmax(change(self.sums_BHTd), total, top)


def attend_part(blocks: Blocks, scoring: Scoring) -> PartialSoftmax:
    """Attend in every block to some of the keys: axes `(B, n, H, c)`, and `d`."""
    return glue([_part(strip, scoring) for strip in blocks.strips()])


def glue(parts: Sequence[PartialSoftmax]) -> PartialSoftmax:
    """Concatenate the parts of different blocks."""
    return PartialSoftmax(*(torch.cat(tensors, dim=1) for tensors in zip(*parts, strict=True)))


def _part(blocks: Blocks, scoring: Scoring) -> PartialSoftmax:
    q_BnHcd, kv, mask_BnHcs, distance_ncs = blocks
    scores_BnHcs = shared_product(q_BnHcd * scoring.scale, kv.k_BKSd.mT)
    scores_BnHcs = adjust(scores_BnHcs, mask_BnHcs, scoring, distance_ncs)
    lowest = torch.finfo(scores_BnHcs.dtype).min / 4  # above every hidden score: its e_j is 0
    top_BnHc = scores_BnHcs.detach().amax(dim=-1).clamp(min=lowest)
    # if it rounds to 0, as for every hidden key, exp on a CPU is 40 times as slow as exp2
    e_BnHcs = torch.exp2((scores_BnHcs - top_BnHc[..., None]) * math.log2(math.e))
    sums_BnHcd = shared_product(scoring.drop(e_BnHcs), kv.v_BKSd)
    return PartialSoftmax(sums_BnHcd, e_BnHcs.sum(dim=-1), top_BnHc)


def join(parts: Sequence[PartialSoftmax]) -> Tensor:
    """Return attention over the keys of all parts, `(B, H, T, d)`, weighted by one softmax."""
    top_BHT = torch.stack([part.top_BHT for part in parts]).amax(dim=0)
    shares = [torch.exp(part.top_BHT - top_BHT) for part in parts]
    sums = [part.sums_BHTd * share[..., None] for part, share in zip(parts, shares, strict=True)]
    totals = [part.total_BHT * share for part, share in zip(parts, shares, strict=True)]
    # a query that sees a key has a total of at least 1, from its highest score
    return sum(sums[1:], sums[0]) / sum(totals[1:], totals[0]).clamp(min=0.5)[..., None]


def attend_alone(
    q_BH1d: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring, seen_S: Tensor
) -> Tensor:
    """Attend with the last query to the keys that it sees, without reading the others."""
    places = seen_S.nonzero().flatten()
    kv = KeyValue(*(x.index_select(2, places) for x in kv))
    if mask is not None:
        mask = mask.index_select(-1, places)
    distance_TS = places[None] - (len(seen_S) - 1)
    return attention_by_products(q_BH1d, kv, mask, scoring, distance_TS)


def merge(x_BnHcd: Tensor) -> Tensor:
    """Join the blocks again: `(B, H, n c, d)`."""
    return x_BnHcd.transpose(1, 2).flatten(2, 3)
