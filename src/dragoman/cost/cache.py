"""What decoding keeps of the tokens before, from a config alone.

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
from itertools import cycle, islice

from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig
from dragoman.nn import Causal, LinearAttention, Pattern, Precision, SlidingWindow
from dragoman.nn.cpu.storage import GROWTH

Generator = EncoderDecoderConfig | DecoderOnlyConfig
"""The variants that decode."""

BYTES: dict[Precision, int] = {"fp32": 4, "bf16": 2}


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
