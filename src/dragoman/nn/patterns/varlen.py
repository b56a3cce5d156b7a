"""Packed documents by a kernel that takes sequences of any length in one row: GPUs alone.

`torch.nn.attention.varlen` runs FlashAttention over all documents in one call. It has been written
against its documentation and a stand-in; no GPU was at hand to run it on.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from dragoman.nn.cache import KeyValue
from dragoman.nn.cpu.attention import needs_products
from dragoman.nn.dot_product import Scoring
from dragoman.nn.patterns.pattern import Causal, Full, Pattern
from dragoman.nn.patterns.window import SlidingWindow

UNBOUNDED = -1
WIDEST, MULTIPLE = 256, 8  # of a head, as FlashAttention takes them
OLDEST = (8, 0)  # compute capability that FlashAttention runs on
KEYWORDS = {"scale", "window_size", "enable_gqa"}  # torch 2.11 lacks the last


def window_of(pattern: Pattern) -> tuple[int, int] | None:
    """Return how far a pattern sees to each side, if that is all there is to it."""
    if isinstance(pattern, Full):
        return UNBOUNDED, UNBOUNDED
    if isinstance(pattern, Causal):
        return UNBOUNDED, 0
    return pattern.reach if isinstance(pattern, SlidingWindow) else None


def is_served(q_BHTd: Tensor, scoring: Scoring) -> bool:
    """Whether torch, device, dtype, width and scoring are those that the kernel is made for."""
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
    """Whether the kernel of this torch takes all that it is told here."""
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
    """Attend in the documents of every row at once; `kernel` is torch's unless given."""
    attend: Any = kernel or import_module("torch.nn.attention.varlen").varlen_attn
    batch, heads = q_BHLd.shape[:2]
    # rows, one after another, are one long row of documents: (B, H, L, d) to (B L, H, d)
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
