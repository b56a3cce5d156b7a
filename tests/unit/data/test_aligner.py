"""Learning from pairs which tokens are translations of each other."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.data.streams import pairs_of

from dragoman.data import aligner
from dragoman.data.aligner import NONE, Aligner
from dragoman.data.dataset import PairDataset

WORDS, SHIFT = 30, 100


def dataset_of(pairs: list[tuple[list[int], list[int]]]) -> PairDataset:
    """Return pairs of ids in memory."""
    return pairs_of(*([pair[side] for pair in pairs] for side in (0, 1)))


def made_up(count: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """Return pairs: word n becomes n + 100, neighbours are swapped, and 99 has no source."""
    draw, pairs = Random(seed), []
    for _ in range(count):
        src = draw.sample(range(WORDS), draw.randint(2, 8))
        tgt = [word + SHIFT for word in src]
        place = draw.randrange(len(tgt) - 1)
        tgt[place : place + 2] = tgt[place + 1], tgt[place]
        pairs.append((src, tgt))
    return pairs


def test_a_made_up_language_is_aligned() -> None:
    """Nearly all links are found, and hardly any wrong ones."""
    pairs = made_up(300, seed=1)
    dataset = dataset_of(pairs)
    links = Aligner.learn([dataset], 200).links(dataset.src, dataset.tgt)
    right = wrong = 0
    for n, (src, tgt) in enumerate(pairs):
        for t, s in enumerate(links[n].tolist()):
            right += s != NONE and src[s] + SHIFT == tgt[t]
            wrong += s != NONE and src[s] + SHIFT != tgt[t]
    assert right > 0.97 * len(dataset.tgt.ids)
    assert wrong < 0.01 * len(dataset.tgt.ids)


sides = st.lists(st.integers(0, 20), max_size=7)


@given(pairs=st.lists(st.tuples(sides, sides), min_size=1, max_size=8))
@settings(deadline=None)
def test_every_target_token_has_a_place_in_its_source_or_none(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    """Whatever is empty; for pairs that were not learnt from, too."""
    dataset = dataset_of(pairs)
    nothing: list[tuple[list[int], list[int]]] = [([], [])]
    for learnt in (pairs, pairs[:1], nothing):
        links = Aligner.learn([dataset_of(learnt)], 21).links(dataset.src, dataset.tgt)
        assert np.array_equal(links.offsets, dataset.tgt.offsets)
        for n, (src, _) in enumerate(pairs):
            assert all(NONE <= place < len(src) for place in links[n].tolist())


def test_a_link_is_the_most_likely_one() -> None:
    """Each link maximizes the module's formula, computed pair by pair; ties are allowed."""
    draw = Random(3)
    pairs = [(draw.choices(range(9), k=draw.randint(2, 4)), [draw.randrange(9)]) for _ in "x" * 40]
    dataset = dataset_of(pairs)
    learnt = Aligner.learn([dataset], 200)
    links, several = learnt.links(dataset.src, dataset.tgt), 0
    for n, (src, tgt) in enumerate(pairs):
        keys_ST = np.add.outer(np.array(src) * 200, tgt)
        away_ST = np.subtract.outer(
            (np.arange(len(src)) + 0.5) / len(src), (np.arange(len(tgt)) + 0.5) / len(tgt)
        )
        near_ST = np.exp(-aligner.TENSION * np.abs(away_ST))
        given_src_ST, given_tgt_ST = (
            probs_K[np.searchsorted(learnt.keys_K, keys_ST)] * near_ST
            for probs_K in learnt.probs_DK
        )
        shares_ST = given_src_ST / given_src_ST.sum(0)
        shares_ST *= given_tgt_ST / given_tgt_ST.sum(1, keepdims=True)
        several += int(((shares_ST >= aligner.LEAST).sum(0) > 1).sum())
        (place,) = links[n].tolist()
        assert shares_ST[place, 0] == pytest.approx(shares_ST.max(), rel=1e-9)
    assert several > 20


def test_links_do_not_depend_on_how_many_are_found_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pairs are processed in parts; a pair that exceeds a part alone has no links."""
    dataset = dataset_of([*made_up(60, seed=2), ([1] * 40, [101] * 40)])
    learnt = Aligner.learn([dataset], 200)
    whole = learnt.links(dataset.src, dataset.tgt)
    monkeypatch.setattr(aligner, "MOST_LINKS", 100)
    parts = learnt.links(dataset.src, dataset.tgt)
    assert np.array_equal(parts.ids[:-40], whole.ids[:-40])
    assert (parts.ids[-40:] == NONE).all()
    assert len(Aligner.learn([dataset], 200).keys_K) < len(learnt.keys_K)
