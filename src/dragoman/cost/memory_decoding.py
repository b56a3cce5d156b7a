"""How much memory decoding takes at its peak, from a config alone.

Rehearsed as a training step is: the sources are read, the cache is filled token by token up to the
last, and steps of beam search are taken with all its beams changing places. A step takes most when
the stores of a cache are full, which then are made again with more room; those moments and the last
one are rehearsed, and between them the stores are only written to. In bf16 the weights are there
twice, as they are stored and rounded for the products.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.cost.cache import Generator, cache_of, decoder_patterns, full_lengths
from dragoman.cost.flops import Shape
from dragoman.cost.memory_rehearsal import CPU, Rehearsal, real_id
from dragoman.decode import Beam
from dragoman.models import DecoderOnly, EncoderDecoder, build
from dragoman.nn import KeyValue, Precision, autocast, row_invariant_products
from dragoman.nn.cache import Cache

__all__ = ["DecodingMemory", "decoding_memory"]


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


@torch.inference_mode()
def decoding_memory(
    config: Generator, shape: Shape, *, beam_size: int = 1, precision: Precision = "fp32"
) -> DecodingMemory:
    """Rehearse decoding and return its peak, for `rows` sentences with `beam_size` rows each.

    `length` tokens are there at the end; those of a decoder begin with a prompt of `src_length`.
    """
    rehearsal = Rehearsal()
    model = rehearsal.build(lambda: build(config)).eval()
    if not isinstance(model, EncoderDecoder | DecoderOnly):
        raise TypeError(f"{type(model).__name__} decodes nothing")
    weights, num_rows = rehearsal.now, shape.rows * beam_size
    src_BS = torch.full((shape.rows, max(1, shape.src_length)), real_id(config))
    ids_N = torch.full((num_rows,), real_id(config))
    with row_invariant_products(), autocast(precision, CPU), rehearsal:
        frontier = Beam(beam_size=beam_size).begin(torch.full((shape.rows,), shape.length), 0)
        state: Any = model.start(src_BS, beam_size)  # of the model's own kind
        peak, prompt = rehearsal.peak, state.past.length
        full = [full_lengths(each, prompt, shape.length) for each in decoder_patterns(config)]
        stepped = {prompt, shape.length - 1} | {each[-1] for each in full if each}
        for length in sorted(stepped.union(*full)):
            _fill(state.past, config, num_rows, length)
            if length not in stepped:
                _fill(state.past, config, num_rows, length + 1)  # makes the store anew
                continue
            rehearsal.forget_peak()
            logits_NV = model.step(ids_N, state)
            log_probs_NV = logits_NV.log_softmax(dim=1, dtype=torch.float32)
            frontier.advance(log_probs_NV)
            state.select(_swapped(num_rows, beam_size))
            peak = max(peak, rehearsal.peak)
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
