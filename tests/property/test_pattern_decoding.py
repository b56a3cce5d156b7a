"""Decoding with a cache equals the full pass: every causal pattern, position scheme, and RWKV."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.family import DECODERS, RWKV, TWO_BASES, make_decoder
from tests.unit.models.small import PAD, distance, random_ids
from torch.nn.functional import pad

from dragoman.models import DecoderOnlyConfig
from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Causal,
    Fixed,
    Learned,
    LinearAttention,
    Longformer,
    NoPositions,
    PositionScheme,
    RelativeBias,
    Rotary,
    Sinusoidal,
    SlidingWindow,
    Strided,
)

SMALL = DecoderOnlyConfig(
    vocab_size=23, d_model=16, num_heads=4, num_kv_heads=2, d_ff=24, num_layers=3, dropout=0.0
)
SCHEMES: dict[str, PositionScheme] = {
    "sinusoidal": Sinusoidal(),
    "learned": Learned(max_length=60),
    "rotary": Rotary(),
    "relative-bias": RelativeBias(num_buckets=8, max_distance=12),
    "alibi": ALiBi(),
    "none": NoPositions(),
}
PATTERNS: dict[str, tuple[AttentionPattern, ...]] = {
    "causal": (Causal(),),
    "window": (SlidingWindow(size=4),),
    "window of one": (SlidingWindow(size=1),),
    "longformer": (Longformer(window=3, global_positions=(0, 6, 17), causal=True),),
    "strided": (Strided(stride=3),),
    "fixed": (Fixed(stride=4, summary=1),),
    "linear": (LinearAttention(),),
    "retnet": (LinearAttention(decay="retnet"), LinearAttention(decay=(0.5, 0.9))),
    "window, window, full": (SlidingWindow(size=3), SlidingWindow(size=5), Causal()),
}
WITHOUT_SCORES = ("linear", "retnet")  # and therefore no bias of scores
# These count positions from the start of the row, padding included.
COUNTING = ("longformer", "fixed")
FREE_OF_PLACES = [name for name in PATTERNS if name not in COUNTING]
CONFIGS = {
    **{
        f"{name}, {scheme}": replace(SMALL, patterns=PATTERNS[name], positions=SCHEMES[scheme])
        for name in PATTERNS
        for scheme in SCHEMES
        if name not in WITHOUT_SCORES or scheme not in ("relative-bias", "alibi")
    },
    **DECODERS,
    "two bases": TWO_BASES,
    "rwkv": RWKV,
    "rwkv, post-norm": replace(RWKV, norm_position="post", positions=Sinusoidal()),
    "rwkv, gpt2-init": replace(RWKV, init="gpt2", norm="rms", bias=False, num_layers=1),
}
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("name", CONFIGS)
@given(
    seed=SEEDS,
    prompt=st.integers(1, 12),
    beam_size=st.integers(1, 3),
    parts=st.lists(st.integers(1, 9), max_size=6),
)
@settings(max_examples=8)
def test_cached_decoding_is_the_full_pass(
    name: str, seed: int, prompt: int, beam_size: int, parts: list[int]
) -> None:
    """A prompt, then some tokens of each beam at a time, gives the logits of all at once."""
    model = make_decoder(CONFIGS[name])
    ids_BL = random_ids(seed, 2, prompt + sum(parts))
    with torch.no_grad():
        state = model.start(ids_BL[:, :prompt], beam_size)
        ids_NL = ids_BL.repeat_interleave(beam_size, dim=0)
        expected = model(ids_NL)
        logits, start = [], prompt - 1
        for size in (1, *parts):
            logits.append(model.extend(ids_NL[:, start : start + size], state))
            start += size
    assert distance(torch.cat(logits, dim=1), expected[:, prompt - 1 :]) < 1e-12
    assert state.past.length == ids_BL.shape[1]


@pytest.mark.parametrize("name", [*(f"{name}, rotary" for name in PATTERNS), "rwkv"])
@given(seed=SEEDS, order=st.lists(st.integers(0, 2), min_size=1, max_size=5))
@settings(max_examples=15)
def test_selected_rows_go_on_as_if_they_had_been_alone(
    name: str, seed: int, order: list[int]
) -> None:
    """Reordering, repeating and dropping rows in mid-text equals recomputing the chosen rows."""
    model = make_decoder(CONFIGS[name])
    ids_BL = random_ids(seed, 3, 14)
    rows_N = torch.tensor(order)
    with torch.no_grad():
        state = model.start(ids_BL[:, :9], 1)
        model.step(ids_BL[:, 8], state)
        state.select(rows_N)
        chosen = ids_BL[rows_N]
        for t in range(9, 14):
            logits = model.step(chosen[:, t], state)
            assert distance(logits, model(chosen[:, : t + 1])[:, -1]) < 1e-12


PADDED = DECODERS | {
    name: replace(SMALL, patterns=PATTERNS[name], positions=Rotary()) for name in FREE_OF_PLACES
}


@given(
    st.sampled_from(list(PADDED)),
    SEEDS,
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(0, 3),
)
@settings(max_examples=60)
def test_prompts_padded_in_front_are_the_prompts_alone(
    name: str, seed: int, lengths: list[int], extra: int
) -> None:
    """Padding before a prompt changes neither the whole pass nor decoding from it."""
    model = make_decoder(PADDED[name])
    width = max(lengths) + extra
    rows = [random_ids(seed + i, 1, length) for i, length in enumerate(lengths)]
    padded_BL = torch.cat([pad(row, (width - row.shape[1], 0), value=PAD) for row in rows])
    more_B2 = random_ids(seed + 99, len(rows), 2)
    with torch.no_grad():
        whole = model(padded_BL, padded_BL != PAD)
        state = model.start(padded_BL, 1)
        steps = [model.step(ids, state) for ids in (padded_BL[:, -1], *more_B2.unbind(1))]
        for i, row in enumerate(rows):
            assert distance(whole[i : i + 1, width - row.shape[1] :], model(row)) < 1e-12
            alone = model(torch.cat([row, more_B2[i : i + 1]], dim=1))[0, -3:]
            assert distance(torch.stack([step[i] for step in steps]), alone) < 1e-12


@pytest.mark.parametrize("name", COUNTING)
def test_padding_in_front_is_refused_where_places_count(name: str) -> None:
    """A pattern that counts positions from the row's start would see other tokens than alone."""
    model = make_decoder(replace(SMALL, patterns=(Causal(), *PATTERNS[name])))
    ids_BL = random_ids(0, 2, 9)
    whole = model(ids_BL)
    assert distance(model(ids_BL, ids_BL != model.pad_id), whole) == 0.0
    ids_BL[0, :2] = model.pad_id
    with pytest.raises(ValueError, match="padded in front"):
        model.start(ids_BL, 1)
    with pytest.raises(ValueError, match="padded in front"):
        model(ids_BL, ids_BL != model.pad_id)
