"""Sliding windows: a query sees the keys near its own place (Beltagy et al., 2020; Mistral)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.nn.attention import Pattern, Scoring
from dragoman.nn.cache import GROWTH, GrowingStorage, KeyValue, Rows, Storage, select_rows
from dragoman.nn.cpu.attention import differs_by_query
from dragoman.nn.mask import distances
from dragoman.nn.patterns.blocks import Reach, attend_blocks, cut, merge

SMALLEST_BLOCK = 64  # queries of a block, below which products are too small to be quick
LARGEST_BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(Pattern):
    """`i - size < j <= i` where causal (Mistral's rule), `|i - j| <= size` where not.

    Time and memory `O(L size)`: `local_attention`. Stacked, layers see further: `n` causal ones
    reach `n (size - 1)` positions back. Decoding keeps the last `size - 1` positions and no more.
    """

    kind: Literal["window"] = "window"
    """Which of the patterns this is."""
    size: int
    """Keys that a causal query sees, itself among them; else how far it sees to each side."""
    causal: bool = True
    """Whether it sees none ahead."""

    def __post_init__(self) -> None:
        """Raise InputError for a window in which nothing can be seen."""
        if self.size < 1:
            raise InputError(f"size = {self.size} of the window is not at least 1")

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return self.causal

    @property
    def forgets(self) -> bool:
        """Whether the storage rolls."""
        return self.causal

    @property
    def reach(self) -> Reach:
        """How far a query sees."""
        return Reach(self.size - 1, 0) if self.causal else Reach(self.size, self.size)

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """The band around the diagonal; None for one causal query whose window holds all keys."""
        if self.causal and num_queries == 1 and num_keys <= self.size:
            return None
        return self.reach.allows(distances(num_queries, num_keys, device))

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend in blocks; dense where one would hold it all, or where `mask` differs by query."""
        num_queries = q_BHTd.shape[2]
        kv, mask = recent(kv, mask, num_queries + self.reach.behind)
        block = block_queries(self.size)
        if kv.k_BKSd.shape[2] > block + sum(self.reach) and not differs_by_query(mask):
            return local_attention(q_BHTd, kv, mask, scoring, self.reach, block)
        return Pattern.attend(self, q_BHTd, kv, mask, scoring)

    def make_storage(self) -> Storage:
        """Keep what the next query can see."""
        return RollingStorage(self.size) if self.causal else GrowingStorage()


class RollingStorage:
    """Keeps the last `window - 1` positions: what the next query of a window sees beside itself.

    New positions are written behind the old ones, in order and without a gap. When the store is
    full, those that can still be seen move to its front. It holds two windows, so that happens
    once in a window of steps, and memory stays the same however long the text is.
    """

    def __init__(self, window: int) -> None:
        self.length = 0
        self._window = window
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._end = 0

    def extend(self, kv: KeyValue) -> KeyValue:
        """Append; the result holds the old positions that can be seen and all of the new ones."""
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

    def select(self, rows: Rows) -> None:
        """Reorder in place: a row that stays where it was is not copied."""
        if self._keys is not None and self._values is not None:
            self._keys = select_rows(self._keys, rows, self._end)
            self._values = select_rows(self._values, rows, self._end)

    def _roll(self, kv: KeyValue, start: int) -> KeyValue:
        """Begin the store again with what of the old (from `start`) and the new will be seen."""
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


def local_attention(
    q_BHTd: Tensor,
    kv: KeyValue,
    mask: Tensor | None,
    scoring: Scoring,
    reach: Reach,
    num_block: int,
) -> Tensor:
    """Attend within reach, in blocks of `num_block` queries: `O(L (num_block + reach))`."""
    segments = cut(q_BHTd, kv, mask, reach, num_block)
    outs = [merge(attend_blocks(blocks, scoring)) for blocks in segments]
    return torch.cat(outs, dim=2)[:, :, : q_BHTd.shape[2]]


def recent(kv: KeyValue, mask: Tensor | None, num_keys: int) -> tuple[KeyValue, Tensor | None]:
    """Leave out all but the last keys, which alone can be seen."""
    kv = KeyValue(*(x[:, :, -num_keys:] for x in kv))
    return kv, None if mask is None else mask[..., -num_keys:]


def block_queries(size: int) -> int:
    """Return how many queries a block has: half a window, so two keys of three are seen."""
    return min(max(size // 2, SMALLEST_BLOCK), LARGEST_BLOCK)
