"""Laws of diverse beam search, on random tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_search import ROWS, found_in
from tests.unit.decode.tables import (
    EOS,
    TableModel,
    log_probs,
    random_table,
    slow_beams,
    sources,
    tokens_of,
)
from tests.unit.decode.tables import limits as limits_of

from dragoman.decode import Beam, DiverseBeam, search
from dragoman.errors import InputError

SEEDS = st.integers(0, 2**32)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0])
DIVERSITIES = st.sampled_from([0.3, 1.0, 4.0, 1000.0])
LEVELS = st.sampled_from([None, 3])
EVERY = range(len(ROWS))


@given(SEEDS, st.integers(1, 3), st.integers(1, 4), LEVELS)
def test_without_diversity_every_group_is_the_same_beam(
    seed: int, width: int, groups: int, levels: int | None
) -> None:
    """What all of them find is returned once."""
    together = DiverseBeam(
        beam_size=width * groups, groups=groups, diversity=0.0, n_best=width * groups
    )
    expected = found_in(seed, Beam(beam_size=width, n_best=width), EVERY, levels)
    assert found_in(seed, together, EVERY, levels) == expected


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
    by_group = slow_beams(table, (5, EOS), most, (size, alpha), groups=groups, diversity=diversity)
    leaves = {leaf.tokens: leaf for group in by_group for leaf in group}
    best = sorted(leaves.values(), key=lambda leaf: -leaf.score)
    for n_best in {1, (size + 1) // 2, size}:
        strategy = DiverseBeam(
            beam_size=size, groups=groups, diversity=diversity, length_penalty=alpha, n_best=n_best
        )
        [found] = search(TableModel(table), sources([5, EOS]), strategy, limits=limits_of(most))
        assert [tokens_of(h) for h in found] == [leaf.tokens for leaf in best[:n_best]]
        for hypothesis, leaf in zip(found, best, strict=False):
            assert hypothesis.score == pytest.approx(leaf.score, rel=1e-5, abs=1e-5)
            assert hypothesis.log_prob == pytest.approx(leaf.log_prob, rel=1e-5, abs=1e-5)
            parts = [log_probs(table, (5, EOS), leaf.tokens[:i]) for i in range(len(leaf.tokens))]
            expected = [part[token] for part, token in zip(parts, leaf.tokens, strict=True)]
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-5)


def test_impossible_groups_are_refused() -> None:
    """The groups must share the slots equally, and a diversity penalty cannot be negative."""
    with pytest.raises(InputError, match="beam_size is 4 with 3 groups"):
        DiverseBeam(beam_size=4, groups=3)
    with pytest.raises(InputError, match="diversity is -1"):
        DiverseBeam(beam_size=4, groups=2, diversity=-1.0)
