"""What decoding takes: operations and the peak of memory, and what it keeps of earlier tokens.

For each token, layer and key-value head two vectors of `d` numbers (paper, section 3.2.1; grouped
heads, Ainslie et al., 2023, keep `K` of `H`):

    2 K d L    numbers for each layer and row, where every position is kept
    2 K d w    with a window of `w`, however long the text is
    K d (d+1)  with linear attention, in float32: a matrix and a sum, however long the text is
    2 K d S    for cross-attention, once for each sentence: its beams share them

`nn/cache.py` holds them in stores with room for what comes: one that grows doubles, one that rolls
holds two windows.
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
    LinearAttention,
    Pattern,
    Precision,
    SlidingWindow,
    autocast,
    row_invariant_products,
)
from dragoman.nn.cache import Cache
from dragoman.nn.cpu.storage import GROWTH
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
    "full_lengths",
]

Generator = EncoderDecoderConfig | DecoderOnlyConfig
"""The variants that decode."""

BYTES: dict[Precision, int] = {"fp32": 4, "bf16": 2}


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
    A step takes most when the stores of a cache are full, which are then made again with more room;
    those moments and the last one are run, and between them the stores are only written to. In bf16
    the weights are there twice, as they are stored and rounded for the products.
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
        full = [full_lengths(each, prompt, shape.length) for each in decoder_patterns(config)]
        stepped = {prompt, shape.length - 1} | {each[-1] for each in full if each}
        for length in sorted(stepped.union(*full)):
            _fill(state.past, config, num_rows, length)
            if length not in stepped:
                _fill(state.past, config, num_rows, length + 1)  # makes the store anew
                continue
            dry.forget_peak()
            logits_NV = model.step(ids_N, state)
            log_probs_NV = logits_NV.log_softmax(dim=1, dtype=torch.float32)
            frontier.advance(log_probs_NV)
            state.select(_swapped(num_rows, beam_size))
            peak = max(peak, dry.peak)
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
    heads = config.num_kv_heads or config.num_heads
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    like = torch.empty(num_rows, heads, max(0, new), config.width, dtype=dtype)
    for layer in range(len(decoder_patterns(config)) if new > 0 else 0):
        past.extend(layer, KeyValue(like, like))


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
    size = 2 * _head_numbers(config) * BYTES[precision]
    used = reserved = 0
    for pattern in decoder_patterns(config):
        if isinstance(pattern, LinearAttention):
            state = _head_numbers(config) * (config.width + 1) * BYTES["fp32"]
            used, reserved = used + state, reserved + state
        elif isinstance(pattern, SlidingWindow):
            used += size * min(length, pattern.size - 1)
            reserved += size * _rolling(pattern.size, length, prompt)
        else:
            used += size * length
            reserved += size * growing_room(length, prompt)
    memory = 0
    if isinstance(config, EncoderDecoderConfig):
        memory = config.num_decoder_layers * size * src_length
    return CacheBytes(used=used, reserved=reserved, memory=memory)


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


def _head_numbers(config: Generator) -> int:
    """`K d`: the numbers of one token's keys."""
    return (config.num_kv_heads or config.num_heads) * config.width


def growing_room(length: int, prompt: int) -> int:
    """Return how many positions a growing store has room for; the first `prompt` came at once."""
    room = max(prompt, GROWTH)
    while room < length:
        room *= 2
    return room


def full_lengths(pattern: Pattern, prompt: int, until: int) -> list[int]:
    """Return after how many tokens, below `until`, the store of a layer is full.

    The next token makes it larger, or moves what a window still sees to its front, which it does
    again and again: only the first time at its full size is told.
    """
    full: list[int] = []
    if isinstance(pattern, LinearAttention):
        return full
    length = max(1, prompt)  # without a prompt the first token makes the store
    if not isinstance(pattern, SlidingWindow):
        room = growing_room(length, prompt)
        while room < until:
            full.append(room)
            room *= 2
        return full
    most, end = 2 * pattern.size, min(length, pattern.size - 1)
    room = min(max(2 * length, GROWTH), most)
    while length + room - end < until:
        full.append(length + room - end)
        if room == most:
            break
        length = full[-1] + 1
        end = min(length, pattern.size - 1)
        room = max(room, min(max(2 * length, GROWTH), most))
    return full


def _rolling(window: int, length: int, prompt: int) -> int:
    """Positions that a rolling store has room for: two windows once it has been full."""
    room = min(max(2 * prompt, GROWTH), 2 * window)
    while room < min(length, 2 * window):
        seen = min(room, window - 1) + 1
        room = min(max(2 * seen, GROWTH), 2 * window)
    return room
