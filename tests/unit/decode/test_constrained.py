"""Beam search with terms, on tables."""

from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.decode.tables import EOS, Ids, TableModel, TableState, limits, random_table, sources
from torch import Tensor

from dragoman.decode import Beam, Hypothesis, search
from dragoman.decode.constrained import Constrained, ConstrainedFrontier, Edges, Term, count_terms

V = 12
APART = Edges(torch.zeros(V, dtype=torch.bool), torch.zeros(V, dtype=torch.bool))
"""Each token is a word."""
SEEDS = st.integers(0, 2**32)


@dataclass
class LookingState(TableState):
    """The prefixes of all rows, and what they attended to."""

    weights_NS: list[list[float]] = field(default_factory=list)

    def watch(self, layer: int, head: int | None) -> None:
        """Do nothing: attention is always recorded."""

    def attended(self) -> Tensor:
        """Return the weights of the last step."""
        return torch.tensor(self.weights_NS)


class LookingModel(TableModel):
    """A table whose attention is another table, of the source and the prefix."""

    def start(self, src_BS: Tensor, beam_size: int) -> TableState:
        """Start, and keep the padded source length."""
        self._places = src_BS.shape[1]
        begun = super().start(src_BS, beam_size)
        return LookingState(beam_size, begun.sources, begun.prefixes)

    def step(self, ids_N: Tensor, state: TableState) -> Tensor:
        """Step, and record the attention."""
        assert isinstance(state, LookingState)
        logits_NV = super().step(ids_N, state)
        state.weights_NS = [
            attention(src, prefix[1:]) + [0.0] * (self._places - len(src))
            for src, prefix in zip(state.sources, state.prefixes, strict=True)
        ]
        return logits_NV


def attention(src: Ids, prefix: Ids) -> list[float]:
    """Return the attention weights over a source's tokens."""
    logits = torch.tensor(random_table(1, len(src))(src, prefix))
    weights: list[float] = logits.softmax(0).tolist()
    return weights


def edges_of(*, joining: int) -> Edges:
    """Let a word continue after any token, by tokens from `joining` on."""
    return Edges(torch.arange(V) >= joining, torch.ones(V, dtype=torch.bool))


def found(
    seed: int,
    rows: list[list[int]],
    terms: list[tuple[Term, ...]],
    beam: Beam,
    edges: Edges = APART,
) -> list[list[Hypothesis]]:
    """Return what a search with terms finds for each source."""
    constrained = Constrained(beam=beam, terms=tuple(terms), edges=edges)
    model = LookingModel(random_table(seed, V))
    n_bests = search(model, sources(*rows), constrained, limits=limits(*[8] * len(rows)))
    return [constrained.best_first(*each) for each in enumerate(n_bests)]


def begun(terms: tuple[Term, ...], width: int = 3, edges: Edges = APART) -> ConstrainedFrontier:
    """Start a search of one sentence of at most eight tokens."""
    constrained = Constrained(beam=Beam(beam_size=width), terms=(terms,), edges=edges)
    return constrained.begin(torch.tensor([8]), EOS)


def said(log_probs: dict[int, float]) -> Tensor:
    """Return these tokens' log-probabilities for three rows; other tokens are very improbable."""
    rows_NV = torch.full((3, V), -30.0)
    rows_NV[:, list(log_probs)] = torch.tensor(list(log_probs.values()))
    return rows_NV


TERM = Term(0, 1, ((5,),))
TOKENS = st.integers(3, 11)
FORMS = st.lists(st.lists(TOKENS, min_size=1, max_size=3), min_size=1, max_size=3)


@st.composite
def drawn_lines(draw: st.DrawFn) -> list[tuple[list[int], tuple[Term, ...]]]:
    """Draw sources with their ends, and the terms of each."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        ids = draw(st.lists(TOKENS, min_size=1, max_size=6))
        terms = []
        for forms in draw(st.lists(FORMS, max_size=2)):
            start = draw(st.integers(0, len(ids) - 1))
            terms.append(Term(start, start + 1, tuple(map(tuple, forms))))
        lines.append(([*ids, EOS], tuple(terms)))
    return lines


BEAMS = st.builds(
    lambda width, n, alpha: Beam(beam_size=width, n_best=min(width, n), length_penalty=alpha),
    *(st.integers(1, 5), st.integers(1, 5), st.sampled_from([0.0, 0.6, 2.0])),
)


@given(st.integers(0, 2**32), drawn_lines(), BEAMS, st.integers(3, V))
def test_neighbours_change_nothing(
    seed: int, lines: list[tuple[list[int], tuple[Term, ...]]], beam: Beam, joining: int
) -> None:
    """A source with terms, or without, is found the same alone and beside others, to the bit."""
    edges = edges_of(joining=joining)
    together = found(seed, [ids for ids, _ in lines], [terms for _, terms in lines], beam, edges)
    alone = [found(seed, [ids], [terms], beam, edges)[0] for ids, terms in lines]
    assert together == alone


@given(st.integers(0, 2**32), drawn_lines(), BEAMS.filter(lambda beam: beam.beam_size >= 3))
def test_without_terms_it_is_a_beam(
    seed: int, lines: list[tuple[list[int], tuple[Term, ...]]], beam: Beam
) -> None:
    """Also beside sources that have some."""
    rows = [ids for ids, _ in lines]
    terms = [(), *(terms for _, terms in lines[1:])]
    (plain,) = search(TableModel(random_table(seed, V)), sources(rows[0]), beam, limits=limits(8))
    assert found(seed, rows, terms, beam)[0] == plain


def test_an_improbable_form_is_begun_where_attention_stands_on_its_source() -> None:
    """At 15 nats below the best token only there; at 6 after it too; at 3 also before it."""
    for nats, places in ((15.0, {1}), (6.0, {1, 2}), (3.0, {0, 1, 2})):
        for place in range(3):
            frontier = begun((TERM.moved(1),))
            frontier.look(torch.eye(3)[place].expand(3, 3))
            step = frontier.advance(said({4: -0.1, 5: -0.1 - nats, 6: -2.0, 7: -2.0, 8: -2.0}))
            assert (5 in step.tokens_N.tolist()) == (place in places)


def test_attention_that_has_come_to_a_term_comes_back_to_it() -> None:
    """Afterwards it is begun at six nats below the best token, wherever the attention is."""
    frontier = begun((TERM.moved(1),))
    for place, nats, is_begun in ((0, 6.0, False), (1, 22.0, False), (0, 6.0, True)):
        frontier.look(torch.eye(3)[place].expand(3, 3))
        step = frontier.advance(said({4: -0.1, 5: -0.1 - nats, 6: -2.0, 7: -2.0, 8: -2.0}))
        assert (5 in step.tokens_N[step.open_N].tolist()) == is_begun


@pytest.mark.parametrize("seeing", [0, 1])
def test_whether_attention_has_come_goes_with_a_hypothesis(seeing: int) -> None:
    """The surviving second hypothesis moves to the first row with its own record of attention."""
    frontier, probable = begun((TERM.moved(1),), 1), {4: -0.1, 5: -6.1, 6: -0.3, 7: -2.0, 8: -2.0}
    frontier.look(torch.eye(3)[0].expand(3, 3))
    assert frontier.advance(said(probable)).open_N.tolist() == [True, True, False]
    frontier.look(torch.eye(3)[[2 * (seeing == 0), 2 * (seeing == 1), 0]])
    worse_NV = said({4: -0.1})
    worse_NV[0] -= 9.0
    assert frontier.advance(worse_NV).open_N.tolist() == [True, False, False]
    frontier.look(torch.eye(3)[0].expand(3, 3))
    step = frontier.advance(said(probable))
    assert (5 in step.tokens_N[step.open_N].tolist()) == (seeing == 1)


@given(SEEDS, st.integers(6, V))
def test_what_a_frontier_has_met_is_what_its_hypotheses_have(seed: int, joining: int) -> None:
    """Terms of one token each, apart from each other: as whole words, and never more than once."""
    edges = edges_of(joining=joining)
    terms = tuple(Term(n, n + 1, ((3 + n,),)) for n in range(3))
    frontier = begun(terms, 4, edges)
    prefixes: list[list[int]] = [[]] * 4
    numbers = torch.Generator().manual_seed(seed)
    for _ in range(6):
        log_probs_NV = (4 * torch.randn(4, V, generator=numbers)).log_softmax(1)
        log_probs_NV[:, EOS] = -30.0
        step = frontier.advance(log_probs_NV)
        assert step.parents_N is not None
        pairs = zip(step.parents_N.tolist(), step.tokens_N.tolist(), strict=True)
        prefixes = [[*prefixes[parent], token] for parent, token in pairs]
        for row in step.open_N.nonzero().flatten().tolist():
            met = int(frontier._met_NC[row].sum())
            assert met == count_terms(terms, prefixes[row], edges)


def test_a_form_whose_word_goes_on_is_not_counted() -> None:
    """Unless it continues to another form of the term; and the term may be written again."""
    edges = edges_of(joining=9)
    house = Term(0, 1, ((5,), (5, 10, 11)))
    for ids, count in (
        ((5, 4), 1), ((4, 5), 1), ((5, 9), 0), ((5, 10), 0), ((5, 10, 11), 1),
        ((5, 10, 11, 9), 0), ((5, 9, 5), 1), ((5, 5), 1),
    ):  # fmt: skip
        assert count_terms([house], ids, edges) == count
    assert count_terms([house, house], (5, 9, 5, 4, 5), edges) == 2


def test_a_hypothesis_whose_word_ends_gets_a_slot() -> None:
    """It gets one even if the model prefers to continue the term's word."""

    def table(_: Ids, prefix: Ids) -> list[float]:
        logits = [-30.0] * V
        wanted = {0: 4, 1: 9, 2: EOS}.get(len(prefix), EOS)
        logits[wanted] = 0.0
        logits[5 if not prefix else EOS] = max(-3.0, logits[5 if not prefix else EOS])
        return logits

    def best(edges: Edges) -> Ids:
        constrained = Constrained(beam=Beam(beam_size=3), terms=((TERM,),), edges=edges)
        n_bests = search(LookingModel(table), sources([3, EOS]), constrained, limits=limits(8))
        return constrained.best_first(0, n_bests[0])[0].ids

    assert best(APART) == (5, 9)
    assert best(edges_of(joining=9)) == (5,)


def test_a_word_that_goes_on_takes_no_slot_from_one_that_ends() -> None:
    """Two probable tokens continue the term's word; one that ends it is kept."""
    frontier = begun((TERM,), edges=edges_of(joining=9))
    frontier.advance(said({5: -1.0, 6: -1.1, 7: -1.2}))
    step = frontier.advance(said({9: -0.1, 10: -0.2, 4: -5.0}))
    met = [int(count) for count in frontier._met_NC.sum(1)]
    assert (4, 1) in [*zip(step.tokens_N.tolist(), met, strict=True)]


def test_greedy_search_closes_what_is_behind() -> None:
    """A less probable hypothesis with no more of the term is closed; a beam of three keeps it."""
    for term, log_prob, width, is_kept in (
        (-2.0, -1.2, 1, False),
        (-2.0, -1.2, 3, True),
        (-2.0, -0.9, 1, True),
        (-9.0, -1.4, 1, False),
        (-9.0, -1.4, 3, True),
        (-9.0, -1.2, 1, True),
    ):
        probable = {5: term, 4: log_prob} | ({6: -0.8} if term == -9.0 else {})
        step = begun((TERM,), width).advance(said(probable))
        assert (4 in step.tokens_N[step.open_N].tolist()) == is_kept


def test_a_slot_without_a_hypothesis_has_a_token_that_a_model_can_read() -> None:
    """Models that compute closed slots look it up too; a forced prefix leaves one token."""
    frontier = begun((TERM,), 5)
    only_4 = torch.full((5, V), float("-inf")).index_fill_(1, torch.tensor([4]), 0.0)
    for _ in range(2):
        assert frontier.advance(only_4).tokens_N.min() >= 0
