"""Laws of diverse beam search, on random tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.decode.tables import (
    EOS,
    TableModel,
    log_probs,
    random_table,
    slow_diverse_beam,
    sources,
)
from tests.unit.decode.tables import limits as limits_of

from dragoman.decode import Beam, DiverseBeam, Hypothesis, Strategy, search
from dragoman.errors import InputError

SEEDS = st.integers(0, 2**32)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0])
DIVERSITIES = st.sampled_from([0.3, 1.0, 4.0, 1000.0])
LEVELS = st.sampled_from([None, 3])
ROWS, LIMITS = [[EOS], [3, EOS], [4, 4, EOS], [5, EOS], [3, 4, 5, EOS]], [1, 3, 9, 5, 7]


def found_in(
    seed: int, strategy: Strategy, order: list[int], levels: int | None = None
) -> list[list[Hypothesis]]:
    """The n best of these of the rows, searched together."""
    batch_BS = sources(*[ROWS[index] for index in order])
    limits = limits_of(*[LIMITS[index] for index in order])
    return search(
        TableModel(random_table(seed, 6, levels=levels)), batch_BS, strategy, limits=limits
    )


def tokens(hypothesis: Hypothesis) -> tuple[int, ...]:
    """The generated tokens, eos among them."""
    return hypothesis.ids + ((EOS,) if hypothesis.stopped == "eos" else ())


@given(SEEDS, st.integers(1, 6), st.integers(1, 6), DIVERSITIES, LEVELS)
def test_one_group_is_a_beam(
    seed: int, beam_size: int, n_best: int, diversity: float, levels: int | None
) -> None:
    """Every field of every result, bit for bit, also where logits are equal."""
    values = {"beam_size": beam_size, "n_best": min(n_best, beam_size)}
    every = list(range(len(ROWS)))
    expected = found_in(seed, Beam(**values), every, levels)
    assert found_in(seed, DiverseBeam(**values, diversity=diversity), every, levels) == expected


@given(SEEDS, st.integers(1, 3), st.integers(1, 4), LEVELS)
def test_without_diversity_every_group_is_the_same_beam(
    seed: int, width: int, groups: int, levels: int | None
) -> None:
    """What all of them find is returned once."""
    together = DiverseBeam(
        beam_size=width * groups, groups=groups, diversity=0.0, n_best=width * groups
    )
    every = list(range(len(ROWS)))
    expected = found_in(seed, Beam(beam_size=width, n_best=width), every, levels)
    assert found_in(seed, together, every, levels) == expected


@given(
    seed=SEEDS,
    vocab_size=st.integers(3, 9),
    groups=st.integers(1, 4),
    width=st.integers(1, 3),
    most=st.integers(1, 6),
    alpha=ALPHAS,
    diversity=DIVERSITIES,
)
def test_the_groups_are_those_of_the_paper(  # noqa: PLR0917 -- given by name
    seed: int, vocab_size: int, groups: int, width: int, most: int, alpha: float, diversity: float
) -> None:
    """A plain search in float64 that never stops early finds the same n best, for any n."""
    table = random_table(seed, vocab_size)
    size = groups * width
    by_group = slow_diverse_beam(
        table, (5, EOS), most, (size, alpha), groups=groups, diversity=diversity
    )
    leaves = {leaf.tokens: leaf for group in by_group for leaf in group}
    best = sorted(leaves.values(), key=lambda leaf: -leaf.score)
    for n_best in {1, (size + 1) // 2, size}:
        strategy = DiverseBeam(
            beam_size=size, groups=groups, diversity=diversity, length_penalty=alpha, n_best=n_best
        )
        [found] = search(TableModel(table), sources([5, EOS]), strategy, limits=limits_of(most))
        assert [tokens(h) for h in found] == [leaf.tokens for leaf in best[:n_best]]
        for hypothesis, leaf in zip(found, best, strict=False):
            assert hypothesis.score == pytest.approx(leaf.score, rel=1e-5, abs=1e-5)
            assert hypothesis.log_prob == pytest.approx(leaf.log_prob, rel=1e-5, abs=1e-5)
            parts = [log_probs(table, (5, EOS), leaf.tokens[:i]) for i in range(len(leaf.tokens))]
            expected = [part[token] for part, token in zip(parts, leaf.tokens, strict=True)]
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-5)


@given(SEEDS, st.permutations(range(5)), st.integers(1, 3), st.integers(2, 3), DIVERSITIES, LEVELS)
def test_neighbours_do_not_matter(
    seed: int, order: list[int], width: int, groups: int, diversity: float, levels: int | None
) -> None:
    """A sentence has the same result, to the bit, alone and in any batch, whatever their limits."""
    size = width * groups
    strategy = DiverseBeam(beam_size=size, groups=groups, diversity=diversity, n_best=size)
    alone = [found_in(seed, strategy, [index], levels)[0] for index in order]
    assert found_in(seed, strategy, order, levels) == alone


@given(SEEDS)
def test_groups_begin_differently_when_told_to(seed: int) -> None:
    """However improbable the others are: as many first tokens as there are groups."""
    strategy = DiverseBeam(beam_size=4, groups=4, diversity=1000.0, n_best=4)
    [found] = search(
        TableModel(random_table(seed, 5)), sources([3, EOS]), strategy, limits=limits_of(6)
    )
    assert len({tokens(h)[0] for h in found}) == len(found) == 4


def test_impossible_groups_are_refused() -> None:
    """The slots must be shared equally, and a diversity cannot be a reward."""
    with pytest.raises(InputError, match="beam_size is 4 with 3 groups"):
        DiverseBeam(beam_size=4, groups=3)
    with pytest.raises(InputError, match="diversity is -1"):
        DiverseBeam(beam_size=4, groups=2, diversity=-1.0)
