"""Linear attention: sums instead of a softmax, so the cost is linear in the length.

Katharopoulos et al. (2020); with a decay as in RetNet (Sun et al., 2023).
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.errors import InputError
from dragoman.nn.cache import KeyValue, Rows, Storage
from dragoman.nn.cpu.attention import differs_by_query, shared_product
from dragoman.nn.cpu.storage import GrowingStorage
from dragoman.nn.dot_product import Scoring, both_masks, causal_mask, distances
from dragoman.nn.patterns.blocks import SEGMENT, mask_of_keys
from dragoman.nn.patterns.pattern import Pattern

CHUNK = 64  # positions whose products with each other are computed as a matrix


class StateStorage:
    """Storage of one matrix per head at any length, the whole state of linear attention.

    Attention itself updates the matrix, because it knows which keys are padding: `extend` returns
    the storage with the new keys and values.
    """

    def __init__(self) -> None:
        self.length = 0
        self.state_BKde: Tensor | None = None

    def room(self) -> int:
        """Return no limit: the positions are summed."""
        return sys.maxsize

    def extend(self, kv: KeyValue) -> KeyValue:
        """Count the new positions and return them with the state of the earlier ones."""
        self.length += kv.k_BKSd.shape[2]
        continued = Continued(*kv)
        continued.storage = self
        return continued

    def select(self, rows: Rows) -> None:
        """Reorder, repeat or drop rows."""
        if self.state_BKde is not None:
            self.state_BKde = self.state_BKde[rows.rows_N]


class Continued(KeyValue):
    """Keys and values of the new positions alone; the earlier ones are summed in a state."""

    storage: StateStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention(Pattern):
    """`out_i = sum_j w_ij v_j / sum_j w_ij`, `w_ij = decay^(i-j) phi(q_i) . phi(k_j)`.

    `phi(x) = elu(x) + 1`. A query sees the keys only through `sum_j phi(k_j) v_j^T`, a `d x d`
    matrix for any number of keys: time and memory `O(L)`. The causal form is a scan: the queries of
    a chunk use the matrix of the chunks before it and the individual keys of their own chunk.
    Decoding stores only the matrix; a step is a chunk of one.

    There are no scores to bias, cap or scale, and no weights to drop.
    """

    kind: Literal["linear"] = "linear"
    causal: bool = True
    """Whether no query sees a later key."""
    decay: Literal["retnet"] | tuple[float, ...] | None = None
    """Decay of each key-value head: a factor for each, `1 - 2^(-5-h)` ("retnet"), or none."""

    forgets = True
    has_scores = False

    def __post_init__(self) -> None:
        if self.decay is not None and not self.causal:
            raise InputError("decay is for causal linear attention: leave it out, or causal = true")
        if isinstance(self.decay, tuple) and not all(0.0 < gamma <= 1.0 for gamma in self.decay):
            raise InputError(f"decay = {list(self.decay)} must be above 0 and at most 1")

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return self.causal

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Return `j <= i` if causal, otherwise None."""
        return causal_mask(num_queries, num_keys, device) if self.causal else None

    def reference(
        self,
        q_BHTd: Tensor,
        kv: KeyValue,
        mask: Tensor | None,
        scoring: Scoring,  # noqa: ARG002 (it has none)
    ) -> tuple[Tensor, Tensor]:
        """Compute the formula directly: outputs and weights `(B, H, T, S)`."""
        group = q_BHTd.shape[1] // kv.k_BKSd.shape[1]
        log_decay_K = self._log_decay(kv.k_BKSd)
        k_BHSd, v_BHSd = (x.repeat_interleave(group, dim=1) for x in kv)
        log_decay_H11 = log_decay_K.repeat_interleave(group)[:, None, None]
        distance_TS = distances(q_BHTd.shape[2], k_BHSd.shape[2], q_BHTd.device)
        weights_BHTS = phi(q_BHTd) @ phi(k_BHSd).mT
        weights_BHTS = weights_BHTS * torch.exp(-distance_TS.clamp(max=0) * log_decay_H11)
        if mask is not None:
            weights_BHTS = weights_BHTS.masked_fill(~mask, 0.0)
        total_BHT1 = weights_BHTS.sum(dim=-1, keepdim=True)
        weights_BHTS = weights_BHTS / (total_BHT1 + (total_BHT1 == 0))
        return weights_BHTS @ v_BHSd, weights_BHTS

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend through the sums of keys and values, or by the formula if a mask is unusual."""
        if scoring.soft_cap is not None or scoring.bias is not None or scoring.dropout_p:
            raise ValueError("linear attention has no scores: no soft-cap, no bias and no dropout")
        by_head = mask is not None and mask.dim() > 2 and mask.shape[-3] > 1
        if by_head or differs_by_query(mask):
            if isinstance(kv, Continued):  # its state has already summed the keys
                raise ValueError("a cache of linear attention takes masks of keys alone")
            own = self.mask(q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device)
            return self.reference(q_BHTd, kv, both_masks(own, mask), scoring)[0]
        storage = kv.storage if isinstance(kv, Continued) else None
        with no_autocast(q_BHTd.device.type):  # sums over a text need float32
            q, k, v = (x if x.dtype == torch.float64 else x.float() for x in (q_BHTd, *kv))
            k = phi(k)
            if mask is not None:
                k = k * mask_of_keys(mask, kv).mT
            v = F.pad(v, (0, 1), value=1.0)  # the last column sums the weights
            out_BHTe = self._attend(phi(q), KeyValue(k, v), storage)
            total_BHT1 = out_BHTe[..., -1:]
            out_BHTd = out_BHTe[..., :-1] / (total_BHT1 + (total_BHT1 == 0))
        return out_BHTd.to(q_BHTd.dtype)

    def _attend(self, q_BHTd: Tensor, kv: KeyValue, storage: StateStorage | None) -> Tensor:
        """Return the sums `(B, H, T, d + 1)` over the keys that each query sees."""
        if not self.causal:
            return shared_product(q_BHTd, kv.k_BKSd.mT @ kv.v_BKSd)
        log_decay_K = self._log_decay(kv.k_BKSd)
        num_old = kv.k_BKSd.shape[2] - q_BHTd.shape[2]
        state_BKde = None if storage is None else storage.state_BKde
        if state_BKde is None:
            old = KeyValue(*(x[:, :, :num_old] for x in kv))
            state_BKde = _outer_sum(old, log_decay_K)
        new = KeyValue(*(x[:, :, num_old:] for x in kv))
        out_BHTe, state_BKde = linear_attention(q_BHTd, new, state_BKde, log_decay_K)
        if storage is not None:
            storage.state_BKde = state_BKde
        return out_BHTe

    def _log_decay(self, k_BKSd: Tensor) -> Tensor:
        """Return the logarithm of each head's decay, `(K)`."""
        gamma_K = torch.tensor(self._decays(k_BKSd.shape[1]), dtype=torch.float64)
        return gamma_K.log().to(k_BKSd, non_blocking=True)

    def _decays(self, num_kv_heads: int) -> tuple[float, ...]:
        if self.decay is None:
            return (1.0,) * num_kv_heads
        if self.decay == "retnet":
            return tuple(1.0 - 2.0 ** (-5 - head) for head in range(num_kv_heads))
        return self.decay

    def of_heads(self, kv_heads: Sequence[int]) -> "LinearAttention":
        """Return the pattern for these key-value heads alone, each with its own decay."""
        if self.decay is None:
            return self
        gammas = self._decays(max(kv_heads) + 1)
        return replace(self, decay=tuple(gammas[head] for head in kv_heads))

    def check_heads(self, num_kv_heads: int) -> None:
        """Raise InputError unless a per-head decay has one number for each head."""
        if isinstance(self.decay, tuple) and len(self.decay) != num_kv_heads:
            raise InputError(
                f"decay has {len(self.decay)} numbers, but there are {num_kv_heads} key-value "
                "heads: give one for each"
            )

    def make_storage(self) -> Storage:
        """Make the storage of the sum if causal, otherwise of all keys."""
        return StateStorage() if self.causal else GrowingStorage()


def phi(x: Tensor) -> Tensor:
    """Compute the feature map `elu(x) + 1`, positive so that weights are too."""
    return F.elu(x) + 1.0


def linear_attention(
    q_BHTd: Tensor, kv: KeyValue, state_BKde: Tensor, log_decay_K: Tensor
) -> tuple[Tensor, Tensor]:
    """Process `T` positions chunk by chunk: outputs `(B, H, T, e)` and the final state.

    With one chunk this is the parallel form, with chunks of one the recurrent form. One segment of
    chunks is computed at a time, so that no tensor is large.
    """
    outs, rest = [], q_BHTd.shape[2] % CHUNK
    num_whole = q_BHTd.shape[2] - rest
    segments = [min(SEGMENT, num_whole - start) for start in range(0, num_whole, SEGMENT)]
    lengths = [*segments, rest] if rest else segments
    if not lengths:  # an empty document has no chunk
        return shared_product(q_BHTd, state_BKde), state_BKde
    for q, k, v in zip(*(x.split(lengths, dim=2) for x in (q_BHTd, *kv)), strict=True):
        c = min(CHUNK, q.shape[2])
        cut = (x.unflatten(2, (-1, c)).transpose(1, 2) for x in (q, k, v))
        q_BnHcd, k_BnKcd, v_BnKce = cut
        new = KeyValue(k_BnKcd, v_BnKce)
        out_BHTe, state_BKde = _attend_chunks(q_BnHcd, new, state_BKde, log_decay_K)
        outs.append(out_BHTe)
    return torch.cat(outs, dim=2), state_BKde


def _attend_chunks(
    q_BnHcd: Tensor, kv: KeyValue, state_BKde: Tensor, log_decay_K: Tensor
) -> tuple[Tensor, Tensor]:
    heads, c = q_BnHcd.shape[2:4]
    log_decay_H11 = log_decay_K.repeat_interleave(heads // len(log_decay_K))[:, None, None]
    places_c1 = torch.arange(c, device=q_BnHcd.device)[:, None]
    decays_Hcc = torch.exp((places_c1 - places_c1.T).clamp(min=0) * log_decay_H11).tril()
    weights_BnHcc = shared_product(q_BnHcd, kv.k_BKSd.mT) * decays_Hcc
    near_BnHce = shared_product(weights_BnHcc, kv.v_BKSd)

    states = []
    decay_K11 = torch.exp(c * log_decay_K)[:, None, None]
    for added_BKde in _outer_sum(kv, log_decay_K).unbind(dim=1):
        states.append(state_BKde)
        state_BKde = state_BKde * decay_K11 + added_BKde
    q_BnHcd = q_BnHcd * torch.exp((places_c1 + 1) * log_decay_H11)
    far_BnHce = shared_product(q_BnHcd, torch.stack(states, dim=1))
    return (near_BnHce + far_BnHce).transpose(1, 2).flatten(2, 3), state_BKde


def _outer_sum(kv: KeyValue, log_decay_K: Tensor) -> Tensor:
    """Return `sum_j decay^(S-1-j) k_j v_j^T`, `(..., K, d, e)`: the state after `S` positions."""
    left_S1 = torch.arange(kv.k_BKSd.shape[-2] - 1, -1, -1, device=log_decay_K.device)[:, None]
    k_BKSd = kv.k_BKSd * torch.exp(left_S1 * log_decay_K[:, None, None])
    return k_BKSd.mT @ kv.v_BKSd


def no_autocast(device: str) -> AbstractContextManager[object]:
    """Disable autocast, which the device "meta" does not have."""
    available = torch.amp.is_autocast_available(device)
    return torch.autocast(device, enabled=False) if available else nullcontext()
