"""Storage of keys and values that copies little."""

import torch
from torch import Tensor

from dragoman.nn.cache import KeyValue, Rows

GROWTH = 32  # least number of positions that a store grows by


class Store:
    """Keys and values in preallocated memory; `select` copies only the rows that move."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._end = 0

    def room(self) -> int:
        """Return how many positions can be appended without copying the stored ones."""
        return 0 if self._keys is None else self._keys.shape[2] - self._end

    def select(self, rows: Rows) -> None:
        """Reorder in place; a row that does not move is not copied."""
        if self._keys is not None and self._values is not None:
            self._keys = _select_rows(self._keys, rows, self._end)
            self._values = _select_rows(self._values, rows, self._end)


class GrowingStorage(Store):
    """Storage of every position: preallocated, doubled when full, so `n` steps copy `O(n)`."""

    def extend(self, kv: KeyValue) -> KeyValue:
        """Append the new positions and return a view of all."""
        start, end = self.length, self.length + kv.k_BKSd.shape[2]
        self._keys = _reserve(self._keys, kv.k_BKSd, start, end)
        self._values = _reserve(self._values, kv.v_BKSd, start, end)
        self._keys[:, :, start:end] = kv.k_BKSd
        self._values[:, :, start:end] = kv.v_BKSd
        self.length = self._end = end
        return KeyValue(self._keys[:, :, :end], self._values[:, :, :end])


class RollingStorage(Store):
    """Storage of the last `window - 1` positions, which the next query sees besides itself.

    New positions are appended in order and without gaps. When the store is full, those that can
    still be seen move to its front. It has room for two windows, so this happens once per window of
    steps, and memory does not grow with the text.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self._window = window

    def extend(self, kv: KeyValue) -> KeyValue:
        """Append; return the old positions that can be seen and all of the new ones."""
        num_new = kv.k_BKSd.shape[2]
        num_old = min(self.length, self._window - 1)
        start, end = self._end - num_old, self._end + num_new
        self.length += num_new
        if self._keys is None or self._values is None or end > self._keys.shape[2]:
            return self._roll(kv, start)
        self._keys[:, :, self._end : end] = kv.k_BKSd
        self._values[:, :, self._end : end] = kv.v_BKSd
        self._end = end
        return KeyValue(self._keys[:, :, start:end], self._values[:, :, start:end])

    def _roll(self, kv: KeyValue, start: int) -> KeyValue:
        """Restart the store with the old (from `start`) and new positions that will be seen."""
        k_BKSd, v_BKSd = kv
        if self._keys is not None and self._values is not None:
            k_BKSd = torch.cat([self._keys[:, :, start : self._end], k_BKSd], dim=2)
            v_BKSd = torch.cat([self._values[:, :, start : self._end], v_BKSd], dim=2)
        num_seen = k_BKSd.shape[2]
        self._end = min(num_seen, self._window - 1)
        capacity = min(max(2 * num_seen, GROWTH), 2 * self._window)
        self._keys = _begin(self._keys, k_BKSd[:, :, num_seen - self._end :], capacity)
        self._values = _begin(self._values, v_BKSd[:, :, num_seen - self._end :], capacity)
        return KeyValue(k_BKSd, v_BKSd)


def _begin(store: Tensor | None, first: Tensor, capacity: int) -> Tensor:
    """Return a store that begins with the positions of `first`: the old one if it is as large."""
    batch, heads, num_first, head_dim = first.shape
    if store is None or store.shape[2] < capacity:
        store = first.new_empty(batch, heads, capacity, head_dim)
    store[:, :, :num_first] = first
    return store


def _reserve(store: Tensor | None, like: Tensor, used: int, needed: int) -> Tensor:
    """Return a store with room for `needed` positions, including the first `used` ones."""
    if store is not None and needed <= store.shape[2]:
        return store
    capacity = max(needed, 2 * used, GROWTH)
    batch, heads, _, head_dim = like.shape
    grown = like.new_empty(batch, heads, capacity, head_dim)
    if store is not None:
        grown[:, :, :used] = store[:, :, :used]
    return grown


def _select_rows(store: Tensor, rows: Rows, used: int) -> Tensor:
    """Return the store whose row `n` is the old row `rows[n]`, copying only rows that move."""
    rows_N, moving = rows
    if len(rows_N) > store.shape[0]:
        return store[rows_N]
    if len(moving):
        store[moving, :, :used] = store[rows_N[moving], :, :used]
    return store[: len(rows_N)]
