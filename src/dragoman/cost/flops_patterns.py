"""The arithmetic of attention itself, scores and weighted sums, for each pattern as it runs.

Every pattern ends in products of queries with keys and of weights with values: `2 d + 2 d` FLOPs
for each pair of a query and a key, in each of `H` heads. Patterns differ in how many pairs their
layout multiplies (a block's filling and what a mask then hides are multiplied too), and in how
often: a kernel that keeps no matrix of scores makes it again in the backward pass.

The path is the one that `nn/patterns` takes on a CPU. Products too small to reach a library's fast
path are filled up with rows of zeros there (`nn/cpu/products.py`); those rows are not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from dragoman.nn import (
    Causal,
    Documents,
    Fixed,
    Full,
    LayerConfig,
    LinearAttention,
    Longformer,
    Packed,
    Pattern,
    Precision,
    SlidingWindow,
    Strided,
)
from dragoman.nn.cpu.attention import BLOCK_QUERIES, LEARNT_KEYS, PRODUCT_KEYS
from dragoman.nn.patterns.blocks import SEGMENT, STRIP_SCORES, Reach
from dragoman.nn.patterns.linear import CHUNK
from dragoman.nn.patterns.packed import group_documents
from dragoman.nn.patterns.window import block_queries

KEPT = 2.0  # backward over forward where the weights are kept: two products for each of the two
REMADE = 2.5  # where the scores are made again: five products for two
RERUN = 3.5  # where a whole fused block is run again before its own backward pass


class Work(NamedTuple):
    """FLOPs of one row."""

    forward: int
    backward: int

    def __add__(self, other: object) -> "Work":
        """Add both."""
        if not isinstance(other, Work):
            return NotImplemented
        return Work(self.forward + other.forward, self.backward + other.backward)

    def times(self, count: int) -> "Work":
        """Multiply both."""
        return Work(count * self.forward, count * self.backward)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of attention: as many queries as keys, or one query with all keys before it."""

    queries: int
    """`T`."""
    keys: int
    """`S`."""
    learns: bool
    """Whether a backward pass follows."""
    masked: bool
    """Whether a mask of padding comes along, as from an encoder it always does."""
    matrix: bool
    """Whether scores are capped, biased or dropped, which takes a matrix of them."""
    precision: Precision
    """Of the products."""
    rows: int = 1
    """Rows of the batch: packed documents are grouped by what a cache holds of all."""


def attention_work(shape: LayerConfig, pattern: Pattern, call: Call) -> Work:
    """Count scores and weighted sums of one row, all heads."""
    match pattern:
        case Packed(within=within, documents=documents):
            work = _packed(shape, within, documents, call)
        case LinearAttention():
            work = _linear(shape, pattern, call)
        case Full() | Causal():
            work = _dense(shape, call, is_causal=pattern.is_causal and call.queries > 1)
        case _ if call.queries == 1:
            work = _one_query(shape, pattern, call)
        case SlidingWindow():
            work = _window(shape, pattern, call)
        case Longformer():
            work = _longformer(shape, pattern, call)
        case Strided():
            work = _strided(shape, pattern, call)
        case Fixed():
            work = _fixed(shape, pattern, call)
        case _:  # from outside the package: dense attention under its mask
            work = _dense(shape, call, differs=True)
    return work


def _pairs(shape: LayerConfig, pairs: int, again: float = KEPT) -> Work:
    """Return the work of pairs of a query and a key: `4 d` for each head, and its backward pass."""
    forward = 4 * shape.num_heads * shape.width * pairs
    return Work(forward, int(again * forward))


def _dense(
    shape: LayerConfig, call: Call, *, is_causal: bool = False, differs: bool = False
) -> Work:
    """Every query meets every key: `T S` pairs (`nn/cpu/attention.py` chooses the path).

    The fused kernel is counted as torch's own counter counts it, hidden half of a causal square
    included. Blocks of queries, which take its place where it would need a matrix, meet the keys up
    to their last query alone.
    """
    num_queries, num_keys = call.queries, call.keys
    has_mask = call.masked or differs
    learns_plainly = call.learns and call.precision == "fp32" and not (has_mask or call.matrix)
    if num_keys <= (LEARNT_KEYS if learns_plainly else PRODUCT_KEYS):
        return _pairs(shape, num_queries * num_keys)
    if not (call.matrix or differs or (is_causal and has_mask)):
        return _pairs(shape, num_queries * num_keys, REMADE)
    pairs = num_queries * num_keys
    if is_causal:
        stops = range(BLOCK_QUERIES, num_queries + BLOCK_QUERIES, BLOCK_QUERIES)
        pairs = sum(
            (min(stop, num_queries) - (stop - BLOCK_QUERIES)) * min(stop, num_queries)
            for stop in stops
        )
    return _pairs(shape, pairs, REMADE if call.matrix else RERUN)


def _one_query(shape: LayerConfig, pattern: Pattern, call: Call) -> Work:
    """Decoding: the last query looks up the keys that it sees."""
    if isinstance(pattern, SlidingWindow):
        return _pairs(shape, min(call.keys, 1 + sum(pattern.reach)))
    seen = pattern.mask(1, call.keys, torch.device("cpu"))
    return _pairs(shape, call.keys if seen is None else int(seen.sum()))


def _blocks(call: Call, reach: Reach, block: int) -> tuple[int, int]:
    """Return how many queries the blocks of a row hold, filled up, and how many keys each meets."""
    queries = -(-call.queries // block) * block
    back, ahead = (-(-far // block) for far in reach)
    return queries, (back + 1 + ahead) * block


def _window(shape: LayerConfig, pattern: SlidingWindow, call: Call) -> Work:
    """Blocks of queries with the stretch of keys in reach: `O(L (block + reach))`."""
    block = block_queries(pattern.size)
    if call.keys <= block + sum(pattern.reach):
        return _dense(shape, call, differs=True)
    queries, stretch = _blocks(call, pattern.reach, block)
    return _pairs(shape, queries * stretch, KEPT if call.matrix else REMADE)


def _longformer(shape: LayerConfig, pattern: Longformer, call: Call) -> Work:
    """Windows that meet `g` global keys too, and `g` queries that meet all: `O(L (window + g))`."""
    block, reach = block_queries(pattern.window), pattern.local.reach
    if call.keys <= block + sum(reach):
        return _dense(shape, call, differs=True)
    queries, stretch = _blocks(call, reach, block)
    num_global = sum(place < call.keys for place in pattern.global_positions)
    near = _pairs(shape, queries * (num_global + stretch), KEPT if call.matrix else REMADE)
    return near + _pairs(shape, num_global * call.keys)


def _strided(shape: LayerConfig, pattern: Strided, call: Call) -> Work:
    """The band, in blocks as long as the stride, and the columns of rows as long as the stride."""
    stride = pattern.stride
    if call.keys <= 2 * stride:
        return _dense(shape, call, differs=True)
    queries, stretch = _blocks(call, Reach(stride - 1, 0), stride)
    column = -(-call.keys // stride)
    return _pairs(shape, queries * stretch + stride * column * column)


def _fixed(shape: LayerConfig, pattern: Fixed, call: Call) -> Work:
    """The cells, and from each segment of them the summaries of all whole cells up to its end."""
    stride = pattern.stride
    if call.keys <= 2 * stride:
        return _dense(shape, call, differs=True)
    cells = -(-call.queries // stride)
    pairs = cells * stride * stride
    step = max(1, SEGMENT // stride)
    for first in range(0, cells, step):
        stop = min(first + step, cells)
        met = min(stop, call.keys // stride) * pattern.summary
        pairs += (stop - first) * stride * met
    return _pairs(shape, pairs)


def _linear(shape: LayerConfig, pattern: LinearAttention, call: Call) -> Work:
    """Sums of outer products, `d x (d + 1)` for each key: the last column sums the weights.

    Causal: in chunks of `c`, whose queries meet the chunk's own keys as pairs and all before them
    as one matrix.
    """
    heads, kv_heads, d = shape.num_heads, shape.num_kv_heads or shape.num_heads, shape.width
    outer, meeting = 2 * kv_heads * d * (d + 1), 2 * heads * d * (d + 1)
    forward = call.keys * outer + call.queries * meeting
    if not pattern.causal:
        return Work(forward, 2 * forward)
    whole, rest = divmod(call.queries, CHUNK)
    pairs = whole * CHUNK * CHUNK + rest * rest
    forward = call.queries * (outer + meeting) + 2 * heads * pairs * (2 * d + 1)
    last = rest or min(CHUNK, call.queries)  # its sum is made, and nothing learns from it
    return Work(forward, 2 * (forward - last * outer))


def _packed(shape: LayerConfig, within: Pattern, documents: Documents, call: Call) -> Work:
    """The sum of what the documents cost; short ones are filled up to the longest of a group."""
    total = Work(0, 0)
    lengths: Sequence[int] = documents.lengths
    budget = max(1, STRIP_SCORES // (call.rows * shape.num_heads))
    for group in group_documents(lengths, budget):
        width = max(lengths[index] for index in group)
        alone = replace(call, queries=width, keys=width)  # a mask of filling changes no path
        total += attention_work(shape, within, alone).times(len(group))
    return total
