"""Recorded attention is the attention that the fast path used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_independent_translations
from tests.property.test_pattern_decoding import PATTERNS, SCHEMES, WITHOUT_SCORES
from tests.property.test_pattern_decoding import SMALL as DECODER
from tests.unit.models.family import ENCODER, TWO_BASES, make_decoder, make_encoder
from tests.unit.models.small import BOS, SMALL, VARIANTS, distance, random_ids
from tests.unit.models.small import make_model as make_translator
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from dragoman.lens.choices import Wanted
from dragoman.lens.trace import (
    Traced,
    Watched,
    attentions,
    choose_heads,
    trace_continuation,
    trace_text,
    trace_translation,
)
from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Causal,
    Full,
    LinearAttention,
    Longformer,
    MultiHeadAttention,
    RelativeBias,
    Rotary,
    SlidingWindow,
    row_invariant_products,
)
from dragoman.nn.patterns.recording import Recording

SEEDS = st.integers(0, 2**32)
CLOSE = 1e-6
PAIRS = [
    (name, scheme)
    for name in PATTERNS
    for scheme in SCHEMES
    if name not in WITHOUT_SCORES or scheme not in ("relative-bias", "alibi")
]
READING: dict[str, AttentionPattern] = {
    "full": Full(),
    "window": SlidingWindow(size=2, causal=False),
    "longformer": Longformer(window=2, global_positions=(0, 4)),
    "linear": LinearAttention(causal=False),
}
READINGS = [
    (name, scheme)
    for name in READING
    for scheme in (Rotary(), ALiBi(), RelativeBias(num_buckets=8))
    if name != "linear" or isinstance(scheme, Rotary)  # there are no scores to add a bias to
]


class Fast:
    """The outputs of one attention on its fast path, and the values of each position."""

    def __init__(self) -> None:
        self.outs: list[Tensor] = []
        self.values: list[Tensor] = []

    def __call__(self, _: nn.Module, inputs: tuple[Any, ...], out_BTD: Tensor) -> None:
        """Keep the output, and the new values: those of the queries' own positions."""
        self.outs.append(out_BTD[0])
        self.values.append(inputs[1].v_BKSd[0].clone())  # the cache overwrites its store


@contextmanager
def spying(modules: Sequence[MultiHeadAttention]) -> Iterator[list[Fast]]:
    """Record what attention modules return."""
    spies = [Fast() for _ in modules]
    handles = [
        module.register_forward_hook(spy) for module, spy in zip(modules, spies, strict=True)
    ]
    yield spies
    for handle in handles:
        handle.remove()


def assert_recombines(
    module: MultiHeadAttention, spy: Fast, weights_HTS: Tensor, *, own: bool
) -> None:
    """Assert that `weights v`, after the output projection, is what the module returned."""
    if own:  # self-attention: each call has its own positions last
        pairs = zip(spy.values, spy.outs, strict=True)
        v_KSd = torch.cat([v_KSd[:, -len(out) :] for v_KSd, out in pairs], dim=1)
    else:
        v_KSd = spy.values[0]
    v_HSd = v_KSd.repeat_interleave(module.num_heads // module.num_kv_heads, dim=0)
    joined_TD = (weights_HTS.to(v_HSd) @ v_HSd).transpose(0, 1).flatten(1)
    assert distance(module.out_proj(joined_TD), torch.cat(spy.outs)) < CLOSE


def assert_distributions(module: MultiHeadAttention, weights_HTS: Tensor) -> None:
    """Assert that rows sum to one, over exactly the keys that the pattern shows to a query."""
    num_queries, num_keys = weights_HTS.shape[1:]
    assert bool((weights_HTS >= 0).all())
    assert distance(weights_HTS.sum(-1), torch.ones(len(weights_HTS), num_queries)) < CLOSE
    seen = module.pattern.mask(num_queries, num_keys, weights_HTS.device)
    if seen is not None:
        assert not bool(weights_HTS[:, ~seen].any())


def check(modules: Sequence[MultiHeadAttention], spies: Sequence[Fast], traced: Traced) -> None:
    """Check all layers of a map."""
    own = traced.weights_LHTS.shape[-1] == sum(map(len, spies[0].outs))
    for module, spy, weights_HTS in zip(modules, spies, traced.weights_LHTS, strict=True):
        assert_recombines(module, spy, weights_HTS, own=own)
        assert_distributions(module, weights_HTS)
    for layer, mean_TS in traced.means.items():
        assert distance(traced.weights_LHTS[layer].mean(0), mean_TS) < CLOSE


@pytest.mark.parametrize(("name", "scheme"), PAIRS)
@given(seed=SEEDS, prompt=st.integers(1, 9), steps=st.integers(0, 9))
@settings(max_examples=2)
def test_a_continuation_is_traced_as_it_is_decoded(
    name: str, scheme: str, seed: int, prompt: int, steps: int
) -> None:
    """With every pattern's own storage; and it is the attention of the pass without a cache."""
    model = make_decoder(replace(DECODER, patterns=PATTERNS[name], positions=SCHEMES[scheme]))
    ids = random_ids(seed, prompt + steps).tolist()
    modules = attentions(model)["decoder"]
    with spying(modules) as spies, torch.no_grad():
        traced, logits_PV = trace_continuation(model, ids[:prompt], ids[prompt:])
        assert [len(spy.outs) for spy in spies] == [1 + steps] * len(modules)
        check(modules, spies, traced["decoder"])
    watched = Watched(model)
    with torch.no_grad():
        expected_BLV = watched.model(torch.tensor([ids]))
    assert distance(logits_PV.double(), expected_BLV[0, :prompt]) < CLOSE
    whole_LHTS = watched.traced()["decoder"].weights_LHTS
    assert distance(traced["decoder"].weights_LHTS, whole_LHTS) < CLOSE


@pytest.mark.parametrize("name", VARIANTS)
@given(seed=SEEDS, sizes=st.tuples(st.integers(1, 8), st.integers(1, 8)))
@settings(max_examples=2)
def test_a_translation_is_traced_as_it_is_decoded(
    name: str, seed: int, sizes: tuple[int, int]
) -> None:
    """All three kinds of attention, for every word that a config knows."""
    model = make_translator(VARIANTS[name])
    src, tgt = (random_ids(seed + n, size).tolist() for n, size in enumerate(sizes))
    read = [BOS, *tgt[:-1]]
    found = attentions(model)
    assert set(found) == {"encoder", "decoder", "cross"}
    every = [module for modules in found.values() for module in modules]
    with spying(every) as spies, torch.no_grad():
        traced = trace_translation(model, src, read)
        of = dict(zip(every, spies, strict=True))
        for kind, modules in found.items():
            triples = zip(modules, traced[kind].weights_LHTS, strict=True)
            for module, weights_HTS in triples:
                assert_recombines(module, of[module], weights_HTS, own=kind != "cross")
                assert_distributions(module, weights_HTS)
    watched = Watched(model)
    with torch.no_grad():
        watched.model(torch.tensor([src]), torch.tensor([read]))
    for kind, whole in watched.traced().items():
        assert distance(traced[kind].weights_LHTS, whole.weights_LHTS) < CLOSE


@pytest.mark.parametrize(("name", "scheme"), READINGS)
@given(seed=SEEDS, length=st.integers(1, 12))
@settings(max_examples=2)
def test_a_reading_is_traced_as_it_is_done(
    name: str, scheme: Rotary | ALiBi | RelativeBias, seed: int, length: int
) -> None:
    """An encoder alone, with patterns that look both ways."""
    patterns = (READING[name],)
    model = make_encoder(replace(ENCODER, num_kv_heads=2, patterns=patterns, positions=scheme))
    ids = random_ids(seed, length).tolist()
    modules = attentions(model)["encoder"]
    with spying(modules) as spies, torch.no_grad():
        traced, out_LD = trace_text(model, ids, averaged=True)
        assert list(traced["encoder"].means) == [0, 1]
        check(modules, spies, traced["encoder"])
        assert distance(out_LD.double(), model(torch.tensor([ids]))[0]) < CLOSE


def test_watching_changes_nothing() -> None:
    """The logits are the same bits, and the shared model records nothing."""
    model = make_translator(SMALL, torch.float32)
    src_BS, tgt_BT = random_ids(1, 1, 6), random_ids(2, 1, 5)
    with torch.no_grad():
        alone = model(src_BS, tgt_BT)
        assert torch.equal(Watched(model).model(src_BS, tgt_BT), alone)
    modules = [module for found in attentions(model).values() for module in found]
    assert {type(module.pattern) for module in modules} == {Full, Causal}


def test_tracing_leaves_the_mode() -> None:
    """A model in training is traced without dropout, and remains in training."""
    model = make_translator(replace(SMALL, dropout=0.5)).train()
    ids = random_ids(1, 5).tolist()
    first, second = (trace_translation(model, ids, ids)["cross"].weights_LHTS for _ in range(2))
    assert torch.equal(first, second)
    assert model.training


@needs_independent_translations
def test_what_is_traced_has_the_bits_of_decoding() -> None:
    """A text's logits are those that the model computes for it in a batch, to the last bit."""
    config = replace(ENCODER, d_model=128, d_ff=600)
    model = make_encoder(config).float()
    ids_BL = random_ids(1, 7, 33)
    with torch.inference_mode(), row_invariant_products():
        together_BLD = model(ids_BL)
    for ids, together_LD in zip(ids_BL.tolist(), together_BLD, strict=True):
        assert torch.equal(trace_text(model, ids)[1], together_LD)


def test_what_nobody_asked_for_is_not_computed() -> None:
    """The extra cost is that of the requested heads, in each of the requested layers."""
    model = make_decoder(DECODER)
    num_layers, num_heads = DECODER.num_layers, DECODER.num_heads
    ids = random_ids(1, 12).tolist()

    def flops(num_layers: int, num_heads: int) -> int:
        wanted = Wanted(layers=range(num_layers), heads=range(num_heads))
        with FlopCounterMode(display=False) as counter:
            trace_continuation(model, ids[:7], ids[7:], wanted)
        return int(counter.get_total_flops())

    a_head = flops(1, 2) - flops(1, 1)
    a_layer = flops(2, 1) - flops(1, 1)
    assert 0 < a_head == a_layer
    assert flops(num_layers, num_heads) - flops(1, 1) == (num_layers * num_heads - 1) * a_head


def some_of(count: int) -> st.SearchStrategy[list[int] | None]:
    """Draw some numbers below `count`, in order, or None."""
    return st.none() | st.sets(st.integers(0, count - 1), min_size=1).map(sorted)


@given(
    layers=st.integers(1, 12),
    heads=st.integers(1, 9),
    size=st.integers(1, 500),
    most=st.integers(1, 20_000),
    data=st.data(),
)
@settings(max_examples=25)
def test_what_is_kept_fits(
    layers: int, heads: int, size: int, most: int, data: st.DataObject
) -> None:
    """All, if it fits; else as many layers as fit, the last one among them; else some heads."""
    module = MultiHeadAttention(heads, heads)
    wanted = Wanted(layers=data.draw(some_of(layers)), heads=data.draw(some_of(heads)))
    kept, kept_heads = choose_heads([module] * layers, size, wanted, most)
    asked = list(range(layers) if wanted.layers is None else wanted.layers)
    asked_heads = tuple(range(heads) if wanted.heads is None else wanted.heads)
    heads = len(asked_heads)
    assert set(kept) <= set(asked)
    assert list(kept) == sorted(set(kept))
    assert kept[-1] == asked[-1]
    assert kept_heads == asked_heads[: len(kept_heads)]
    total = len(kept) * len(kept_heads) * size
    assert total <= most or (len(kept), len(kept_heads)) == (1, 1)
    if len(asked) * heads * size <= most:
        assert (list(kept), len(kept_heads)) == (asked, heads)
    elif heads * size <= most:
        assert (len(kept) + 1) * heads * size > most
        assert len(kept_heads) == heads


@torch.no_grad()
def test_a_recorded_window_keeps_its_rotary_base() -> None:
    """Windows of Gemma 3 are rotated by a base of their own, recorded or not."""
    model, ids_BL = make_decoder(TWO_BASES), random_ids(1, 2, 9)
    wanted = model(ids_BL)
    for layer in model.decoder.each_layer():
        layer.self_attn.pattern = Recording(of=layer.self_attn.pattern, see=lambda _: None)
    assert torch.equal(model(ids_BL), wanted)
