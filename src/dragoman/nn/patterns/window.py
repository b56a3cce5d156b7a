"""Windows: a query sees the keys near its own position (Beltagy et al., 2020; Mistral).

A Longformer also has a few tokens that see all tokens and are seen by all.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.nn.cache import KeyValue, Storage
from dragoman.nn.cpu.attention import attention_by_products, differs_by_query
from dragoman.nn.cpu.storage import GrowingStorage, RollingStorage
from dragoman.nn.dot_product import Scoring, distances
from dragoman.nn.patterns.blocks import (
    Blocks,
    Reach,
    attend_alone,
    attend_blocks,
    cut,
    mask_of_keys,
    merge,
)
from dragoman.nn.patterns.pattern import Pattern
from dragoman.ranges import Count, check_ranges

SMALLEST_BLOCK = 64  # queries of a block, below which products are too small to be fast
LARGEST_BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(Pattern):
    """`i - size < j <= i` if causal (Mistral's rule), `|i - j| <= size` otherwise.

    Time and memory `O(L size)`. Stacked layers see further: `n` causal ones reach `n (size - 1)`
    positions back. Decoding stores only the last `size - 1` positions.
    """

    kind: Literal["window"] = "window"
    size: Count
    """Number of keys that a causal query sees, including its own; otherwise the reach to each
    side."""
    causal: bool = True
    """Whether no query sees a later key."""

    is_local = True

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return self.causal

    @property
    def forgets(self) -> bool:
        """Whether the storage drops old keys."""
        return self.causal

    @property
    def reach(self) -> Reach:
        """How far a query sees."""
        return Reach(self.size - 1, 0) if self.causal else Reach(self.size, self.size)

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Return the band around the diagonal; None for one causal query that sees all keys."""
        if self.causal and num_queries == 1 and num_keys <= self.size:
            return None
        return self.reach.allows(distances(num_queries, num_keys, device))

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend in blocks, or densely if one block covers all or `mask` differs by query."""
        num_queries = q_BHTd.shape[2]
        kv, mask = recent(kv, mask, num_queries + self.reach.behind)
        block = block_queries(self.size)
        if kv.k_BKSd.shape[2] <= block + sum(self.reach) or differs_by_query(mask):
            return Pattern.attend(self, q_BHTd, kv, mask, scoring)
        segments = cut(q_BHTd, kv, mask, self.reach, block)
        outs = [merge(attend_blocks(blocks, scoring)) for blocks in segments]
        return torch.cat(outs, dim=2)[:, :, :num_queries]

    def make_storage(self) -> Storage:
        """Make the storage of what the next query can see."""
        return RollingStorage(self.size) if self.causal else GrowingStorage()


def recent(kv: KeyValue, mask: Tensor | None, num_keys: int) -> tuple[KeyValue, Tensor | None]:
    """Return only the last `num_keys` keys, which alone can be seen."""
    kv = KeyValue(*(x[:, :, -num_keys:] for x in kv))
    return kv, None if mask is None else mask[..., -num_keys:]


def block_queries(size: int) -> int:
    """Return the number of queries per block: half a window, so two keys of three are seen."""
    return min(max(size // 2, SMALLEST_BLOCK), LARGEST_BLOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Longformer(Pattern):
    """The rule of `window`, or `i` or `j` is a global position; and `j <= i` if causal.

    Time and memory `O(L (window + g))` for `g` global positions. One projection serves window and
    global attention (the paper has a second one for the latter).
    """

    kind: Literal["longformer"] = "longformer"
    window: Count
    """Reach of a query to each side; if causal, the number of keys that it sees, including its
    own."""
    global_positions: tuple[int, ...] = (0,)
    """Positions in the row, counted from 0, that see all positions and that all positions see."""
    causal: bool = False
    """Whether no query sees a later key."""

    def __post_init__(self) -> None:
        check_ranges(self)
        places = self.global_positions
        if len(set(places)) != len(places) or any(place < 0 for place in places):
            raise InputError(f"global_positions = {list(places)} must be different and at least 0")

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return self.causal

    @property
    def counts_places(self) -> bool:
        """Whether any position is global."""
        return bool(self.global_positions)

    @property
    def local(self) -> SlidingWindow:
        """The window alone."""
        return SlidingWindow(size=self.window, causal=self.causal)

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor:
        """Return the band around the diagonal and the rows and columns of global positions."""
        distance_TS = distances(num_queries, num_keys, device)
        is_global_S = self._is_global(num_keys, device)
        seen_TS = self.local.reach.allows(distance_TS) | is_global_S
        seen_TS = seen_TS | is_global_S[num_keys - num_queries :, None]
        return seen_TS & (distance_TS <= 0) if self.causal else seen_TS

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend in blocks to the window and global keys, then from global queries to all keys."""
        num_queries, num_keys, device = q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device
        if num_queries == 1:
            return attend_alone(q_BHTd, kv, mask, scoring, self.mask(1, num_keys, device)[0])
        block = block_queries(self.window)
        if num_keys <= block + sum(self.local.reach) or differs_by_query(mask):
            return Pattern.attend(self, q_BHTd, kv, mask, scoring)
        first, real = num_keys - num_queries, mask_of_keys(mask, kv)
        elsewhere = real & ~self._is_global(num_keys, device)
        places_g = self._places(0, num_keys, device)
        global_kv = KeyValue(*(x[:, :, places_g] for x in kv))
        outs, here = [], first
        for blocks in cut(q_BHTd, kv, elsewhere, self.local.reach, block):
            distance_ncg = places_g - _places_of(blocks, here, device)
            both = self._with_global_keys(blocks, global_kv, real[..., places_g], distance_ncg)
            outs.append(merge(attend_blocks(both, scoring)))
            here += outs[-1].shape[2]
        out_BHTd = torch.cat(outs, dim=2)[:, :, :num_queries]
        own_g = self._places(first, num_keys, device)
        if not len(own_g):
            return out_BHTd
        distance_TS = torch.arange(num_keys, device=device) - own_g[:, None]
        seen = real & (distance_TS <= 0) if self.causal else real
        global_BHgd = attention_by_products(
            q_BHTd[:, :, own_g - first], kv, seen, scoring, distance_TS
        )
        return out_BHTd.index_copy(2, own_g - first, global_BHgd)

    def _with_global_keys(
        self, blocks: Blocks, kv: KeyValue, real: Tensor, distance_ncg: Tensor
    ) -> Blocks:
        """Prepend the global keys, `real` ones and padding, to those of every block."""
        n, c, _ = distance_ncg.shape
        seen_BnHcg = real[:, None].expand(-1, n, -1, c, -1)
        if self.causal:
            seen_BnHcg = seen_BnHcg & (distance_ncg <= 0)[:, None]
        global_kv = (x[:, None].expand(-1, n, -1, -1, -1) for x in kv)
        keys = (torch.cat(pair, dim=3) for pair in zip(global_kv, blocks.kv, strict=True))
        near_BnHcs = blocks.mask_BnHcs.expand(-1, n, -1, -1, -1)
        near_ncs = blocks.distance_ncs.expand(n, -1, -1)
        return Blocks(
            blocks.q_BnHcd,
            KeyValue(*keys),
            torch.cat([seen_BnHcg, near_BnHcs], dim=-1),
            torch.cat([distance_ncg, near_ncs], dim=-1),
        )

    def _is_global(self, num_keys: int, device: torch.device) -> Tensor:
        is_global_S = torch.zeros(num_keys, dtype=torch.bool, device=device)
        is_global_S[self._places(0, num_keys, device)] = True
        return is_global_S

    def _places(self, start: int, stop: int, device: torch.device) -> Tensor:
        places = [place for place in self.global_positions if start <= place < stop]
        return torch.tensor(places, dtype=torch.long).to(device, non_blocking=True)


def _places_of(blocks: Blocks, first: int, device: torch.device) -> Tensor:
    """Return the positions of a segment's queries, counted from `first`: `(n, c, 1)`."""
    n, c = blocks.q_BnHcd.shape[1], blocks.q_BnHcd.shape[3]
    return torch.arange(first, first + n * c, device=device).view(n, c, 1)
