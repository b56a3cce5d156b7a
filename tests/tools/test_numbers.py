"""Numbers in figures and in words: spoken forms, each kind of expression, what is shipped."""

import calendar
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.dice import Dice
from tools.grammar.lexicon import lexicon
from tools.numbers import Kind, cardinal, draw_sentence, numbers_corpus, withheld
from tools.shipping import SEED, SIZES
from tools.stories import stories_corpus, story_pairs

from dragoman.data.made import MadeConfig, Pair, write_made
from tools import numbers as kinds

SMALL = {cardinal(n): n for n in range(100)}
SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}


def heard(words: str) -> int:
    """The number that somebody said."""
    whole = part = 0
    for word in words.removeprefix("minus ").split():
        if word in SMALL:
            part += SMALL[word]
        elif word == "hundred":
            part *= 100
        else:
            whole, part = whole + part * SCALES[word], 0
    return (whole + part) * (-1 if words.startswith("minus ") else 1)


def test_months_are_those_of_english(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a program that speaks another language too: the pairs are the same everywhere."""
    monkeypatch.setattr(type(calendar.month_name), "__getitem__", lambda *_: "Monat")
    (months,) = zip(*lexicon().rows["months"], strict=True)
    for kind in (kinds.date, kinds.day_of_year):
        said = {kind(Dice(seed)).words.partition(" ")[0] for seed in range(300)}
        assert said == set(months)


@given(st.integers(-(10**12) + 1, 10**12 - 1))
def test_a_number_is_understood(number: int) -> None:
    """Whoever hears the words knows the number."""
    assert heard(cardinal(number)) == number


@cache
def readings(kind: Kind) -> dict[str, set[str]]:
    """The words for each spelling that a kind comes up with."""
    dice, found = Dice(0), dict[str, set[str]]()
    for _ in range(20_000):
        expression = kind(dice)
        found.setdefault(expression.figures, set()).add(expression.words)
    return found


@pytest.mark.parametrize("name", kinds.KINDS)
def test_words_hold_no_figure_and_are_decided_by_the_figures(name: str) -> None:
    """A spelling has one reading, in letters alone."""
    found = readings(kinds.KINDS[name])
    assert {len(words) for words in found.values()} == {1}
    for words in found.values():
        assert re.fullmatch(r"[A-Za-z][A-Za-z ,.-]*", next(iter(words)))


def test_a_source_has_one_target() -> None:
    """Among many sentences none can be read in two ways, and none has a figure left."""
    dice, known = Dice(3), dict[str, str]()
    for _ in range(20_000):
        pair, _ = draw_sentence(dice)
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


# ---------------------------------------------------------------- shipped corpora


def generated(name: str) -> Iterable[list[Pair]]:
    """Pairs for training and for validation."""
    if name == "numbers":
        return numbers_corpus(*SIZES, seed=SEED)
    return map(story_pairs, stories_corpus(*SIZES, seed=SEED))


@pytest.mark.parametrize("name", ["numbers", "stories"])
def test_the_package_ships_what_is_generated_here(
    name: Literal["numbers", "stories"], tmp_path: Path
) -> None:
    """All four files that a run gets, byte for byte; fewer pairs are the first ones."""
    train, valid = generated(name)
    written = write_made(MadeConfig(name=name), tmp_path / "all")
    for file, pairs in (("train", train), ("valid", valid)):
        for side in ("src", "tgt"):
            text = "".join(getattr(pair, side) + "\n" for pair in pairs)
            assert written[f"{file}.{side}"].read_text("utf-8") == text
    few = write_made(MadeConfig(name=name, train=3, valid=2), tmp_path / "few")
    lines = few["train.src"].read_text("utf-8").splitlines()
    assert lines == [pair.src for pair in train[:3]]
