"""Compiled greedy and beam search find what the readable versions find, bit for bit."""

from dataclasses import replace
from random import Random
from typing import Any, Self

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_compiler
from tests.unit.decode.tables import BOS, EOS, PAD, TableModel, limits, random_table, sources
from torch import Tensor

from dragoman.decode import Beam, Forbid, Greedy, Limits, Strategy, search_steps
from dragoman.decode.compiled import CompiledFrontier, begin
from dragoman.nn.cpu.ranking import IMPOSSIBLE, LogSoftmax

SEEDS = st.integers(0, 2**32)
LIMITS = st.lists(st.integers(1, 9), min_size=1, max_size=5)
pytestmark = needs_compiler


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    """Draw greedy search, or a beam of any width."""
    alpha = draw(st.sampled_from([0.0, 0.6, 1.0, 300.0]))
    width = draw(st.integers(0, 7))
    if not width:
        return Greedy(length_penalty=alpha)
    n_best = draw(st.integers(1, width))
    return Beam(beam_size=width, length_penalty=alpha, n_best=n_best)


def steps_of(
    model: TableModel, strategy: Strategy, bounds: Limits, *, compiled: bool
) -> list[tuple[Any, ...]]:
    """Return everything that each step of a search reports about its open rows."""
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr("dragoman.decode.compiled.native", lambda: None)
        steps = search_steps(
            model,
            sources(*([3 + number, EOS] for number in range(len(bounds.max_B)))),
            strategy,
            processors=[Forbid((PAD, BOS))],
            limits=bounds,
        )
        return [
            (step.prefixes.ids_NL[step.open_N].tolist(), step.open_N.tolist(), step.finished)
            for step in steps
        ]


@given(SEEDS, st.integers(3, 200), st.sampled_from([None, 2, 5]), LIMITS, strategies())
def test_every_step_is_the_same(
    seed: int, vocab_size: int, levels: int | None, most: list[int], strategy: Strategy
) -> None:
    """Rows that stay open, tokens, and each bit of a score; equals go to the lower token."""
    table = random_table(seed, vocab_size, levels=levels)
    compiled, readable = (
        steps_of(TableModel(table), strategy, limits(*most), compiled=compiled)
        for compiled in (True, False)
    )
    assert compiled == readable


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.5, -7.0, 3e38, -3e38, 1e-40, IMPOSSIBLE])


@given(
    st.data(),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3, 63, 64, 65, 130]),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
)
@settings(deadline=None)
def test_hostile_logits_lead_to_the_same_hypotheses(
    data: st.DataObject, width: int, vocab_size: int, dtype: torch.dtype
) -> None:
    """Equals, extremes and impossible tokens, vocabularies narrower than the beam, NaN where it is
    closed; of all rows or the open ones; sentences leave at random.
    """
    strategy = Beam(beam_size=width, n_best=data.draw(st.integers(1, width)))
    max_B = torch.tensor(data.draw(LIMITS))
    bounds = Limits(bos_id=0, eos_id=data.draw(st.integers(0, vocab_size)), max_B=max_B)
    compiled, readable = begin(strategy, bounds), strategy.begin(max_B, bounds.eos_id)
    assert isinstance(compiled, CompiledFrontier)
    while len(max_B):
        open_N = compiled.open_N
        assert open_N.tolist() == readable.open_N.tolist()
        draw = Random(data.draw(SEEDS))
        levels = data.draw(st.lists(NUMBERS, min_size=1, max_size=5))
        every = [draw.choices(levels, k=vocab_size) for _ in open_N]
        logits_NV = torch.tensor(every, dtype=torch.float64)
        logits_NV[:, 0].masked_fill_((logits_NV == IMPOSSIBLE).all(1), 0.5)  # something is left
        logits_NV = logits_NV.clamp(max=3e38).to(dtype)
        if data.draw(st.booleans()):
            logits_NV = logits_NV[open_N]
        else:
            logits_NV[~open_N] = float("nan")
        one = compiled.advance(logits_NV)
        other = readable.advance(LogSoftmax()(logits_NV.float()))
        assert one is not None
        assert one.open_N.tolist() == other.open_N.tolist()
        assert one.ended_N.tolist() == other.ended_N.tolist()
        taken_N, none = one.open_N | one.ended_N, torch.arange(len(open_N))
        for name in ("tokens_N", "token_log_probs_N", "log_probs_N", "scores_N", "parents_N"):
            found = [none if (x := getattr(each, name)) is None else x for each in (one, other)]
            assert found[0][taken_N].tolist() == found[1][taken_N].tolist(), name
        goes_on_B = one.open_N.view(-1, width).any(1)
        assert one.quiet == (bool(goes_on_B.all()) and not bool(one.ended_N.any()))
        kept_K = goes_on_B.nonzero().flatten()
        kept_K = kept_K[[place for place in range(len(kept_K)) if draw.random() < 0.9]]
        compiled.keep(kept_K)
        readable.keep(kept_K)
        max_B = max_B[kept_K]


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_types_are_those_that_compiled_code_reads(default: torch.dtype) -> None:
    """The tensors have the right types, whatever PyTorch's default and the types of the limits."""
    table, most = random_table(1, 9), limits(9, 3, 5)
    expected = steps_of(TableModel(table), Beam(beam_size=3), most, compiled=True)
    narrow = replace(most, max_B=most.max_B.int())
    assert steps_of(TableModel(table), Beam(beam_size=3), narrow, compiled=True) == expected
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        frontier = begin(Beam(beam_size=3), most)
        logits_NV = torch.linspace(-1, 1, 81, dtype=torch.float32).view(9, 9)
        found = frontier.advance(logits_NV)
    finally:
        torch.set_default_dtype(before)
    assert found is not None
    again = Beam(beam_size=3).begin(most.max_B, EOS).advance(LogSoftmax()(logits_NV))
    assert found.scores_N[found.open_N].tolist() == again.scores_N[again.open_N].tolist()


def test_logits_that_are_not_in_memory_are_an_error() -> None:
    """Logits of a model on another device than its limits are rejected."""
    frontier = begin(Greedy(), limits(3))
    with pytest.raises(ValueError, match="on the CPU"):
        frontier.advance(torch.empty(1, 9, device="meta"))


class Keeps:
    """A model that keeps its inputs, with copies to compare them with."""

    def __init__(self) -> None:
        self.given: list[Tensor] = []
        self.copies: list[Tensor] = []

    def start(self, _src_BS: Tensor, _beam_size: int) -> Self:
        """Start with these rows."""
        return self

    def step(self, ids_N: Tensor, state: Self) -> Tensor:
        """Keep the inputs; return logits of 9 tokens."""
        state.select(ids_N)
        places_NV = torch.arange(9.0) + 1.7 * ids_N[:, None] + len(self.given)
        return 9.0 * (places_NV * places_NV).sin()

    def select(self, rows_N: Tensor) -> None:
        """Keep the rows."""
        self.given.append(rows_N)
        self.copies.append(rows_N.clone())


@pytest.mark.parametrize("strategy", [Greedy(), Beam(beam_size=3)])
def test_a_model_may_keep_the_tokens_and_rows_it_is_given(strategy: Strategy) -> None:
    """No later step writes into them."""
    model, bounds = Keeps(), Limits(bos_id=BOS, eos_id=9, max_B=torch.tensor([9, 9]))
    assert len([*search_steps(model, sources([3, EOS], [4, EOS]), strategy, limits=bounds)]) > 2
    assert [x.tolist() for x in model.given] == [x.tolist() for x in model.copies]


def test_logits_of_other_rows_are_refused() -> None:
    """Compiled code would read beyond their end."""
    frontier = begin(Beam(beam_size=3), limits(4, 4))
    assert isinstance(frontier, CompiledFrontier)
    logits_MV: Tensor = torch.zeros(3, 9)
    with pytest.raises(ValueError, match="logits of 3 rows, where 6 or those"):
        frontier.advance(logits_MV)
