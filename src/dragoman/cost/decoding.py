"""What decoding takes: operations, what a step reads and the peak of memory, by dry runs.

For each token, layer and key-value head two vectors of `d` numbers are kept (paper, section 3.2.1;
grouped heads, Ainslie et al., 2023, keep `K` of `H`):

    2 K d L    numbers for each layer and row, where every position is kept
    2 K d w    with a window of `w`, however long the text is
    K d (d+1)  with linear attention, in float32: a matrix and a sum, however long the text is
    5 D        with RWKV, in float32, however long the text is
    2 K d S    for cross-attention, once for each sentence: its beams share them

They are not computed so but looked at in the stores that a pattern makes and fills, so a pattern
from outside the package needs no formula here.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.cost.dryrun import CPU, DryRun
from dragoman.data.shape import Shape
from dragoman.decode import Beam, Limits
from dragoman.decode.compiled import CompiledFrontier, begin
from dragoman.engine import BeamStore, freeze
from dragoman.models import ModelConfig
from dragoman.nn import KeyValue, Precision, autocast, row_invariant_products
from dragoman.nn.cache import Cache
from dragoman.nn.cpu.native import imitated


class DecodingStep(NamedTuple):
    """Operations of decoding a batch, and bytes that one row reads in a step."""

    prefill: int
    """Before the first step: of the sources, or of a prompt but for its last token."""
    flops: int
    """Of one step, output layer included."""
    read: int
    """Keys and values of earlier tokens that can still be seen, and of the source."""
    layers: int
    """Of the decoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingMemory:
    """Bytes at the moment of decoding when most are alive, by what they hold."""

    weights: int
    packed: int
    """Copies of the weights that the engine has laid out for its products."""
    cache: int
    """Keys and values of the tokens so far and room for more, all rows."""
    memory: int
    """Keys and values of the sources, which cross-attention attends to."""
    working: int
    """What operators are working on: activations, logits, weights rounded for bf16."""
    total: int


class _ReadCache(Cache):
    """A cache that counts the bytes which are read from it."""

    read = 0

    def extend(self, layer: int, kv: KeyValue) -> KeyValue:
        found = super().extend(layer, kv)
        self.read += _nbytes(found) - _nbytes(kv)
        return found


@lru_cache(maxsize=256)
@torch.inference_mode()
def decoding_step(
    config: ModelConfig, shape: Shape, *, beam_size: int = 1, cached: int
) -> DecodingStep:
    """Count what is computed before the first step, and one step with `cached` tokens before it.

    Before the first step `rows` sentences of `src_length` are encoded; a decoder reads prompts of
    `length` tokens but for their last one, which the first step is fed.
    """
    dry = DryRun()
    model: Any = dry.build(config).eval()  # of a kind that writes
    num_rows = shape.rows * beam_size
    src_BS = _ids(config, shape.rows, shape.src_length or shape.length)
    ids_N = _ids(config, num_rows, 1)[:, 0]
    with dry:
        state = model.start(src_BS, beam_size)
        prefill = dry.flops
        _fill(state.past, config, num_rows, cached)
        state.past = _ReadCache(state.past.storages)
        model.step(ids_N, state)
    sums = (getattr(each, "state_BKde", None) for each in state.past.storages)
    read = state.past.read + sum(x.nbytes for x in sums if x is not None)
    return DecodingStep(
        prefill=prefill,
        flops=dry.flops - prefill,
        read=read // num_rows + _memory(state) // shape.rows,
        layers=len(state.past.storages),
    )


@lru_cache(maxsize=64)
@torch.inference_mode()
def decoding_memory(
    config: ModelConfig, shape: Shape, *, beam_size: int = 1, precision: Precision = "fp32"
) -> DecodingMemory:
    """Return the peak of decoding, for `rows` sentences with `beam_size` rows each.

    `length` tokens are there at the end; those of a decoder begin with a prompt of `src_length`.
    A step takes most when a store of the cache is full and copies what it holds; those steps, the
    first and the last one are run. The weights are there twice where they can be frozen: as they
    are stored, and packed; else in bf16 rounded for the products.
    """
    dry = DryRun()
    model: Any = dry.build(config).eval()
    num_rows = shape.rows * beam_size
    src_BS = _ids(config, shape.rows, max(1, shape.src_length))
    ids_N = _ids(config, num_rows, 1)[:, 0]
    with row_invariant_products(), autocast(precision, CPU), imitated(), dry:
        weights = dry.now
        decoder: Any = freeze(model, precision)
        packed = dry.now - weights
        limits = Limits(bos_id=0, eos_id=0, max_B=torch.full((shape.rows,), shape.length))
        frontier = begin(Beam(beam_size=beam_size), limits)
        dry.forget_peak()
        state = decoder.start(src_BS, beam_size)
        peak, past = dry.peak, state if isinstance(state, BeamStore) else state.past
        while past.length < shape.length:
            dry.forget_peak()
            logits_NV = decoder.step(ids_N, state)
            if not isinstance(frontier, CompiledFrontier):
                logits_NV = logits_NV.log_softmax(dim=1, dtype=torch.float32)
            frontier.advance(logits_NV)
            state.select(torch.arange(num_rows).view(-1, beam_size).flip(1).flatten())
            peak = max(peak, dry.peak)
            _skip(past, config, num_rows, shape.length - 1)
    if isinstance(past, BeamStore):
        cache, memory = past.nbytes
    else:
        stored = (value for storage in past.storages for value in vars(storage).values())
        cache = sum(x.untyped_storage().nbytes() for x in stored if isinstance(x, Tensor))
        memory = _memory(state)
    return DecodingMemory(
        weights=weights,
        packed=packed,
        cache=cache,
        memory=memory,
        working=peak - weights - packed - cache - memory,
        total=peak,
    )


def _memory(state: object) -> int:
    """Return the bytes of the keys and values of the sources."""
    return sum(_nbytes(each.kv) for each in getattr(state, "memory", ()))


def _nbytes(kv: KeyValue) -> int:
    return kv.k_BKSd.nbytes + kv.v_BKSd.nbytes


def _ids(config: ModelConfig, rows: int, length: int) -> Tensor:
    """Return one id, which is no padding, everywhere."""
    return torch.full((rows, length), 1 if config.pad_id == 0 else 0)


def _skip(past: Cache | BeamStore, config: ModelConfig, num_rows: int, last: int) -> None:
    """Go on to the position before which more room is made, or to the last one."""
    if isinstance(past, BeamStore):
        past.skip(max(0, min(past.room, last - past.length)))
    else:
        room = min(storage.room() for storage in past.storages)
        _fill(past, config, num_rows, min(past.length + room, last))


def _fill(past: Cache, config: ModelConfig, num_rows: int, length: int) -> None:
    """Extend a cache to `length` positions at once."""
    new = length - past.length
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    heads = config.num_kv_heads or config.num_heads
    tokens_NKSd = torch.empty(num_rows, heads, max(0, new), config.width, dtype=dtype)
    for storage in past.storages if new > 0 else ():
        storage.extend(KeyValue(tokens_NKSd, tokens_NKSd))
