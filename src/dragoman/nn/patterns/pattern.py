"""The interface of attention patterns, and the paper's two: full and causal."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.nn.cache import KeyValue, Storage
from dragoman.nn.cpu.attention import dense_attention
from dragoman.nn.cpu.storage import GrowingStorage
from dragoman.nn.dot_product import Scoring, both_masks, causal_mask, reference_attention
from dragoman.ranges import check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern(ABC):
    """Who may attend to whom, as a value. The `T` queries are the last of the `S` positions.

    A pattern defines `mask`; the other methods default to dense attention under that mask and to
    storing every key. Patterns that save time or memory override `attend` and `make_storage`.
    """

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key, which a decoder needs."""
        return False

    @property
    def forgets(self) -> bool:
        """Whether its storage drops keys that no later query will see."""
        return False

    @property
    def is_local(self) -> bool:
        """Whether a query sees only the keys near it, so positions may have angles of their own."""
        return False

    @property
    def counts_places(self) -> bool:
        """Whether it counts positions from the start of a row, which left padding shifts."""
        return False

    @property
    def has_scores(self) -> bool:
        """Whether there are scores that can be scaled, capped, biased and dropped."""
        return True

    @abstractmethod
    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Return the mask, `(T, S)`; None if every query sees every key."""

    def reference(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring
    ) -> tuple[Tensor, Tensor]:
        """Compute the formula directly, under `mask` alone: outputs and weights."""
        return reference_attention(q_BHTd, *kv, mask, scoring)

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Return `weights v`, `(B, H, T, d)`, under this pattern and under `mask`.

        Keys and values may have fewer heads than queries: groups of query heads share one.
        """
        own = self.mask(q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device)
        return dense_attention(q_BHTd, kv, both_masks(own, mask), scoring)

    def weights(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring
    ) -> Tensor:
        """Return the weights of `attend` without dropout, `(B, H, T, S)`, by the formula."""
        own = self.mask(q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device)
        return self.reference(q_BHTd, kv, both_masks(own, mask), scoring)[1]

    def make_storage(self) -> Storage:
        """Make the storage of one layer's keys and values for decoding."""
        return GrowingStorage()

    def of_heads(self, kv_heads: Sequence[int]) -> "Pattern":  # noqa: ARG002 (most have no part for each head)
        """Return the pattern for these key-value heads alone."""
        return self

    def check_heads(self, num_kv_heads: int) -> None:  # noqa: B027 (most serve any number)
        """Raise InputError if the pattern does not support this number of key-value heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(Pattern):
    """Every query sees every key: encoders and cross-attention."""

    kind: Literal["full"] = "full"

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:  # noqa: ARG002 (the same for all sizes)
        """Return None: nothing is hidden."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Causal(Pattern):
    """A query sees the keys up to its own position: decoders."""

    kind: Literal["causal"] = "causal"

    is_causal = True

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Return `j <= i`; None for a single query, which is the last and sees all keys."""
        return None if num_queries == 1 else causal_mask(num_queries, num_keys, device)

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend to the keys up to each query's own position."""
        return dense_attention(q_BHTd, kv, mask, scoring, is_causal=q_BHTd.shape[2] > 1)
