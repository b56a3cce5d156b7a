"""Numbers in figures and in words: spoken forms, and what each kind of expression says."""

import calendar
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.grammar.lexicon import lexicon

from dragoman.data import numbers as kinds
from dragoman.data.numbers import (
    Dice,
    Kind,
    cardinal,
    decimal,
    digits,
    ordinal,
    ordinal_figures,
    plural,
    year,
)

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


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (cardinal(0), "zero"),
        (cardinal(1204), "one thousand two hundred four"),
        (cardinal(1_000_000), "one million"),
        (cardinal(-21), "minus twenty-one"),
        (ordinal(1), "first"),
        (ordinal(12), "twelfth"),
        (ordinal(20), "twentieth"),
        (ordinal(33), "thirty-third"),
        (ordinal(108), "one hundred eighth"),
        (ordinal(1000), "one thousandth"),
        (decimal("3.14"), "three point one four"),
        (decimal("0.05"), "zero point zero five"),
        (digits("0142"), "zero one four two"),
        (year(1994), "nineteen ninety-four"),
        (year(1900), "nineteen hundred"),
        (year(1905), "nineteen oh five"),
        (year(2000), "two thousand"),
        (year(2009), "two thousand nine"),
        (year(2010), "twenty ten"),
        (ordinal_figures(1), "1st"),
        (ordinal_figures(12), "12th"),
        (ordinal_figures(22), "22nd"),
        (ordinal_figures(23), "23rd"),
        (ordinal_figures(30), "30th"),
        (ordinal_figures(111), "111th"),
        (plural("ninety"), "nineties"),
        (plural("third"), "thirds"),
    ],
)
def test_spoken_forms(said: str, words: str) -> None:
    """What the rules and their exceptions make of a number."""
    assert said == words


@cache
def readings(kind: Kind) -> dict[str, set[str]]:
    """The words for each spelling that a kind comes up with."""
    dice, found = Dice(0), dict[str, set[str]]()
    for _ in range(60_000):
        expression = kind(dice)
        found.setdefault(expression.figures, set()).add(expression.words)
    return found


@pytest.mark.parametrize(
    ("name", "figures", "words"),
    [
        ("count", "11", "eleven"),
        ("rank", "21st", "twenty-first"),
        ("rank", "112th", "one hundred twelfth"),
        ("fraction", "1/2", "one half"),
        ("fraction", "3/4", "three quarters"),
        ("fraction", "2/3", "two thirds"),
        ("with_point", "0.5", "zero point five"),
        ("percentage", "45%", "forty-five percent"),
        ("money", "$1", "one dollar"),
        ("money", "£0.01", "one penny"),
        ("money", "£0.02", "two pence"),
        ("money", "€2", "two euros"),
        ("temperature", "-1 °C", "minus one degree Celsius"),
        ("distance", "1 ft", "one foot"),
        ("distance", "2 ft", "two feet"),
        ("measure", "5 kg", "five kilograms"),
        ("day_of_year", "July 3", "July third"),
        ("day_of_year", "July 3rd", "July third"),
        ("decade", "1990s", "nineteen nineties"),
        ("time", "3:45 pm", "three forty-five p.m."),
        ("time", "15:45", "three forty-five p.m."),
        ("time", "12:30 am", "twelve thirty a.m."),
        ("time", "00:00", "twelve a.m."),
        ("time", "12 pm", "twelve p.m."),
        ("score", "3-2", "three to two"),
    ],
)
def test_expressions(name: str, figures: str, words: str) -> None:
    """The reading of one expression of each kind, and of each kind's exceptions."""
    assert readings(kinds.KINDS[name])[figures] == {words}


def test_dates_in_four_forms() -> None:
    """Each form of a date is read alike."""
    found = readings(kinds.date)
    for figures, words in found.items():
        name, number = next(iter(words)).partition(",")[0].split()
        assert name in figures or re.search(r"\d[-/]\d", figures)
        assert number in {ordinal(day) for day in range(1, 32)}
    assert {len(words) for words in found.values()} == {1}
    forms = {re.sub(r"\d+", "9", re.sub(r"[A-Z]\w+", "M", figures)) for figures in found}
    assert forms == {"9-9-9", "9/9/9", "M 9, 9", "9 M 9"}


@pytest.mark.parametrize("name", kinds.KINDS)
def test_words_hold_no_figure_and_are_decided_by_the_figures(name: str) -> None:
    """A spelling has one reading, in letters alone."""
    found = readings(kinds.KINDS[name])
    assert {len(words) for words in found.values()} == {1}
    for words in found.values():
        assert re.fullmatch(r"[A-Za-z][A-Za-z ,.-]*", next(iter(words)))
