"""The fast step computes what the model computes, and each row independently."""

from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_compiler, needs_independent_rows, needs_independent_translations
from tests.unit.models.family import DECODERS, NORM_LAST, TWO_BASES, make_decoder
from tests.unit.models.small import (
    BOS,
    EOS,
    PAD,
    SMALL,
    VARIANTS,
    distance,
    make_model,
    random_ids,
    random_sentences,
)
from torch import Tensor

from dragoman.decode import Beam, Forbid, Greedy, Limits, Rolling, search
from dragoman.decode.protocol import Uneven
from dragoman.engine import FrozenDecoderOnly, FrozenEncoderDecoder, freeze
from dragoman.engine.products import PackedLinear, can_pack, translations_are_independent
from dragoman.engine.store import BLOCK
from dragoman.models import DecoderOnly, EncoderDecoder
from dragoman.nn import (
    ALiBi,
    Arithmetic,
    Linear,
    LinearAttention,
    Pattern,
    SlidingWindow,
    Strided,
    autocast,
    causal_mask,
    row_invariant_products,
)
from dragoman.nn.cpu.products import TRIED, rows_are_independent

SEEDS = st.integers(0, 2**32)
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=6)
CLOSE = 2e-5  # float32 against float64
PRECISIONS = [
    pytest.param("fp32", marks=needs_independent_translations),
    pytest.param("bf16", marks=pytest.mark.skipif(not can_pack("bf16"), reason="no bf16 here")),
    pytest.param("int8", marks=pytest.mark.skipif(not can_pack("int8"), reason="no int8 here")),
]
pytestmark = needs_compiler


def frozen(model: EncoderDecoder | DecoderOnly, arithmetic: Arithmetic = "fp32") -> Any:  # noqa: ANN401 -- either plan
    """Freeze a model of the tests."""
    found = freeze(model, arithmetic)
    assert isinstance(found, FrozenEncoderDecoder | FrozenDecoderOnly)
    return found


def full(model: EncoderDecoder, src_BS: Tensor, tgt_NT: Tensor) -> Tensor:
    """Compute the last logits of each row without a cache, in the model's own precision."""
    beams = tgt_NT.shape[0] // src_BS.shape[0]
    logits: Tensor = model(src_BS.repeat_interleave(beams, dim=0), tgt_NT)
    return logits[:, -1]


@given(st.sampled_from(list(VARIANTS)), SEEDS, LENGTHS, st.integers(1, 4), st.data())
@settings(max_examples=50, deadline=None)
@torch.inference_mode()
def test_a_plan_is_the_model(
    name: str, seed: int, lengths: list[int], beam_size: int, data: st.DataObject
) -> None:
    """Every config: steps, beams in any order, dropped rows and sentences give its logits."""
    model = make_model(VARIANTS[name])
    fast = frozen(make_model(VARIANTS[name]).float())
    src_BS = random_sentences(seed, lengths)
    src_NS = src_BS.repeat_interleave(beam_size, dim=0)
    tgt_NT = random_ids(seed + 1, len(src_NS), 1)
    state = fast.start(src_BS, beam_size)
    logits_NV = fast.step(tgt_NT[:, 0], state)
    assert distance(logits_NV.double(), full(model, src_NS, tgt_NT)) < CLOSE
    fewest = 1 if isinstance(state, Uneven) and state.uneven else beam_size
    rows_of = [list(range(b * beam_size, (b + 1) * beam_size)) for b in range(len(lengths))]
    for turn in range(4):
        kept = [rows for rows in rows_of if data.draw(st.integers(0, 9)) > 0] or rows_of[:1]
        picks = [
            data.draw(st.lists(st.sampled_from(rows), min_size=fewest, max_size=beam_size))
            for rows in kept
        ]
        rows, counted = [row for each in picks for row in each], count()
        rows_of = [list(islice(counted, len(each))) for each in picks]
        state.select(torch.tensor(rows))
        src_NS = src_NS[rows]
        new_N = random_ids(seed + 2 + turn, len(rows))
        tgt_NT = torch.cat([tgt_NT[rows], new_N[:, None]], dim=1)
        logits_NV = fast.step(new_N, state)
        assert distance(logits_NV.double(), full(model, src_NS, tgt_NT)) < CLOSE


@pytest.mark.parametrize("name", ["paper", "relative-bias", "adjacent-rotary"])
@torch.inference_mode()
def test_beyond_a_block_of_positions(name: str) -> None:
    """The stores grow and keep their content."""
    model = make_model(VARIANTS[name])
    fast = frozen(make_model(VARIANTS[name]).float())
    src_BS = random_sentences(1, [5, 9])
    tgt_NT = random_ids(2, 4, 2 * BLOCK + 3)
    state = fast.start(src_BS, 2)
    for length in range(1, tgt_NT.shape[1] + 1):
        logits_NV = fast.step(tgt_NT[:, length - 1], state)
        if length in (BLOCK, BLOCK + 1, 2 * BLOCK + 1, 2 * BLOCK + 3):
            expected_NV = full(model, src_BS, tgt_NT[:, :length])
            assert distance(logits_NV.double(), expected_NV) < CLOSE


@given(st.sampled_from(list(DECODERS)), SEEDS, st.integers(1, 40), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
@torch.inference_mode()
def test_prompts(name: str, seed: int, length: int, beam_size: int) -> None:
    """Prompts of one length are read once for all beams, and continued as by the model."""
    model, fast = make_decoder(DECODERS[name]), frozen(make_decoder(DECODERS[name]).float())
    prompts_BS = random_ids(seed, 3, length)
    ids_NL = prompts_BS.repeat_interleave(beam_size, dim=0)
    state = fast.start(prompts_BS, beam_size)
    for turn in range(3):
        logits_NV = fast.step(ids_NL[:, -1], state)
        assert distance(logits_NV.double(), model(ids_NL)[:, -1]) < CLOSE
        rows_N = torch.arange(len(ids_NL)).view(3, beam_size).flip(1).flatten()
        state.select(rows_N)
        ids_NL = torch.cat([ids_NL[rows_N], random_ids(seed + turn, len(ids_NL), 1)], dim=1)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"norm_position": "sandwich"},
        {"qk_norm": True},
        {"qk_norm": True, "positions": NORM_LAST},
    ],
)
@pytest.mark.parametrize("beam_size", [1, 3])
@torch.inference_mode()
def test_windows(beam_size: int, changed: dict[str, Any]) -> None:
    """Layers with and without a window are continued far beyond it, each with its own angles."""
    config = replace(TWO_BASES, **changed)
    model, fast = make_decoder(config), frozen(make_decoder(config).float())
    for length in (1, 2, 9):
        prompts_BS = random_ids(length, 2, length)
        ids_NL = prompts_BS.repeat_interleave(beam_size, dim=0)
        state = fast.start(prompts_BS, beam_size)
        for turn in range(7):
            logits_NV = fast.step(ids_NL[:, -1], state)
            assert distance(logits_NV.double(), model(ids_NL)[:, -1]) < CLOSE
            rows_N = torch.arange(len(ids_NL)).view(2, beam_size).flip(1).flatten()
            state.select(rows_N)
            ids_NL = torch.cat([ids_NL[rows_N], random_ids(turn, len(ids_NL), 1)], dim=1)


@torch.inference_mode()
def test_a_rolling_context_reorders_rows_as_it_likes() -> None:
    """After the prompt is read again each row is its own sentence, and beams still move."""
    model = make_decoder(DECODERS["llama"]).float()
    prompts_BS = random_ids(1, 2, 5)
    limits = Limits(bos_id=BOS, eos_id=EOS, max_B=torch.tensor([30, 30]), first_B=prompts_BS[:, -1])
    found = [
        search(Rolling(each, 8), prompts_BS, Beam(beam_size=3), limits=limits)
        for each in (model, frozen(model))
    ]
    assert [best.ids for best, *_ in found[0]] == [best.ids for best, *_ in found[1]]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "strategy", [Greedy(), Beam(beam_size=3, n_best=3)], ids=["greedy", "beam"]
)
@given(SEEDS, LENGTHS)
@settings(max_examples=8, deadline=None)
def test_neighbours_change_no_bit(
    strategy: Greedy | Beam, precision: Arithmetic, seed: int, lengths: list[int]
) -> None:
    """Ids and scores of a sentence alone are those in a batch, in whatever order."""
    fast = frozen(make_model().float(), precision)
    src_BS = random_sentences(seed, lengths)
    generator = torch.Generator().manual_seed(seed)
    max_B = torch.randint(1, 50, (len(lengths),), generator=generator)

    def found(rows: list[int], width: int) -> list[Any]:
        limits = Limits(bos_id=BOS, eos_id=EOS, max_B=max_B[rows])
        with row_invariant_products():
            return search(
                fast, src_BS[rows, :width], strategy, processors=[Forbid((PAD, BOS))], limits=limits
            )

    together = found(list(range(len(lengths))), max(lengths))
    assert found(list(range(len(lengths)))[::-1], max(lengths)) == together[::-1]
    for row, length in enumerate(lengths):
        assert found([row], length) == [together[row]]


@needs_independent_rows
@pytest.mark.parametrize("precision", PRECISIONS)
@given(SEEDS, st.integers(2, 12), st.integers(1, 5))
@settings(max_examples=8, deadline=None)
def test_prompts_side_by_side_change_no_bit(
    precision: Arithmetic, seed: int, rows: int, length: int
) -> None:
    """Nor does a neighbour of a prompt, where queries are turned and feed-forwards gated.

    Attention in a prompt is a module's, of float32 numbers in int8 too.
    """
    fast = frozen(make_decoder(DECODERS["llama"]).float(), precision)
    prompts_BS = random_ids(seed, rows, length)

    def found(prompts_BS: Tensor) -> list[Any]:
        max_B = torch.full_like(prompts_BS[:, 0], 9)
        limits = Limits(bos_id=BOS, eos_id=EOS, max_B=max_B, first_B=prompts_BS[:, -1])
        with row_invariant_products():
            return search(fast, prompts_BS, Greedy(), limits=limits)

    alone = [found(prompt_1S)[0] for prompt_1S in prompts_BS.split(1)]
    assert found(prompts_BS) == alone


@needs_independent_translations
@pytest.mark.parametrize("columns", [8, 100, 512, 1025, 2048])
@pytest.mark.parametrize("rows", [5, 64, 512])
@torch.inference_mode()
def test_a_row_of_a_packed_product_knows_no_other(columns: int, rows: int) -> None:
    """Any number of rows, even one, at any offset gives the same bits, with a residual too."""
    product, x_MI = PackedLinear(Linear(columns, rows), precision="fp32"), torch.randn(130, columns)
    added_MO = torch.randn(130, rows)
    expected_MO, sums_MO = product(x_MI), product.plus(x_MI, added_MO)
    for some in (1, 2, 3, 5, 8, 9, 17, 33, 65, 129):
        assert torch.equal(product(x_MI[:some]), expected_MO[:some])
        assert torch.equal(product(x_MI[-some:]), expected_MO[-some:])
        assert torch.equal(product.plus(x_MI[:some], added_MO[:some]), sums_MO[:some])


@torch.inference_mode()
def test_what_is_said_of_translations_is_what_products_show() -> None:
    """If the rows of all tried sizes agree, no law of translations is skipped."""
    agree = list[bool]()
    for columns, rows in TRIED:
        product, x_MI = (
            PackedLinear(Linear(columns, rows), precision="fp32"),
            torch.randn(33, columns),
        )
        parts = (torch.cat([*map(product, x_MI.split(some))]) for some in (1, 2, 5, 8))
        agree += (torch.equal(part, product(x_MI)) for part in parts)
    assert translations_are_independent("fp32") == (rows_are_independent("fp32") or all(agree))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["paper", "relative-bias", "learned", "llama"])
def test_what_is_frozen_stays(name: str, precision: Arithmetic) -> None:
    """Later changes of the model's weights have no effect until it is frozen again."""
    decoder = name in DECODERS
    model = make_decoder(DECODERS[name]) if decoder else make_model(VARIANTS[name])
    src_BS, ids_N = random_ids(0, 3, 5), torch.tensor([4] * 3)
    fast = frozen(model.float(), precision)

    def logits(decoder: Any) -> Tensor:  # noqa: ANN401 -- either kind
        state = decoder.start(src_BS, 1)
        decoder.narrow(torch.arange(4, 9), state)
        found: Tensor = decoder.step(ids_N, state)
        return found

    with torch.inference_mode():
        expected = logits(fast)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(torch.rand_like(parameter))
    with torch.inference_mode():
        assert torch.equal(logits(fast), expected)
        assert not torch.equal(logits(frozen(model, precision)), expected)


@torch.inference_mode()
@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_may_become_more(precision: Arithmetic) -> None:
    """Without beams a row may be repeated, as the state's protocol says."""
    model = make_decoder(DECODERS["llama"]).float()
    fast, prompts_BS = frozen(model, precision), random_ids(0, 2, 4)
    state, whole = fast.start(prompts_BS, 1), fast.start(prompts_BS.repeat_interleave(3, 0), 1)
    ids_N = random_ids(1, 2)
    fast.step(ids_N, state)
    fast.step(ids_N.repeat_interleave(3), whole)
    state.select(torch.tensor([0, 0, 0, 1, 1, 1]))
    ids_N = random_ids(2, 6)
    assert distance(fast.step(ids_N, state).float(), fast.step(ids_N, whole).float()) < 0.05


@pytest.mark.parametrize(
    "changed",
    [
        {"decoder_patterns": (Strided(stride=2),)},
        {"decoder_patterns": (LinearAttention(),)},
        {"decoder_patterns": (SlidingWindow(size=3),), "positions": ALiBi()},
    ],
)
def test_other_patterns_stay_with_the_model(changed: dict[str, Any]) -> None:
    """Tokens must see the whole prefix or, without a bias, the positions of a window."""
    model = make_model(replace(SMALL, **changed), torch.float32)
    assert freeze(model, "fp32") is model


@dataclass(frozen=True, slots=True, kw_only=True)
class Near(Pattern):
    """Three positions, reported as by a window: no mask while there are few keys."""

    is_causal = True

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Hide keys three or more positions before a query."""
        if num_queries == 1 and num_keys <= 3:
            return None
        return causal_mask(num_queries, num_keys, device).triu(num_keys - num_queries - 2)


class Adapted(Linear):
    """A user's subclass of a product."""


def test_parts_of_the_users_own_stay_with_the_model() -> None:
    """Custom patterns, subclasses and hooks are served by the model, which calls them."""
    model = make_model(SMALL, torch.float32)
    assert freeze(model, "fp32") is not model
    model.decoder.layers[0].get_submodule("ffn").register_forward_hook(lambda *_: None)
    assert freeze(model, "fp32") is model
    model = make_model(SMALL, torch.float32)
    model.encoder.each_layer()[1].self_attn.out_proj = Adapted(16, 16)
    assert freeze(model, "fp32") is model
    model = make_model(SMALL, torch.float32)
    model.decoder.each_layer()[0].self_attn.pattern = Near()
    assert freeze(model, "fp32") is model


@torch.inference_mode()
def test_a_source_of_nothing_but_padding() -> None:
    """It attends to nothing, as in the model, and does not affect other sources."""
    model = make_model()
    src_BS = random_sentences(1, [4, 0, 7])
    ids_N = random_ids(2, 3)
    fast = frozen(make_model().float())
    logits_NV = fast.step(ids_N, fast.start(src_BS, 1))
    assert distance(logits_NV.double(), full(model, src_BS, ids_N[:, None])) < CLOSE


def test_other_devices_and_dtypes_stay_with_the_model() -> None:
    """A plan is for the CPU, and its weights are copies of float32 weights."""
    for model in (make_model(SMALL, torch.float32).to("meta"), make_model(SMALL, torch.float64)):
        assert freeze(model, "fp32") is model


@pytest.mark.parametrize("precision", PRECISIONS)
@torch.inference_mode()
def test_rows_that_were_not_selected_are_an_error(precision: Arithmetic) -> None:
    """A step with fewer rows than the state has raises instead of reading beyond them."""
    model = frozen(make_model(SMALL).float(), precision)
    state = model.start(random_ids(0, 3, 5), 1)
    with pytest.raises((ValueError, RuntimeError)):  # torch raises if nothing is compiled
        model.step(torch.tensor([BOS, BOS]), state)


@pytest.mark.skipif(not can_pack("bf16"), reason="no bf16 here")
@torch.inference_mode()
def test_autocast_changes_nothing() -> None:
    """A plan computes in its own dtypes, whatever the caller's autocast says."""
    fast = frozen(make_model().float(), "bf16")
    src_BS, ids_N = random_sentences(3, [7, 20]), random_ids(4, 2)
    expected = fast.step(ids_N, fast.start(src_BS, 1))
    with autocast("bf16", torch.device("cpu")):
        assert torch.equal(fast.step(ids_N, fast.start(src_BS, 1)), expected)
