"""Greedy and beam search in compiled code find what the readable ones find, bit for bit."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.processors import needs_compiler
from tests.unit.decode.tables import BOS, EOS, PAD, TableModel, limits, random_table, sources
from torch import Tensor

from dragoman.decode import Beam, Forbid, Greedy, Limits, Strategy, search_steps
from dragoman.decode.compiled import CompiledFrontier, begin
from dragoman.errors import InputError

SEEDS = st.integers(0, 2**32)
LIMITS = st.lists(st.integers(1, 9), min_size=1, max_size=5)
pytestmark = needs_compiler


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    """Greedy search, or a beam of any width."""
    alpha = draw(st.sampled_from([0.0, 0.6, 1.0, 300.0]))
    width = draw(st.integers(0, 7))
    if not width:
        return Greedy(length_penalty=alpha)
    n_best = draw(st.integers(1, width))
    return Beam(beam_size=width, length_penalty=alpha, n_best=n_best)


def steps_of(
    model: TableModel, strategy: Strategy, bounds: Limits, *, compiled: bool
) -> list[tuple[Any, ...]]:
    """Everything that each step of a search says of its open rows."""
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


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_broken_row_is_named_wherever_it_stands(value: float) -> None:
    """One number that is none, in one row among many, ends the search."""

    def table(src: tuple[int, ...], prefix: tuple[int, ...]) -> list[float]:
        broken = src[0] == 4 and len(prefix) == 2
        return [*[0.1 * token for token in range(99)], value if broken else 0.0]

    with pytest.raises(InputError, match="NaN or infinite"):
        steps_of(TableModel(table), Beam(beam_size=2), limits(5, 5, 5), compiled=True)


def test_logits_of_other_rows_are_refused() -> None:
    """Compiled code would read beyond them."""
    frontier = begin(Beam(beam_size=3), limits(4, 4))
    assert isinstance(frontier, CompiledFrontier)
    logits_MV: Tensor = torch.zeros(3, 9)
    with pytest.raises(ValueError, match="logits of 3 rows, where 6 or those"):
        frontier.advance(logits_MV)
