"""Pairs that the package writes itself: files, and the law between training and validation."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.data.made import MadeConfig, _sentence, numbers_corpus, withheld, write_made
from dragoman.data.numbers import Dice
from dragoman.errors import InputError


def test_what_is_written_is_what_was_asked_for_and_stays_so(tmp_path: Path) -> None:
    """As many lines on both sides as the config says; a second time the same bytes, no leavings."""
    config = MadeConfig(train=50, valid=7)
    paths = write_made(config, tmp_path / "texts")
    first = {name: path.read_bytes() for name, path in paths.items()}
    assert [data.count(b"\n") for data in first.values()] == [50, 50, 7, 7]
    again = write_made(config, tmp_path / "texts")
    assert {name: path.read_bytes() for name, path in again.items()} == first
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == sorted(first)
    other = write_made(replace(config, seed=2), tmp_path / "other")
    assert other["train.src"].read_bytes() != first["train.src"]


def test_a_corpus_needs_pairs() -> None:
    """A count below 1 is refused by its key."""
    with pytest.raises(InputError, match="train is 0; it must be at least 1"):
        MadeConfig(train=0)
    with pytest.raises(InputError, match="valid is -1; it must be at least 1"):
        MadeConfig(valid=-1)


def test_a_source_has_one_target() -> None:
    """Among many sentences none can be read in two ways, and none has a figure left."""
    dice, known = Dice(3), dict[str, str]()
    for _ in range(20_000):
        pair, _ = _sentence(dice)
        assert known.setdefault(pair.src, pair.tgt) == pair.tgt
        assert not re.search(r"\d|\.\.|[{}]", pair.tgt)


def test_a_seed_decides_the_pairs() -> None:
    """The same pairs again, more of them the same at the beginning, other ones by another seed."""
    train, valid = numbers_corpus(500, 20, seed=1)
    more_train, more_valid = numbers_corpus(800, 40, seed=1)
    assert (more_train[:500], more_valid[:20]) == (train, valid)
    assert numbers_corpus(500, 20, seed=2)[0] != train
    assert len({pair.src for pair in (*train, *valid)}) == 520


def test_validation_has_expressions_that_training_lacks() -> None:
    """No withheld expression is in training, and each validation sentence has one."""
    train, valid = numbers_corpus(4000, 200, seed=1)
    assert (len(train), len(valid)) == (4000, 200)
    assert {pair.src for pair in train}.isdisjoint(pair.src for pair in valid)
    kept = {figures for pair in valid for figures in expressions_of(pair.src) if withheld(figures)}
    assert len(kept) > 40
    seen = {figures for pair in train for figures in expressions_of(pair.src)}
    assert kept.isdisjoint(seen)
    assert not any(map(withheld, seen))


def expressions_of(sentence: str) -> list[str]:
    """Times, money, percentages and other runs of figures that have one form for certain."""
    forms = (r"[$€£]\d[\d,]*\.\d\d", r"\d+:\d\d [ap]m", r"\d+\.\d+%", r"\d{3}(?:-\d{3})?-\d{4}")
    return re.findall(rf"(?<![\d.,/-])(?:{'|'.join(forms)})(?!\d)", sentence)


def test_few_figures_are_never_withheld() -> None:
    """What is read in its own way, 1st or 1/2, is always taught; 19 of 20 others are."""
    assert not any(withheld(f"{n}") or withheld(f"{n}%") for n in range(100))
    share = sum(withheld(f"{n}") for n in range(100, 10_100)) / 10_000
    assert 0.04 < share < 0.06
