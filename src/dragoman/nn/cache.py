"""Keys and values of the tokens already decoded.

The cache belongs to the caller and is never an attribute of a module, so two requests can share
one model. A decoder layer says `kv = past.extend(layer, kv)` and does not know which of these it
talks to: `NoPast` in training, `Cache` in decoding.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class KeyValue(NamedTuple):
    """Keys and values by head: both `(B, K, S, d)`."""

    k_BKSd: Tensor
    v_BKSd: Tensor


class Rows(NamedTuple):
    """Which row each row of a batch becomes; which rows move is computed once, for all layers."""

    rows_N: Tensor
    """Row `n` becomes what row `rows[n]` was."""
    moving: Tensor
    """The rows that become another one."""

    @classmethod
    def of(cls, rows_N: Tensor) -> "Rows":
        """Find out which rows move; on a GPU this waits for the answer."""
        places = torch.arange(len(rows_N), device=rows_N.device)
        return cls(rows_N, (rows_N != places).nonzero().flatten())


class NoPast:
    """No tokens before: `extend` gives back its argument, so training runs the same code."""

    length = 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:  # noqa: ARG002 (the protocol's form)
        """Give back `kv` as it is."""
        return kv


class Storage(Protocol):
    """One layer's part of a cache; an attention pattern makes the kind that it needs."""

    @property
    def length(self) -> int:
        """Positions seen so far."""

    def room(self) -> int:
        """Return how many positions can be appended before it copies those it holds."""

    def extend(self, kv: KeyValue) -> KeyValue:
        """Append new keys and values and give back all that may be attended to."""

    def select(self, rows: Rows) -> None:
        """Reorder, repeat or drop rows of the batch."""


class Cache:
    """A storage for each layer, moved together."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.storages = tuple(storages)

    @property
    def length(self) -> int:
        """Positions that every layer holds (the last layer is extended last)."""
        return self.storages[-1].length if self.storages else 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        """Append to one layer's storage."""
        return self.storages[layer].extend(kv)

    def select(self, rows_N: Tensor) -> None:
        """Let row `n` of the batch become what row `rows[n]` was, in every layer."""
        rows = Rows.of(rows_N)
        for storage in self.storages:
            storage.select(rows)


NO_PAST = NoPast()
Past = NoPast | Cache
"""What a decoder knows of the tokens before."""
