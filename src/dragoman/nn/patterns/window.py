"""Sliding windows: a query sees the keys near its own place (Beltagy et al., 2020; Mistral)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.nn.cache import KeyValue, Storage
from dragoman.nn.cpu.attention import differs_by_query
from dragoman.nn.cpu.storage import GrowingStorage, RollingStorage
from dragoman.nn.dot_product import Scoring, distances
from dragoman.nn.patterns.blocks import Reach, attend_blocks, cut, merge
from dragoman.nn.patterns.pattern import Pattern

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
