"""Keys and values of the tokens already decoded.

The cache belongs to the caller and is never an attribute of a module, so two requests can share
one model. A decoder layer calls `kv = past.extend(layer, kv)` without knowing which kind of past
it has: `NoPast` in training, `Cache` in decoding.
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
    """A reordering of a batch's rows; which rows move is computed once, for all layers."""

    rows_N: Tensor
    """The old row `rows[n]` that becomes row `n`."""
    moving: Tensor
    """The rows whose content changes."""

    @classmethod
    def of(cls, rows_N: Tensor) -> "Rows":
        """Find the rows that move; on a GPU this waits for the result."""
        places = torch.arange(len(rows_N), device=rows_N.device)
        return cls(rows_N, (rows_N != places).nonzero().flatten())


class NoPast:
    """An empty past: `extend` returns its argument, so training runs the same code."""

    length = 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:  # noqa: ARG002 (the protocol's form)
        """Return `kv` unchanged."""
        return kv


class Storage(Protocol):
    """One layer's part of a cache; an attention pattern makes the kind that it needs."""

    @property
    def length(self) -> int:
        """Number of positions seen so far."""

    def room(self) -> int:
        """Return how many positions can be appended without copying the stored ones."""

    def extend(self, kv: KeyValue) -> KeyValue:
        """Append new keys and values and return all that may be attended to."""

    def select(self, rows: Rows) -> None:
        """Reorder, repeat or drop rows of the batch."""


class Cache:
    """One storage per layer, reordered together."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.storages = tuple(storages)

    @property
    def length(self) -> int:
        """Number of positions in every layer (the last layer is extended last)."""
        return self.storages[-1].length if self.storages else 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        """Append to one layer's storage."""
        return self.storages[layer].extend(kv)

    def select(self, rows_N: Tensor) -> None:
        """Replace row `n` of the batch with the old row `rows[n]`, in every layer."""
        rows = Rows.of(rows_N)
        for storage in self.storages:
            storage.select(rows)


NO_PAST = NoPast()
Past = NoPast | Cache
"""Keys and values of the preceding tokens, if any."""
