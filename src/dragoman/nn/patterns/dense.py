"""Dense attention: every query may see every key (`Full`) or every earlier one (`Causal`).

A pattern is a value. It can say who may see whom (`mask`: the reference), run itself fast
(`attend`) and make its own cache storage; the layer that holds it does not know which one it is.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.nn.cache import GrowingStorage, KeyValue, Storage
from dragoman.nn.mask import additive, causal_mask, hide_blind_rows
from dragoman.nn.patterns.weighting import Weighting, distances
from dragoman.nn.products import head_product

PRODUCT_KEYS = 2048  # up to this many keys a CPU is served best by plain products
VECTOR_KEYS = 16  # float32 numbers in the widest vector register of a CPU


class Pattern(Protocol):
    """What attention asks of a pattern. `T` queries are the last ones of the `S` positions."""

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key, which a decoder needs."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Who may see whom, `(T, S)`; None when everybody sees everybody."""

    def attend(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
    ) -> Tensor:
        """Return `weights v`, `(B, H, T, d)`, under this pattern and under `mask`.

        Keys and values have as many heads as queries.
        """

    def make_storage(self) -> Storage:
        """Make the storage in which decoding keeps one layer's keys and values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """Every query sees every key: encoders and cross-attention."""

    kind: Literal["full"] = "full"
    """Which of the patterns this is."""

    is_causal = False

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

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """`j <= i`; None for a single query, which stands last and sees all."""
        return None if num_queries == 1 else causal_mask(num_queries, num_keys, device)

    def attend(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
    ) -> Tensor:
        """Attend to the past and the present.

        Without a cache and without padding the fused kernel knows the pattern by itself, and no
        `T x S` mask is made.
        """
        num_queries, num_keys = q_BHTd.shape[2], kv.k_BKSd.shape[2]
        alone = mask is None and weighting.bias is None and num_queries == num_keys
        if alone and not _prefers_products(q_BHTd, num_keys, weighting):
            return _fused(q_BHTd, kv, None, weighting, is_causal=True)
        own = self.mask(num_queries, num_keys, q_BHTd.device)
        if own is not None:
            mask = own if mask is None else own & mask
        return dense_attention(q_BHTd, kv, mask, weighting)

    def make_storage(self) -> Storage:
        """Keep every position."""
        return GrowingStorage()


def dense_attention(
    q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
) -> Tensor:
    """Run dense attention the fast way for the device: the one place where that is decided.

    Measured (`docs/decisions.md`): on a CPU the fused kernel's backward pass takes up to nine times
    as long as plain products on sentences, and its result changes when keys are padded, while
    that of plain products does not (a translation must not depend on its neighbours). Beyond
    `PRODUCT_KEYS` keys, and on every other device, the fused kernel saves memory and time. It has
    no soft-cap, which products serve everywhere.
    """
    if _prefers_products(q_BHTd, kv.k_BKSd.shape[2], weighting):
        return _attention_by_products(q_BHTd, kv, mask, weighting)
    return _fused(q_BHTd, kv, mask, weighting, is_causal=False)


def _prefers_products(q_BHTd: Tensor, num_keys: int, weighting: Weighting) -> bool:
    if weighting.soft_cap is not None:
        return True
    return q_BHTd.device.type == "cpu" and num_keys <= PRODUCT_KEYS


def _fused(
    q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting, *, is_causal: bool
) -> Tensor:
    k_BHSd, v_BHSd = kv
    added = mask
    if weighting.bias is not None:
        distance_TS = distances(q_BHTd.shape[2], k_BHSd.shape[2], q_BHTd.device)
        added = weighting.bias(distance_TS).to(q_BHTd.dtype)[None]
        if mask is not None:
            added = added + additive(mask, q_BHTd.dtype)
    out_BHTd = F.scaled_dot_product_attention(
        q_BHTd,
        k_BHSd,
        v_BHSd,
        attn_mask=added,
        dropout_p=weighting.dropout_p,
        is_causal=is_causal,
        scale=weighting.scale,
    )
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


def _attention_by_products(
    q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
) -> Tensor:
    k_BHSd, v_BHSd = kv
    scores_BHTS = weighting.cap(head_product(q_BHTd * weighting.scale, k_BHSd.transpose(-2, -1)))
    if weighting.bias is not None:
        distance_TS = distances(q_BHTd.shape[2], k_BHSd.shape[2], q_BHTd.device)
        scores_BHTS = scores_BHTS + weighting.bias(distance_TS).to(scores_BHTS.dtype)
    if mask is not None:
        scores_BHTS = scores_BHTS + additive(mask, scores_BHTS.dtype)
    out_BHTd = head_product(weighting.drop(_softmax(scores_BHTS)), v_BHSd)
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


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
