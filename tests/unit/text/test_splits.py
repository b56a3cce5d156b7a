"""Subword sampling on ids."""

import numpy as np

from dragoman.text.tokenizer import SubwordSplits

# 4 = abcd = 2 3 or 1 0; 3 = cd = 1 0; 0, 1, 2 cannot be taken apart.
SPLITS = SubwordSplits.of([(4, 2, 3), (4, 1, 0), (3, 1, 0)], vocab_size=5)
IDS = np.array([4, 2, 3, 0], dtype=np.uint16)
OFFSETS = np.array([0, 1, 1, 4])


def rng(seed: int = 0) -> np.random.Generator:
    """A generator of its own for each call."""
    return np.random.default_rng(seed)


def test_probability_zero_changes_nothing() -> None:
    """With p = 0 the ids and offsets stay."""
    ids, offsets = SPLITS.sample(IDS, OFFSETS, probability=0.0, rng=rng())
    assert ids.tolist() == IDS.tolist()
    assert offsets.tolist() == OFFSETS.tolist()


def test_probability_one_takes_apart_all_that_can_be() -> None:
    """With p = 1 only pieces without a split are left, and empty texts stay empty."""
    ids, offsets = SPLITS.sample(IDS, OFFSETS, probability=1.0, rng=rng())
    assert set(ids.tolist()) <= {0, 1, 2}
    assert ids[offsets[2] :].tolist() == [2, 1, 0, 0]
    assert offsets[1] == offsets[2]


def test_every_way_to_split_a_piece_is_used() -> None:
    """A piece with two splits is taken apart in both ways."""
    many, ends = np.full(100, 4), np.array([0, 100])
    ids, _ = SPLITS.sample(many, ends, probability=1.0, rng=rng())
    assert 2 in ids
    assert (ids == 1).sum() == 100  # 2 1 0 and 1 0 both hold one
    assert len(ids) < 300


def test_the_share_of_split_pieces_is_the_probability() -> None:
    """Of many pieces that split once, a share p does, within five standard deviations."""
    count, p = 20_000, 0.3
    ids, _ = SPLITS.sample(np.full(count, 3), np.array([0, count]), probability=p, rng=rng())
    assert abs(len(ids) - count * (1 + p)) < 5 * (count * p * (1 - p)) ** 0.5


def test_a_seed_decides_the_sample_and_arguments_stay() -> None:
    """Equal generators give equal samples; the type of the ids and the input are kept."""
    many, ends = np.full(50, 4, dtype=np.uint16), np.array([0, 20, 50])
    one = SPLITS.sample(many, ends, probability=0.5, rng=rng(7))
    two = SPLITS.sample(many, ends, probability=0.5, rng=rng(7))
    assert one[0].tolist() == two[0].tolist()
    assert one[1].tolist() == two[1].tolist()
    assert one[0].dtype == np.uint16
    assert (many == 4).all()
    assert ends.tolist() == [0, 20, 50]
