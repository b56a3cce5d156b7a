"""Packed documents: attention inside each document of a row, and none between them.

On a GPU `torch.nn.attention.varlen` runs FlashAttention over all documents in one call. This was
written against its documentation and a stand-in, without a GPU to run it on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from dragoman.nn.cache import KeyValue
from dragoman.nn.cpu.attention import differs_by_query, needs_products
from dragoman.nn.dot_product import Scoring
from dragoman.nn.patterns.blocks import STRIP_SCORES, mask_of_keys
from dragoman.nn.patterns.pattern import Causal, Full, Pattern
from dragoman.nn.patterns.window import SlidingWindow

LONGEST_GROUPED = 64  # longer documents are fast one by one
FINEST_WIDTH = 8  # documents are padded to multiples of this, long ones to coarser ones
UNBOUNDED = -1
WIDEST, MULTIPLE = 256, 8  # head widths that FlashAttention accepts
OLDEST = (8, 0)  # lowest compute capability for FlashAttention
KEYWORDS = {"scale", "window_size", "enable_gqa"}  # torch 2.11 lacks the last


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents packed one after another into rows; none sees another, each starts at place 0."""

    lengths: tuple[int, ...]
    """Lengths of the documents, which add up to that of the row."""

    def positions(self, device: torch.device | None = None) -> Tensor:
        """Return the positions, counted from 0 in each document: shape `(L)`."""
        return torch.cat([torch.arange(length, device=device) for length in self.lengths])

    def pack(self, pattern: Pattern) -> "Packed":
        """Confine a pattern to each document."""
        return Packed(pattern, self)


@dataclass(frozen=True, slots=True)
class Packed(Pattern):
    """`within`, document by document: the cost is the sum of the costs of the documents.

    A row of many short documents has no padding, and with this pattern no arithmetic between
    documents either. Documents of nearly the same length form one batch, so that many short ones
    need no more calls than a few. The layout of a row is data, so this value is made for each call
    and never for a cache.
    """

    within: Pattern
    """The pattern inside a document."""
    documents: Documents
    """How the row is divided."""

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor:
        """Return where both are in one document and `within` shows the key."""
        lengths = self.documents.lengths
        square = torch.zeros(num_keys, num_keys, dtype=torch.bool, device=device)
        ends = torch.tensor(lengths).cumsum(0).tolist()
        for length, end in zip(lengths, ends, strict=True):
            own = self.within.mask(length, length, device)
            square[end - length : end, end - length : end] = True if own is None else own
        return square[num_keys - num_queries :]

    def reference(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring
    ) -> tuple[Tensor, Tensor]:
        """Compute the formula of `within`, under `mask` alone."""
        return self.within.reference(q_BHTd, kv, mask, scoring)

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Attend in each group of documents; a `mask` hides the same keys from every query."""
        if differs_by_query(mask):
            raise ValueError("packed documents take masks of keys alone")
        (batch, heads), lengths = q_BHTd.shape[:2], self.documents.lengths
        window = window_of(self.within)
        if window is not None and mask is None and is_served(q_BHTd, scoring):
            return attend_by_varlen(q_BHTd, kv, lengths, window, scoring)
        groups = group_documents(lengths, max(1, STRIP_SCORES // max(1, batch * heads)))
        whole = [q_BHTd, *kv]
        if mask is not None:
            whole.append(mask_of_keys(mask, kv).mT.expand(batch, -1, -1, -1))
        chosen = [index for group in groups for index in group]
        order_L = None
        if chosen != sorted(chosen):
            order_L = _places(lengths, chosen, q_BHTd.device)
            whole = [x.index_select(2, order_L) for x in whole]
        sizes = [sum(lengths[index] for index in group) for group in groups]
        parts = zip(groups, *(x.split(sizes, dim=2) for x in whole), strict=True)
        outs = [
            self._attend_group([lengths[i] for i in group], part, scoring) for group, *part in parts
        ]
        out = torch.cat(outs, dim=2)
        return out if order_L is None else out.index_select(2, order_L.argsort())

    def _attend_group(
        self, lengths: Sequence[int], parts: Sequence[Tensor], scoring: Scoring
    ) -> Tensor:
        """Attend to consecutive documents as a batch: `(B, H, M, d)`.

        `parts` are their queries, keys and values, and the visible keys if there is a mask.
        Shorter documents are padded to the width of the longest with the first position.
        """
        if len(lengths) == 1:
            q, k, v, *real = parts
            seen = real[0].mT if real else None
            return self.within.attend(q, KeyValue(k, v), seen, scoring)
        m, w, device = len(lengths), max(lengths), parts[0].device
        # on the CPU, which knows the lengths, to avoid waiting for a GPU
        real_mw = torch.arange(w) < torch.tensor(lengths)[:, None]
        places_mw = torch.zeros_like(real_mw, dtype=torch.long)
        places_mw[real_mw] = torch.arange(sum(lengths))
        kept_M = real_mw.flatten().nonzero().flatten()
        real_mw, places_mw, kept_M = (
            x.to(device, non_blocking=True) for x in (real_mw, places_mw, kept_M)
        )

        def to_rows(x: Tensor) -> Tensor:
            """Turn `(B, ., M, .)` into `(B m, ., w, .)`: documents become rows."""
            x = x.index_select(2, places_mw.flatten()).unflatten(2, (m, w))
            return torch.flatten(x.movedim(2, 1), 0, 1)

        q, k, v, *real = (to_rows(x) for x in parts)
        seen = real[0].mT if real else None
        if not self.within.is_causal:  # a causal query sees no padding, which comes last
            filled = real_mw.repeat(len(q) // m, 1)[:, None, None]
            seen = filled if seen is None else seen & filled
        out = self.within.attend(q, KeyValue(k, v), seen, scoring)
        out = torch.flatten(out.unflatten(0, (-1, m)).movedim(1, 2), 2, 3)
        return out.index_select(2, kept_M)


def group_documents(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group documents of nearly the same length: padding adds less than an eighth to one.

    A group has at most `budget` scores of each head, so that they fit in a CPU's cache.
    """
    groups: list[list[int]] = []
    widths: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        step = max(FINEST_WIDTH, 1 << max(length.bit_length() - 4, 0))
        width = -(-length // step) * step
        group = widths.get(width)
        if group is None or length > LONGEST_GROUPED or (len(group) + 1) * width * width > budget:
            group = widths[width] = []
            groups.append(group)
        group.append(index)
    return groups


def _places(lengths: Sequence[int], chosen: Sequence[int], device: torch.device) -> Tensor:
    """Return the positions of the chosen documents in their row, one after another."""
    ends = list(accumulate(lengths))
    spans = [torch.arange(ends[i] - lengths[i], ends[i]) for i in chosen]
    return torch.cat(spans).to(device, non_blocking=True)


def window_of(pattern: Pattern) -> tuple[int, int] | None:
    """Return how far a pattern sees to each side; None if it is not a plain window."""
    if isinstance(pattern, Full):
        return UNBOUNDED, UNBOUNDED
    if isinstance(pattern, Causal):
        return UNBOUNDED, 0
    return pattern.reach if isinstance(pattern, SlidingWindow) else None


def is_served(q_BHTd: Tensor, scoring: Scoring) -> bool:
    """Return whether the kernel supports torch, device, dtype, width and scoring."""
    width = q_BHTd.shape[-1]
    plain = not (scoring.dropout_p or needs_products(q_BHTd, scoring))
    return (
        q_BHTd.is_cuda
        and q_BHTd.dtype in (torch.float16, torch.bfloat16)
        and width <= WIDEST
        and width % MULTIPLE == 0
        and plain
        and torch.cuda.get_device_capability(q_BHTd.device) >= OLDEST
        and torch_has_it()
    )


@cache
def torch_has_it() -> bool:
    """Return whether the kernel of this torch accepts all keywords that are used here."""
    kernel = import_module("torch.nn.attention.varlen").varlen_attn
    return signature(kernel).parameters.keys() >= KEYWORDS


def attend_by_varlen(
    q_BHLd: Tensor,
    kv: KeyValue,
    lengths: Sequence[int],
    window: tuple[int, int],
    scoring: Scoring,
    kernel: Callable[..., Tensor] | None = None,
) -> Tensor:
    """Attend in the documents of all rows in one call; `kernel` is torch's by default."""
    attend: Any = kernel or import_module("torch.nn.attention.varlen").varlen_attn
    batch, heads = q_BHLd.shape[:2]
    # the rows, concatenated, are one long row of documents: (B, H, L, d) to (B L, H, d)
    q, k, v = (x.transpose(1, 2).flatten(0, 1) for x in (q_BHLd, *kv))
    ends = torch.tensor([0, *lengths] + [*lengths] * (batch - 1)).cumsum(0).int()
    ends = ends.to(q.device, non_blocking=True)
    longest = max(lengths)
    out: Tensor = attend(
        q,
        k,
        v,
        ends,
        ends,
        longest,
        longest,
        scale=scoring.scale,
        window_size=window,
        enable_gqa=heads != kv.k_BKSd.shape[1],
    )
    return torch.transpose(out.unflatten(0, (batch, -1)), 1, 2)
