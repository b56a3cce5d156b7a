"""Dense attention: every query may see every key (`Full`) or every earlier one (`Causal`).

A pattern is a value. It can say who may see whom (`mask`: the reference), run itself fast
(`attend`) and make its own cache storage; the layer that holds it does not know which one it is.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from dragoman.nn.cache import GrowingStorage, KeyValue, Storage
from dragoman.nn.mask import causal_mask
from dragoman.nn.patterns.kernels import attention_by_products, fused_attention, needs_products
from dragoman.nn.patterns.weighting import Weighting, reference_attention

PRODUCT_KEYS = 2048  # up to this many keys a CPU is served best by plain products
LEARNT_KEYS = 512  # the same where a float32 model learns from rows without padding
BLOCK_QUERIES = 256  # queries at a time where the fused kernel would keep a matrix


class Pattern(Protocol):
    """What attention asks of a pattern. `T` queries are the last ones of the `S` positions."""

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key, which a decoder needs."""

    @property
    def forgets(self) -> bool:
        """Whether its storage lets go of keys that no later query will see."""

    @property
    def counts_places(self) -> bool:
        """Whether it counts places from the start of a row, which padding in front shifts."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Who may see whom, `(T, S)`; None when everybody sees everybody."""

    def reference(
        self,
        q_BHTd: Tensor,
        k_BKSd: Tensor,
        v_BKSd: Tensor,
        mask: Tensor | None,
        weighting: Weighting | None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the formula as it stands, under `mask` alone: outputs and weights."""

    def attend(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
    ) -> Tensor:
        """Return `weights v`, `(B, H, T, d)`, under this pattern and under `mask`.

        Keys and values may have fewer heads than queries: groups of query heads share one.
        """

    def make_storage(self) -> Storage:
        """Make the storage in which decoding keeps one layer's keys and values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """Every query sees every key: encoders and cross-attention."""

    kind: Literal["full"] = "full"
    """Which of the patterns this is."""

    is_causal = False
    forgets = False
    counts_places = False
    reference = staticmethod(reference_attention)

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:  # noqa: ARG002 (the protocol's form)
        """Nothing is hidden."""
        return None

    def attend(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
    ) -> Tensor:
        """Attend with the caller's mask alone."""
        return dense_attention(q_BHTd, kv, mask, weighting)

    def make_storage(self) -> Storage:
        """Keep every position."""
        return GrowingStorage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Causal:
    """A query sees the keys up to its own place: decoders."""

    kind: Literal["causal"] = "causal"
    """Which of the patterns this is."""

    is_causal = True
    forgets = False
    counts_places = False
    reference = staticmethod(reference_attention)

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """`j <= i`; None for a single query, which stands last and sees all."""
        return None if num_queries == 1 else causal_mask(num_queries, num_keys, device)

    def attend(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
    ) -> Tensor:
        """Attend to the past and the present."""
        return dense_attention(q_BHTd, kv, mask, weighting, is_causal=q_BHTd.shape[2] > 1)

    def make_storage(self) -> Storage:
        """Keep every position."""
        return GrowingStorage()


def seen_keys(pattern: Pattern, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None) -> Tensor | None:
    """Return who may see whom under a pattern and under `mask`; None where all see all."""
    own = pattern.mask(q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device)
    if own is None or mask is None:
        return mask if own is None else own
    return own & mask


def dense_attention(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    weighting: Weighting,
    *,
    is_causal: bool = False,
) -> Tensor:
    """Run dense attention the fast way for the device: the one place where that is decided.

    Measured (`docs/decisions.md`): on a CPU the fused kernel's backward pass takes up to nine times
    as long as plain products on sentences, and its result changes when keys are padded, while
    that of plain products does not (a translation must not depend on its neighbours). Beyond
    `PRODUCT_KEYS` keys, and on every other device, the fused kernel saves memory and time; in
    learning, where no neighbour matters, from fewer keys on if there is no padding. Where
    it would need a `T x S` matrix (a soft-cap, a bias, a mask that differs by query), the queries
    are taken in blocks, each with its rows of that matrix.
    """
    num_queries, num_keys = q_BHTd.shape[2], kv.k_BKSd.shape[2]
    if q_BHTd.device.type == "cpu" and num_keys <= _product_keys(q_BHTd, mask, weighting):
        if is_causal:
            own = causal_mask(num_queries, num_keys, q_BHTd.device)
            mask = own if mask is None else own & mask
        return attention_by_products(q_BHTd, kv, mask, weighting)
    knows_pattern = not is_causal or (mask is None and num_queries == num_keys)
    if needs_products(q_BHTd, weighting) or differs_by_query(mask) or not knows_pattern:
        return attention_by_blocks(q_BHTd, kv, mask, weighting, is_causal=is_causal)
    return fused_attention(q_BHTd, kv, mask, weighting, is_causal=is_causal)


def _product_keys(q_BHTd: Tensor, mask: Tensor | None, weighting: Weighting) -> int:
    learns = torch.is_grad_enabled() and q_BHTd.dtype is torch.float32 and mask is None
    return LEARNT_KEYS if learns and not needs_products(q_BHTd, weighting) else PRODUCT_KEYS


def attention_by_blocks(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    weighting: Weighting,
    *,
    is_causal: bool,
    block_queries: int = BLOCK_QUERIES,
) -> Tensor:
    """Attend with a block of queries at a time; a causal one meets no key behind its last query.

    In training each block is computed again in the backward pass, with the same dropout, so that
    no more than one block's weights exist at any time.
    """
    num_queries, num_keys = q_BHTd.shape[2], kv.k_BKSd.shape[2]
    attend = attention_by_products if needs_products(q_BHTd, weighting) else _fused_block
    outs = []
    for start in range(0, num_queries, block_queries):
        stop = min(start + block_queries, num_queries)
        seen = num_keys - num_queries + stop if is_causal else num_keys
        part = None if mask is None else _rows(mask, start, stop)[..., :seen]
        if is_causal:
            own = causal_mask(stop - start, seen, q_BHTd.device)
            part = own if part is None else own & part
        keys_S = torch.arange(seen, device=q_BHTd.device)
        queries_T = torch.arange(start, stop, device=q_BHTd.device) + num_keys - num_queries
        near = KeyValue(*(x[:, :, :seen] for x in kv))
        block = (q_BHTd[:, :, start:stop], near, part, weighting, keys_S - queries_T[:, None])
        if torch.is_grad_enabled():
            outs.append(checkpoint(attend, *block, use_reentrant=False))
        else:
            outs.append(attend(*block))
    return torch.cat(outs, dim=2)


def _fused_block(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    weighting: Weighting,
    distance_TS: Tensor,  # noqa: ARG001 (the form of `attention_by_products`; there is no bias)
) -> Tensor:
    return fused_attention(q_BHTd, kv, mask, weighting)


def differs_by_query(mask: Tensor | None) -> bool:
    """Whether a mask hides other keys from one query than from another."""
    return mask is not None and mask.dim() > 1 and mask.shape[-2] > 1


def _rows(mask: Tensor, start: int, stop: int) -> Tensor:
    return mask[..., start:stop, :] if differs_by_query(mask) else mask
