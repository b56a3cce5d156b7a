"""Keys and values of the tokens already decoded.

The cache belongs to the caller and is never an attribute of a module, so two requests can share
one model. A decoder layer says `kv = past.extend(layer, kv)` and does not know which of these it
talks to: `NoPast` in training, `Cache` in decoding.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

GROWTH = 32  # positions that a cache grows by at least


class KeyValue(NamedTuple):
    """Keys and values by head: both `(B, K, S, d)`."""

    k_BKSd: Tensor
    v_BKSd: Tensor


class Rows(NamedTuple):
    """Which row of a batch each row is to become; what moves is asked once, for all layers.

    On a GPU the answer is waited for.
    """

    rows_N: Tensor
    """Row `n` becomes what row `rows[n]` was."""
    moving: Tensor
    """The rows that become another one."""

    @classmethod
    def of(cls, rows_N: Tensor) -> "Rows":
        """Find out which rows move."""
        places = torch.arange(len(rows_N), device=rows_N.device)
        return cls(rows_N, (rows_N != places).nonzero().flatten())


class Past(Protocol):
    """What a decoder asks of the tokens before."""

    @property
    def length(self) -> int:
        """Positions that every layer holds: the place of the next token."""

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        """Append the keys and values of new tokens and give back all that may be attended to."""


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

    def extend(self, kv: KeyValue) -> KeyValue:
        """Append new keys and values and give back all that may be attended to."""

    def select(self, rows: Rows) -> None:
        """Reorder, repeat or drop rows of the batch."""


class Cache:
    """A storage for each layer, moved together."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self._storages = tuple(storages)

    @property
    def length(self) -> int:
        """Positions that every layer holds (the last layer is extended last)."""
        return self._storages[-1].length if self._storages else 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        """Append to one layer's storage."""
        return self._storages[layer].extend(kv)

    def select(self, rows_N: Tensor) -> None:
        """Let row `n` of the batch become what row `rows[n]` was, in every layer."""
        rows = Rows.of(rows_N)
        for storage in self._storages:
            storage.select(rows)


class GrowingStorage:
    """Keeps every position: preallocated, doubled when full, so `n` steps copy `O(n)` in all."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def extend(self, kv: KeyValue) -> KeyValue:
        """Write the new positions behind the old ones; the result is a view of the store."""
        start, end = self.length, self.length + kv.k_BKSd.shape[2]
        self._keys = _reserve(self._keys, kv.k_BKSd, start, end)
        self._values = _reserve(self._values, kv.v_BKSd, start, end)
        self._keys[:, :, start:end] = kv.k_BKSd
        self._values[:, :, start:end] = kv.v_BKSd
        self.length = end
        return KeyValue(self._keys[:, :, :end], self._values[:, :, :end])

    def select(self, rows: Rows) -> None:
        """Reorder in place: a row that stays where it was is not copied."""
        if self._keys is not None and self._values is not None:
            self._keys = select_rows(self._keys, rows, self.length)
            self._values = select_rows(self._values, rows, self.length)


def _reserve(store: Tensor | None, like: Tensor, used: int, needed: int) -> Tensor:
    """Return a store with room for `needed` positions, holding the `used` first ones."""
    if store is not None and needed <= store.shape[2]:
        return store
    capacity = max(needed, 2 * used, GROWTH)
    batch, heads, _, head_dim = like.shape
    grown = like.new_empty(batch, heads, capacity, head_dim)
    if store is not None:
        grown[:, :, :used] = store[:, :, :used]
    return grown


def select_rows(store: Tensor, rows: Rows, used: int) -> Tensor:
    """Return the store whose row `n` is the old row `rows[n]`, copying only rows that move."""
    rows_N, moving = rows
    if len(rows_N) > store.shape[0]:
        return store[rows_N]
    if len(moving):
        store[moving, :, :used] = store[rows_N[moving], :, :used]
    return store[: len(rows_N)]
