"""What decoding takes: operations and the peak of memory, and what it keeps of earlier tokens.

For each token, layer and key-value head two vectors of `d` numbers (paper, section 3.2.1; grouped
heads, Ainslie et al., 2023, keep `K` of `H`):

    2 K d L    numbers for each layer and row, where every position is kept
    2 K d w    with a window of `w`, however long the text is
    K d (d+1)  with linear attention, in float32: a matrix and a sum, however long the text is
    2 K d S    for cross-attention, once for each sentence: its beams share them

The stores of `nn/cpu/storage.py` hold them with room for what comes. Each pattern's own store is
filled without numbers (`dryrun.py`), so a pattern from outside the package needs no formula here.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle, islice
from typing import Any

import torch
from torch import Tensor

from dragoman.cost.dryrun import CPU, DryRun
from dragoman.decode import Beam
from dragoman.models import (
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    build,
)
from dragoman.nn import (
    Causal,
    KeyValue,
    Pattern,
    Precision,
    autocast,
    row_invariant_products,
)
from dragoman.nn.cache import Cache
from dragoman.nn.dot_product import Scoring
from dragoman.tasks.work import Shape

__all__ = [
    "CacheBytes",
    "DecodingFlops",
    "DecodingMemory",
    "Generator",
    "cache_bytes",
    "cache_of",
    "decoder_patterns",
    "decoding_flops",
    "decoding_memory",
]

Generator = EncoderDecoderConfig | DecoderOnlyConfig
"""The variants that decode."""

DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


# ---------------------------------------------------------------- dry runs


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingFlops:
    """Operations of decoding a batch."""

    prefill: int
    """Before the first step: of the sources, or of a prompt but for its last token."""
    step: int
    """Of one step, output layer included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingMemory:
    """Bytes at the moment of decoding when most are alive, by what they hold."""

    weights: int
    """The parameters, float32."""
    cache: int
    """Keys and values of the tokens so far and room for more, all rows."""
    memory: int
    """Keys and values of the sources, which cross-attention attends to."""
    working: int
    """What operators are working on: activations, logits, weights rounded for bf16."""

    @property
    def total(self) -> int:
        """The peak."""
        return self.weights + self.cache + self.memory + self.working


@lru_cache(maxsize=64)
@torch.inference_mode()
def decoding_flops(
    config: Generator, shape: Shape, *, beam_size: int = 1, cached: int
) -> DecodingFlops:
    """Count what is computed before the first step, and one step with `cached` tokens before it.

    Before the first step: the encoder and the keys and values of cross-attention, for `rows`
    sentences of `src_length`; of a decoder, `rows` prompts of `length` tokens but for their last
    one, which the first step is fed.
    """
    dry = DryRun()
    model = _generator(dry, config)
    paired = shape.src_length > 0
    num_rows = shape.rows * beam_size
    src_BS = _ids(config, shape.rows, shape.src_length if paired else shape.length)
    ids_N = _ids(config, num_rows, 1)[:, 0]
    with dry:
        state: Any = model.start(src_BS, beam_size)  # of the model's own kind
        prefill = dry.flops
        _fill(state.past, config, num_rows, cached)
        model.step(ids_N, state)
    return DecodingFlops(prefill=prefill, step=dry.flops - prefill)


@lru_cache(maxsize=64)
@torch.inference_mode()
def decoding_memory(
    config: Generator, shape: Shape, *, beam_size: int = 1, precision: Precision = "fp32"
) -> DecodingMemory:
    """Return the peak of decoding, for `rows` sentences with `beam_size` rows each.

    `length` tokens are there at the end; those of a decoder begin with a prompt of `src_length`.
    A step takes most when a store of the cache is full and copies what it holds; those steps, the
    first and the last one are run. In bf16 the weights are there twice, as they are stored and
    rounded for the products.
    """
    dry = DryRun()
    model = _generator(dry, config)
    weights, num_rows = dry.now, shape.rows * beam_size
    src_BS = _ids(config, shape.rows, max(1, shape.src_length))
    ids_N = _ids(config, num_rows, 1)[:, 0]
    with row_invariant_products(), autocast(precision, CPU), dry:
        frontier = Beam(beam_size=beam_size).begin(torch.full((shape.rows,), shape.length), 0)
        state: Any = model.start(src_BS, beam_size)
        peak, prompt = dry.peak, state.past.length
        while state.past.length < shape.length:
            dry.forget_peak()
            logits_NV = model.step(ids_N, state)
            log_probs_NV = logits_NV.log_softmax(dim=1, dtype=torch.float32)
            frontier.advance(log_probs_NV)
            state.select(_swapped(num_rows, beam_size))
            peak = max(peak, dry.peak)
            room = min(storage.room() for storage in state.past.storages)
            _fill(state.past, config, num_rows, min(state.past.length + room, shape.length - 1))
    kept = cache_of(
        config,
        src_length=shape.src_length,
        length=shape.length,
        prompt=prompt,
        precision=precision,
    )
    cache, memory = num_rows * kept.reserved, shape.rows * kept.memory
    return DecodingMemory(
        weights=weights, cache=cache, memory=memory, working=peak - weights - cache - memory
    )


def _generator(dry: DryRun, config: Generator) -> EncoderDecoder | DecoderOnly:
    model = dry.build(lambda: build(config)).eval()
    if not isinstance(model, EncoderDecoder | DecoderOnly):
        raise TypeError(f"{type(model).__name__} decodes nothing")
    return model


def _ids(config: Generator, rows: int, length: int) -> Tensor:
    """Return one id, which is no padding, everywhere."""
    return torch.full((rows, length), 1 if config.pad_id == 0 else 0)


def _fill(past: Cache, config: Generator, num_rows: int, length: int) -> None:
    """Extend a cache to `length` positions at once."""
    new = length - past.length
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    tokens_NKSd = torch.empty(num_rows, _heads(config), max(0, new), config.width, dtype=dtype)
    for storage in past.storages if new > 0 else ():
        storage.extend(KeyValue(tokens_NKSd, tokens_NKSd))


def _swapped(num_rows: int, beam_size: int) -> Tensor:
    """Let the beams of each sentence change places."""
    return torch.arange(num_rows).view(-1, beam_size).flip(1).flatten()


# ---------------------------------------------------------------- caches


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBytes:
    """The bytes that decoding keeps."""

    used: int
    """Keys and values of the tokens so far that can still be seen, for each beam."""
    reserved: int
    """The stores that hold them, with room for what comes, for each beam."""
    memory: int
    """Keys and values of cross-attention, for each sentence."""


def cache_of(
    config: Generator, *, src_length: int = 0, length: int, prompt: int = 0, precision: Precision
) -> CacheBytes:
    """Count what is kept after `length` tokens of which the first `prompt` came at once."""
    dtype, used, reserved = DTYPES[precision], 0, 0
    for pattern in decoder_patterns(config):
        now, room = _stored(pattern, _heads(config), config.width, dtype, length, prompt)
        used, reserved = used + now, reserved + room
    memory = 0
    if isinstance(config, EncoderDecoderConfig):
        numbers = 2 * config.num_decoder_layers * _heads(config) * config.width * src_length
        memory = numbers * dtype.itemsize
    return CacheBytes(used=used, reserved=reserved, memory=memory)


@lru_cache(maxsize=1 << 12)
@torch.inference_mode()
def _stored(
    pattern: Pattern, heads: int, width: int, dtype: torch.dtype, length: int, prompt: int
) -> tuple[int, int]:
    """Fill one row's storage of a layer; return the bytes a next token reads, and all it holds."""
    dry, storage = DryRun(), pattern.make_storage()
    with dry:
        tokens_BKSd = torch.empty(1, heads, max(1, length), width, dtype=dtype)
        one_BKSd, before = tokens_BKSd[:, :, :1], dry.now
        while storage.length < length:
            left = length - storage.length
            new = min(left, storage.room()) or 1 if storage.length else max(1, prompt)
            storage.extend(KeyValue(tokens_BKSd[:, :, :new], tokens_BKSd[:, :, :new]))
        held = dry.now - before
        kv = storage.extend(KeyValue(one_BKSd, one_BKSd))
        seen = 2 * (kv.k_BKSd.nbytes - one_BKSd.nbytes)
        before = dry.now
        pattern.attend(one_BKSd, kv, None, Scoring(scale=1.0))  # may keep a state of its own
        state = dry.now - before
    return seen + state, held + state


def cache_bytes(
    config: Generator, *, src_length: int = 0, length: int, precision: Precision = "fp32"
) -> int:
    """Count the keys and values that one sentence and beam needs after `length` tokens.

    Cross-attention's over `src_length` are included, though the beams of a sentence share them.
    """
    kept = cache_of(config, src_length=src_length, length=length, precision=precision)
    return kept.used + kept.memory


def decoder_patterns(config: Generator) -> list[Pattern]:
    """Return the pattern of self-attention of each layer."""
    if isinstance(config, EncoderDecoderConfig):
        patterns, num_layers = config.decoder_patterns, config.num_decoder_layers
    else:
        patterns, num_layers = config.patterns, config.num_layers
    return list(islice(cycle(patterns or (Causal(),)), num_layers))


def _heads(config: Generator) -> int:
    return config.num_kv_heads or config.num_heads
