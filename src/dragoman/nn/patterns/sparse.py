"""The factorised patterns of the Sparse Transformer (Child et al., 2019, section 4.2).

In both, a query sees some nearby and some distant keys, `O(sqrt(L))` in total if the stride is
about `sqrt(L)`, so that any key is two steps away. Each head sees both sets (the paper's merged
head). They are computed as two parts, each laid out in blocks without waste, and joined in one
softmax.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.errors import InputError
from dragoman.nn.cache import KeyValue
from dragoman.nn.cpu.attention import differs_by_query
from dragoman.nn.dot_product import Scoring, distances
from dragoman.nn.patterns.blocks import (
    SEGMENT,
    Blocks,
    Reach,
    attend_alone,
    attend_part,
    cut,
    glue,
    join,
    mask_of_keys,
    merge,
)
from dragoman.nn.patterns.pattern import Pattern
from dragoman.ranges import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Strided(Pattern):
    """`i - stride < j <= i`, or `j <= i` and `i - j` is a multiple of the stride.

    For periodic data, such as the rows of an image. Time and memory `O(L (stride + L / stride))`.
    """

    kind: Literal["strided"] = "strided"
    stride: Count
    """Number of positions back that a query sees in full, and the step in which it sees further."""

    is_causal = True

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor:
        """Return a band below the diagonal and lines parallel to it."""
        distance_TS = distances(num_queries, num_keys, device)
        seen_TS = (distance_TS > -self.stride) | (distance_TS % self.stride == 0)
        return seen_TS & (distance_TS <= 0)

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend to the band and the lines in blocks; a single query attends without blocks."""
        num_queries = q_BHTd.shape[2]
        out_BHTd = _without_blocks(self, q_BHTd, kv, mask, scoring)
        if out_BHTd is not None:
            return out_BHTd
        segments = cut(q_BHTd, kv, mask, Reach(self.stride - 1, 0), self.stride)
        near = glue([attend_part(blocks, scoring) for blocks in segments])
        near = near.map(lambda x: merge(x)[:, :, :num_queries])
        far = attend_part(self._lines(q_BHTd, kv, mask), scoring)
        # (B, stride, H, rows, .) to (B, H, rows, stride, .): the queries are at the end
        far = far.map(lambda x: x.movedim(1, 3).flatten(2, 3)[:, :, -num_queries:])
        return join([near, far])

    def _lines(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None) -> Blocks:
        """Arrange the positions in rows as long as the stride: a query sees the column above it.

        The columns are the blocks; padding is in front, so that the last row is full.
        """

        def columns(x: Tensor) -> Tensor:
            """Turn `(., ., L, .)` into `(., stride, ., rows, .)`, with zeros before the first."""
            x = F.pad(x, (0, 0, -x.shape[2] % self.stride, 0))
            return torch.movedim(x.unflatten(2, (-1, self.stride)), 3, 1)

        q_BnHcd = columns(q_BHTd)
        k_BnKsd, v_BnKsd = (columns(x) for x in kv)
        steps_cs = distances(q_BnHcd.shape[3], k_BnKsd.shape[3], q_BHTd.device)
        real_BnHs1 = columns(mask_of_keys(mask, kv).mT)
        seen_BnHcs = real_BnHs1.mT & (steps_cs < 0)
        return Blocks(q_BnHcd, KeyValue(k_BnKsd, v_BnKsd), seen_BnHcs, steps_cs[None] * self.stride)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(Pattern):
    """Cells of `stride` positions: a query sees its own cell and the last `summary` positions of
    each earlier one.

    `j <= i`, and `j // stride == i // stride` or `j % stride >= stride - summary`. For data without
    a period, such as text. Time and memory `O(L (stride + summary L / stride))`.
    """

    kind: Literal["fixed"] = "fixed"
    stride: int
    """Number of positions in a cell."""
    summary: int = 8
    """Number of positions at the end of each cell that all later positions see."""

    is_causal = True
    counts_places = True

    def __post_init__(self) -> None:
        if not 1 <= self.summary <= self.stride:
            raise InputError(
                f"summary = {self.summary} must be at least 1 and at most stride = {self.stride}"
            )

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor:
        """Return triangles along the diagonal and columns below them."""
        keys_S = torch.arange(num_keys, device=device)
        queries_T1 = keys_S[num_keys - num_queries :, None]
        same_cell = keys_S // self.stride == queries_T1 // self.stride
        return (same_cell | self._is_summary(keys_S)) & (keys_S <= queries_T1)

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend to the query's own cell and the summaries before it; each cell is a block."""
        num_queries = q_BHTd.shape[2]
        out_BHTd = _without_blocks(self, q_BHTd, kv, mask, scoring)
        if out_BHTd is not None:
            return out_BHTd
        first = kv.k_BKSd.shape[2] - num_queries
        lead = first % self.stride  # positions of the first query's cell before it
        q_BnHcd = self._cells(F.pad(q_BHTd, (0, 0, lead, 0)))
        real = mask_of_keys(mask, kv)
        near = attend_part(self._own_cells(q_BnHcd, kv, real, first - lead), scoring)
        segments = self._summaries(q_BnHcd, kv, real, first - lead)
        far = glue([attend_part(blocks, scoring) for blocks in segments])
        both = [
            part.map(lambda x: merge(x)[:, :, lead : lead + num_queries]) for part in (near, far)
        ]
        return join(both)

    def _own_cells(self, q_BnHcd: Tensor, kv: KeyValue, real: Tensor, first: int) -> Blocks:
        k_BnKcd, v_BnKcd = (self._cells(x[:, :, first:]) for x in kv)
        real_BnHc1 = self._cells(real[..., first:].mT)
        distance_cc = distances(self.stride, self.stride, q_BnHcd.device)
        seen_BnHcc = real_BnHc1.mT & (distance_cc <= 0)
        return Blocks(q_BnHcd, KeyValue(k_BnKcd, v_BnKcd), seen_BnHcc, distance_cc[None])

    def _summaries(
        self, q_BnHcd: Tensor, kv: KeyValue, real: Tensor, first: int
    ) -> Iterator[Blocks]:
        """Yield segments of cells with all summaries so far; a cell sees those before it."""
        places_s = self._summary_places(kv.k_BKSd.shape[2], q_BnHcd.device)
        k_BKsd, v_BKsd = (x[:, :, places_s] for x in kv)
        real_BH1s = real[..., places_s]
        for q in q_BnHcd.split(max(1, SEGMENT // self.stride), dim=1):
            n, size = q.shape[1], q.shape[1] * self.stride
            queries_nc = torch.arange(first, first + size, device=q.device).view(n, -1)
            first += size
            met = slice(0, first // self.stride * self.summary)
            near = (x[:, None, :, met].expand(-1, n, -1, -1, -1) for x in (k_BKsd, v_BKsd))
            before_n1s = places_s[met] // self.stride < queries_nc[:, :1, None] // self.stride
            seen_BnH1s = before_n1s[:, None] & real_BH1s[:, None, ..., met]
            distance_ncs = places_s[met] - queries_nc[..., None]
            yield Blocks(q, KeyValue(*near), seen_BnH1s, distance_ncs)

    def _cells(self, x: Tensor) -> Tensor:
        """Turn `(., ., L, .)` into `(., n, ., stride, .)`, the last cell padded with zeros."""
        x = F.pad(x, (0, 0, 0, -x.shape[2] % self.stride))
        return torch.transpose(x.unflatten(2, (-1, self.stride)), 1, 2)

    def _summary_places(self, num_keys: int, device: torch.device) -> Tensor:
        """Return the last positions of each complete cell by counting, without waiting for a GPU.

        No query sees the summary of an incomplete cell: no query is beyond that cell.
        """
        starts_n1 = torch.arange(num_keys // self.stride, device=device)[:, None] * self.stride
        return (starts_n1 + torch.arange(self.stride, device=device)[-self.summary :]).flatten()

    def _is_summary(self, keys_S: Tensor) -> Tensor:
        return keys_S % self.stride >= self.stride - self.summary


def _without_blocks(
    pattern: Strided | Fixed, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring
) -> Tensor | None:
    """Attend without blocks for one query, a short text or an unusual mask; otherwise None."""
    num_queries, num_keys, device = q_BHTd.shape[2], kv.k_BKSd.shape[2], q_BHTd.device
    if num_queries == 1:
        return attend_alone(q_BHTd, kv, mask, scoring, pattern.mask(1, num_keys, device)[0])
    if num_keys <= 2 * pattern.stride or differs_by_query(mask):
        return Pattern.attend(pattern, q_BHTd, kv, mask, scoring)
    return None
