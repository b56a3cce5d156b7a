"""Dense attention: every query may see every key (`Full`) or every earlier one (`Causal`).

A pattern is a value. It can say who may see whom (`mask`: the reference), run itself fast
(`attend`) and make its own cache storage; the layer that holds it does not know which one it is.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.nn.cache import GrowingStorage, Storage
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import additive, causal_mask, hide_blind_rows
from dragoman.nn.products import head_product

PRODUCT_KEYS = 2048  # up to this many keys a CPU is served best by plain products
VECTOR_KEYS = 16  # float32 numbers in the widest vector register of a CPU


class Pattern(Protocol):
    """What attention asks of a pattern. `T` queries are the last ones of the `S` positions."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Who may see whom, `(T, S)`; None when everybody sees everybody."""

    def attend(
        self, q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor | None, dropout: Dropout
    ) -> Tensor:
        """Return `softmax(q k^T / sqrt(d)) v` under this pattern and under `mask`."""

    def make_storage(self) -> Storage:
        """Make the storage in which decoding keeps one layer's keys and values."""


@dataclass(frozen=True, slots=True)
class Full:
    """Every query sees every key: encoders and cross-attention."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:  # noqa: ARG002 (the protocol's form)
        """Nothing is hidden."""
        return None

    def attend(
        self, q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor | None, dropout: Dropout
    ) -> Tensor:
        """Attend with the caller's mask alone."""
        return dense_attention(q_BHTd, k_BHSd, v_BHSd, mask, dropout)

    def make_storage(self) -> Storage:
        """Keep every position."""
        return GrowingStorage()


@dataclass(frozen=True, slots=True)
class Causal:
    """A query sees the keys up to its own place: decoders."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """`j <= i`; None for a single query, which stands last and sees all."""
        return None if num_queries == 1 else causal_mask(num_queries, num_keys, device)

    def attend(
        self, q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor | None, dropout: Dropout
    ) -> Tensor:
        """Attend to the past and the present.

        Without a cache and without padding the fused kernel knows the pattern by itself, and no
        `T x S` mask is made.
        """
        num_queries, num_keys = q_BHTd.shape[2], k_BHSd.shape[2]
        if mask is None and num_queries == num_keys and not _prefers_products(q_BHTd, num_keys):
            return _fused(q_BHTd, k_BHSd, v_BHSd, None, dropout, is_causal=True)
        own = self.mask(num_queries, num_keys, q_BHTd.device)
        if own is not None:
            mask = own if mask is None else own & mask
        return dense_attention(q_BHTd, k_BHSd, v_BHSd, mask, dropout)

    def make_storage(self) -> Storage:
        """Keep every position."""
        return GrowingStorage()


def reference_attention(
    q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the paper's formula (section 3.2.1) as it stands: outputs and weights.

    `weights = softmax(q k^T / sqrt(d))` over the keys that the mask lets a query see, and
    `out = weights v`. A query that sees nothing has weights and an output of zeros. This is the
    readable twin of every fast path and the one that returns the weights `(B, H, T, S)`.
    """
    scores_BHTS = q_BHTd @ k_BHSd.transpose(-2, -1) / q_BHTd.shape[-1] ** 0.5
    if mask is None:
        weights_BHTS = scores_BHTS.softmax(dim=-1)
    else:
        weights_BHTS = (scores_BHTS + additive(mask, scores_BHTS.dtype)).softmax(dim=-1)
        weights_BHTS = weights_BHTS.masked_fill(~mask, 0.0)
    return weights_BHTS @ v_BHSd, weights_BHTS


def dense_attention(
    q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor | None, dropout: Dropout
) -> Tensor:
    """Run dense attention the fast way for the device: the one place where that is decided.

    Measured (`docs/decisions.md`): on a CPU the fused kernel's backward pass takes up to nine times
    as long as plain products on sentences, and its result changes when keys are padded, while
    that of plain products does not (a translation must not depend on its neighbours). Beyond
    `PRODUCT_KEYS` keys, and on every other device, the fused kernel saves memory and time.
    """
    if _prefers_products(q_BHTd, k_BHSd.shape[2]):
        return _attention_by_products(q_BHTd, k_BHSd, v_BHSd, mask, dropout)
    return _fused(q_BHTd, k_BHSd, v_BHSd, mask, dropout)


def _prefers_products(q_BHTd: Tensor, num_keys: int) -> bool:
    return q_BHTd.device.type == "cpu" and num_keys <= PRODUCT_KEYS


def _fused(
    q_BHTd: Tensor,
    k_BHSd: Tensor,
    v_BHSd: Tensor,
    mask: Tensor | None,
    dropout: Dropout,
    *,
    is_causal: bool = False,
) -> Tensor:
    p = dropout.p if dropout.training else 0.0
    out_BHTd = F.scaled_dot_product_attention(
        q_BHTd, k_BHSd, v_BHSd, attn_mask=mask, dropout_p=p, is_causal=is_causal
    )
    return out_BHTd if mask is None else hide_blind_rows(out_BHTd, mask)


def _attention_by_products(
    q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor | None, dropout: Dropout
) -> Tensor:
    scores_BHTS = head_product(q_BHTd * q_BHTd.shape[-1] ** -0.5, k_BHSd.transpose(-2, -1))
    if mask is not None:
        scores_BHTS = scores_BHTS + additive(mask, scores_BHTS.dtype)
    out_BHTd = head_product(dropout(_softmax(scores_BHTS)), v_BHSd)
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
