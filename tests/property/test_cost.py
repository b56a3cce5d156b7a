"""Laws of what a model costs, for configs drawn at random."""

from dataclasses import replace
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cost.counted import counted_training, step_of

from dragoman.cost.counting import decoding_step
from dragoman.data.shape import Shape
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig
from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Causal,
    Fixed,
    GrowingStorage,
    KeyValue,
    LinearAttention,
    Longformer,
    RollingStorage,
    Rotary,
    Sinusoidal,
    SlidingWindow,
    Strided,
)

SCORED: list[AttentionPattern] = [
    Causal(),
    SlidingWindow(size=24),
    Longformer(window=20, causal=True),
    Strided(stride=12),
    Fixed(stride=12, summary=3),
]
LAYER: dict[str, st.SearchStrategy[Any]] = {
    "d_model": st.sampled_from([64, 96]),
    "num_heads": st.sampled_from([2, 4]),
    "num_kv_heads": st.sampled_from([1, 2, None]),
    "head_dim": st.sampled_from([None, 20, 32]),
    "d_ff": st.sampled_from([80, 200]),
    "gated": st.booleans(),
    "bias": st.booleans(),
    "norm_position": st.sampled_from(["pre", "post", "deepnorm"]),
    "dropout": st.sampled_from([0.0, 0.2]),
    "ffn_dropout": st.sampled_from([0.0, 0.2]),
    "layer_drop": st.just(0.0),
}
SCORES: dict[str, st.SearchStrategy[Any]] = {
    "positions": st.sampled_from([Sinusoidal(), Rotary(), ALiBi()]),
    "attention_dropout": st.sampled_from([0.0, 0.2]),
    "score_soft_cap": st.sampled_from([None, 9.0]),
    "patterns": st.lists(st.sampled_from(SCORED), max_size=2).map(tuple),
}
DECODERS = st.builds(
    DecoderOnlyConfig,
    num_layers=st.integers(1, 2),
    vocab_size=st.just(150),
    tie_embeddings=st.booleans(),
    **LAYER,
    **SCORES,
) | st.builds(
    DecoderOnlyConfig,
    num_layers=st.just(1),
    vocab_size=st.just(150),
    patterns=st.just((LinearAttention(),)),
    **LAYER,
)
PAIRS = st.builds(
    EncoderDecoderConfig,
    num_encoder_layers=st.integers(1, 2),
    num_decoder_layers=st.integers(1, 2),
    src_vocab_size=st.just(150),
    tgt_vocab_size=st.just(150),
    encoder_patterns=st.just(()) | st.just((SlidingWindow(size=15, causal=False),)),
    **LAYER,
    **{name: SCORES[name] for name in ("positions", "attention_dropout", "score_soft_cap")},
)

ONE_NUMBER = DecoderOnlyConfig(d_model=2, num_heads=1, head_dim=1, num_layers=1, vocab_size=9)
ROWS, LENGTH = st.integers(1, 3), st.integers(20, 90)


@given(
    model=st.tuples(DECODERS, st.builds(Shape, rows=ROWS, length=st.integers(20, 200)))
    | st.tuples(PAIRS, st.builds(Shape, rows=ROWS, src_length=LENGTH, length=LENGTH)),
    checkpointing=st.booleans(),
)
@settings(max_examples=30)
def test_a_random_model_costs_what_torch_counts(
    *, model: tuple[DecoderOnlyConfig | EncoderDecoderConfig, Shape], checkpointing: bool
) -> None:
    """Forward and backward pass within one in a hundred, whatever the options."""
    config, shape = model
    found = step_of(config, shape, activation_checkpointing=checkpointing).flops
    expected = counted_training(config, shape, checkpointing=checkpointing)
    assert abs(found - expected) < 0.01 * expected


@given(
    pattern=st.builds(SlidingWindow, size=st.integers(1, 70)) | st.just(Causal()),
    prompt=st.integers(0, 90),
    more=st.integers(1, 300),
)
def test_a_store_copies_when_it_has_no_room_and_is_read_by_the_next_token(
    pattern: SlidingWindow | Causal, prompt: int, more: int
) -> None:
    """Its keys are copied, into a larger store or to its front, when there is no room left.

    What a step reads is what the next query meets beside its own key, however the tokens came.
    """
    storage = pattern.make_storage()
    assert isinstance(storage, GrowingStorage | RollingStorage)
    for new in ([prompt] if prompt else []) + [1] * more:
        before, end, room = storage._keys, storage._end, storage.room()
        storage.extend(KeyValue(*torch.zeros(2, 1, 1, new, 1)))
        assert (storage._keys is before and storage._end == end + new) == (new <= room)
    config = replace(ONE_NUMBER, patterns=(pattern,))
    read = decoding_step(config, Shape(rows=1, length=1), cached=prompt + more).read
    seen = storage.extend(KeyValue(*torch.zeros(2, 1, 1, 1, 1)))
    assert read == 8 * (seen.k_BKSd.shape[2] - 1)
