"""Laws of search, on random tables."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.decode.tables import (
    BOS,
    EOS,
    PAD,
    Table,
    TableModel,
    leaves,
    limits,
    log_probs,
    random_table,
    slow_beams,
    sources,
    tokens_of,
)

from dragoman.decode import (
    Beam,
    DiverseBeam,
    Forbid,
    Greedy,
    Hypothesis,
    MinimumLength,
    Processor,
    Strategy,
    search,
)

SEEDS = st.integers(0, 2**32)
ALPHAS = st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.5])


def without(table: Table, least: int) -> Table:
    """Return the table after forbidding pad and bos and applying a minimum length."""

    def logits(src: tuple[int, ...], prefix: tuple[int, ...]) -> list[float]:
        forbidden = {PAD, BOS} | ({EOS} if len(prefix) < least else set())
        row = table(src, prefix)
        return [float("-inf") if i in forbidden else value for i, value in enumerate(row)]

    return logits


@given(SEEDS, st.integers(4, 6), st.integers(1, 4), ALPHAS, st.integers(0, 4))
def test_a_whole_tree_beam_is_exhaustive_search(
    seed: int, vocab_size: int, most: int, alpha: float, least: int
) -> None:
    """With as many beams as the tree has leaves, the n best are the n best of all sequences."""
    table = random_table(seed, vocab_size)
    every = leaves(without(table, least), (7, EOS), most, alpha)
    beam = Beam(beam_size=len(every), length_penalty=alpha, n_best=min(4, len(every)))
    processors: list[Processor] = [Forbid((PAD, BOS)), MinimumLength(torch.tensor([least]), EOS)]

    [found] = search(
        TableModel(table), sources([7, EOS]), beam, processors=processors, limits=limits(most)
    )

    scores = {leaf.tokens: leaf.score for leaf in every}
    assert [h.score for h in found] == pytest.approx(
        [leaf.score for leaf in every[: beam.n_best]], rel=1e-5, abs=1e-5
    )
    assert [h.score for h in found] == pytest.approx(
        [scores[tokens_of(h)] for h in found], rel=1e-5, abs=1e-5
    )
    assert len({h.ids for h in found}) == beam.n_best


@given(SEEDS, st.integers(4, 30), st.lists(st.integers(1, 9), min_size=1, max_size=5), ALPHAS)
def test_a_beam_of_one_is_greedy(seed: int, vocab_size: int, most: list[int], alpha: float) -> None:
    """Every field of the result is the same, also where logits are equal."""
    src_BS = sources(*[[3 + row, EOS] for row in range(len(most))])
    results = [
        search(
            TableModel(random_table(seed, vocab_size, levels=4)),
            src_BS,
            strategy,
            limits=limits(*most),
        )
        for strategy in (Greedy(length_penalty=alpha), Beam(beam_size=1, length_penalty=alpha))
    ]
    assert results[0] == results[1]


@given(
    SEEDS,
    st.sampled_from([None, 3]),
    st.integers(3, 8),
    st.integers(1, 6),
    st.integers(1, 7),
    ALPHAS,
)
def test_stopping_early_changes_nothing(
    seed: int, levels: int | None, vocab_size: int, beam_size: int, most: int, alpha: float
) -> None:
    """A plain beam search that runs until its last slot has closed finds the same n best."""
    table = random_table(seed, vocab_size, levels=levels)
    (slow,) = slow_beams(table, (5, EOS), most, (beam_size, alpha))
    n_best = min(beam_size, len(slow))
    for count in {1, n_best}:
        beam = Beam(beam_size=beam_size, length_penalty=alpha, n_best=count)
        [found] = search(TableModel(table), sources([5, EOS]), beam, limits=limits(most))
        assert [h.score for h in found] == pytest.approx([leaf.score for leaf in slow[:count]])
        if levels is None or alpha == 0:
            assert [tokens_of(h) for h in found] == [leaf.tokens for leaf in slow[:count]]


ROWS, LIMITS = [[EOS], [3, EOS], [4, 4, EOS], [5, EOS], [3, 4, 5, EOS]], [1, 3, 9, 5, 7]


def found_in(
    seed: int, strategy: Strategy, order: Sequence[int], levels: int | None = None
) -> list[list[Hypothesis]]:
    """Return the n best of these rows, searched together."""
    model = TableModel(random_table(seed, 6, levels=levels))
    bounds = limits(*[LIMITS[index] for index in order])
    return search(model, sources(*[ROWS[index] for index in order]), strategy, limits=bounds)


@given(
    SEEDS,
    st.permutations(range(5)),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0.3, 4.0, 1000.0]),
    st.sampled_from([None, 2, 3]),
)
@settings(max_examples=100)
def test_neighbours_do_not_matter(
    seed: int, order: list[int], width: int, groups: int, diversity: float, levels: int | None
) -> None:
    """A sentence has the same result, to the bit, alone and in any batch, whatever their limits."""
    size = width * groups
    strategy: Strategy = Beam(beam_size=size, n_best=size)
    if groups > 1:
        strategy = DiverseBeam(beam_size=size, groups=groups, diversity=diversity, n_best=size)
    alone = [found_in(seed, strategy, [index], levels)[0] for index in order]
    assert found_in(seed, strategy, order, levels) == alone


@given(SEEDS, st.integers(1, 5), st.integers(1, 40), ALPHAS)
def test_a_hypothesis_tells_the_truth_about_itself(
    seed: int, beam_size: int, most: int, alpha: float
) -> None:
    """Its parts are the table's, its sum is the parts', its score the sum's; sorted, distinct."""
    table = random_table(seed, 9)
    beam = Beam(beam_size=beam_size, length_penalty=alpha, n_best=beam_size)
    [found] = search(TableModel(table), sources([4, EOS]), beam, limits=limits(most))

    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({h.ids for h in found}) == len(found)
    for hypothesis in found:
        line = tokens_of(hypothesis)
        parts = [log_probs(table, (4, EOS), line[:i])[token] for i, token in enumerate(line)]
        assert hypothesis.token_log_probs == pytest.approx(parts, abs=1e-5)
        assert hypothesis.log_prob == pytest.approx(sum(parts), rel=1e-5, abs=1e-5)
        normal = ((5 + len(line)) / 6) ** alpha
        assert hypothesis.score == pytest.approx(sum(parts) / normal, rel=1e-5, abs=1e-5)
        assert EOS not in hypothesis.ids
        assert len(line) <= most
        assert (hypothesis.stopped == "length") == (len(hypothesis.ids) == most)
