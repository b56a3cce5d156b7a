"""Numbers, dates, times and money in figures, and in English words as they are read in America.

`python -m tools.numbers` writes the sentences of the recipe `numbers` into the package.

An *expression* is something in figures with its reading: `21st` and `twenty-first`. The figures
alone decide the words. Where one spelling has two readings, a kind of expression avoids one of
them: counts from 1,000 on have a comma, years have none and stand in a sentence.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from tools.dice import Dice
from tools.shipping import SEED, SIZES, pairs_text, ship

from dragoman.data.made import Pair

# ---------------------------------------------------------------- numbers in words

_UNITS, _TENS, _MONTHS = map(
    str.split,
    (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "January February March April May June July August September October November December",
    ),
)  # the months of `calendar` are in the language of the process
_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (10**2, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def cardinal(number: int) -> str:
    """An integer below 10^12: 1204 -> "one thousand two hundred four", without an "and"."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    for size, name in _SCALES:
        if number >= size:
            head, rest = divmod(number, size)
            return f"{cardinal(head)} {name}" + (f" {cardinal(rest)}" if rest else "")
    if number < len(_UNITS):
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")


def ordinal(number: int) -> str:
    """The position in a row: 21 -> "twenty-first", 1204 -> "one thousand two hundred fourth"."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _ORDINALS:
        return head + _ORDINALS[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def ordinal_figures(number: int) -> str:
    """The position in a row, in figures: 1 -> "1st", 12 -> "12th", 123 -> "123rd"."""
    is_teen = 11 <= number % 100 <= 13
    return f"{number}{'th' if is_teen else _SUFFIXES.get(number % 10, 'th')}"


def digits(figures: str) -> str:
    """Each digit by itself: "0142" -> "zero one four two"."""
    return " ".join(_UNITS[int(figure)] for figure in figures)


def decimal(figures: str) -> str:
    """A number, with or without a decimal point: "3.14" -> "three point one four"."""
    whole, point, part = figures.partition(".")
    return cardinal(int(whole)) + (f" point {digits(part)}" if point else "")


def year(number: int) -> str:
    """A year from 1100 to 2099: 1994 -> "nineteen ninety-four", 1905 -> "nineteen oh five"."""
    century, rest = divmod(number, 100)
    if century == 20 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def plural(words: str) -> str:
    """More than one of it: "ninety" -> "nineties", "third" -> "thirds", "dollar" -> "dollars"."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


# ---------------------------------------------------------------- kinds of expressions


class Expression(NamedTuple):
    """Something in figures, and how it is read."""

    figures: str
    words: str


Kind = Callable[[Dice], Expression]

_FRACTIONS = {2: "half", 4: "quarter"}
_MONEY = {"$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "penny")}
_PLURALS = {"penny": "pence", "half": "halves", "foot": "feet"}
_LENGTHS = (("km", "kilometer"), ("m", "meter"), ("ft", "foot"))
_MEASURES = (*_LENGTHS, ("cm", "centimeter"), ("kg", "kilogram"), ("l", "liter"))


def count(dice: Dice) -> Expression:
    """1,204 -> one thousand two hundred four."""
    number = _of_any_size(dice, 7)
    return Expression(f"{number:,}", cardinal(number))


def rank(dice: Dice) -> Expression:
    """21st -> twenty-first."""
    number = max(1, _of_any_size(dice, 3))
    return Expression(ordinal_figures(number), ordinal(number))


def fraction(dice: Dice) -> Expression:
    """3/4 -> three quarters."""
    below = dice.number(2, 12)
    above = dice.number(1, below - 1)
    name = _FRACTIONS.get(below) or ordinal(below)
    return Expression(f"{above}/{below}", f"{cardinal(above)} {_counted(name, above)}")


def with_point(dice: Dice) -> Expression:
    """3.14 -> three point one four."""
    figures = _with_point(dice, 3, 3)
    return Expression(figures, decimal(figures))


def percentage(dice: Dice) -> Expression:
    """4.5% -> four point five percent."""
    figures = _with_point(dice, 2, 1) if dice.chance(0.5) else f"{dice.number(0, 100)}"
    return Expression(f"{figures}%", f"{decimal(figures)} percent")


def money(dice: Dice) -> Expression:
    """$12.50 -> twelve dollars and fifty cents; €3.5 million -> three point five million euros."""
    sign = dice.pick("$€£")
    large, small = _MONEY[sign]
    if dice.chance(0.15):
        figures, scale = _with_point(dice, 2, 1), dice.pick(("million", "billion"))
        return Expression(f"{sign}{figures} {scale}", f"{decimal(figures)} {scale} {plural(large)}")
    whole = _of_any_size(dice, 5)
    part = dice.number(1, 99) if whole == 0 or dice.chance(0.6) else 0
    amounts = [(whole, large)] * (whole > 0) + [(part, small)] * (part > 0)
    words = " and ".join(f"{cardinal(amount)} {_counted(name, amount)}" for amount, name in amounts)
    return Expression(f"{sign}{whole:,}" + (f".{part:02}" if part else ""), words)


def temperature(dice: Dice) -> Expression:
    """-5 °C -> minus five degrees Celsius."""
    degrees = dice.number(-40, 45)
    words = f"{cardinal(degrees)} {_counted('degree', abs(degrees))} Celsius"
    return Expression(f"{degrees} °C", words)


def distance(dice: Dice) -> Expression:
    """12 km -> twelve kilometers."""
    return _measured(dice, *dice.pick(_LENGTHS))


def measure(dice: Dice) -> Expression:
    """3.5 kg -> three point five kilograms."""
    return _measured(dice, *dice.pick(_MEASURES))


def _measured(dice: Dice, unit: str, name: str) -> Expression:
    if dice.chance(0.3):
        figures = _with_point(dice, 2, 2)
        return Expression(f"{figures} {unit}", f"{decimal(figures)} {_counted(name, 0)}")
    number = max(1, _of_any_size(dice, 4))
    return Expression(f"{number:,} {unit}", f"{cardinal(number)} {_counted(name, number)}")


def date(dice: Dice) -> Expression:
    """1994-07-03 -> July third, nineteen ninety-four; also 7/3/1994, July 3, 1994, 3 July 1994."""
    of_year, month = dice.number(1800, 2060), dice.number(1, 12)
    day = dice.number(1, monthrange(of_year, month)[1])
    name = _MONTHS[month - 1]
    forms = (
        f"{of_year}-{month:02}-{day:02}",
        f"{month}/{day}/{of_year}",
        f"{name} {day}, {of_year}",
        f"{day} {name} {of_year}",
    )
    return Expression(dice.pick(forms), f"{name} {ordinal(day)}, {year(of_year)}")


def day_of_year(dice: Dice) -> Expression:
    """July 3 and July 3rd -> July third."""
    month = dice.number(1, 12)
    day = dice.number(1, monthrange(2000, month)[1])
    name = _MONTHS[month - 1]
    figures = dice.pick((f"{name} {day}", f"{name} {ordinal_figures(day)}"))
    return Expression(figures, f"{name} {ordinal(day)}")


def year_alone(dice: Dice) -> Expression:
    """1994 -> nineteen ninety-four."""
    number = dice.number(1100, 2099)
    return Expression(f"{number}", year(number))


def decade(dice: Dice) -> Expression:
    """1990s -> nineteen nineties."""
    tens = dice.number(17, 20) * 10 + dice.number(2, 9)  # the first two of a century have no name
    return Expression(f"{tens}0s", plural(year(tens * 10)))


def time(dice: Dice) -> Expression:
    """3:45 pm and 15:45 -> three forty-five p.m."""
    hour, minute = dice.number(0, 23), dice.pick((0, 15, 30, 45, dice.number(0, 59)))
    half, of_clock = ("am", "pm")[hour >= 12], (hour + 11) % 12 + 1
    past = f" {'oh ' if minute < 10 else ''}{cardinal(minute)}" if minute else ""
    figures = [f"{of_clock}:{minute:02} {half}", f"{hour:02}:{minute:02}"]
    if not minute:
        figures.append(f"{of_clock} {half}")
    return Expression(dice.pick(figures), f"{cardinal(of_clock)}{past} {half[0]}.m.")


def telephone(dice: Dice) -> Expression:
    """555-0142 -> five five five, zero one four two."""
    groups = [f"{dice.number(0, 999):03}", f"{dice.number(0, 9999):04}"]
    if dice.chance(0.4):
        groups.insert(0, f"{dice.number(200, 999)}")
    return Expression("-".join(groups), ", ".join(map(digits, groups)))


def score(dice: Dice) -> Expression:
    """3-2 -> three to two."""
    high = dice.number(0, 130)
    low = dice.number(0, high)
    return Expression(f"{high}-{low}", f"{cardinal(high)} to {cardinal(low)}")


ALONE: tuple[Kind, ...] = (
    *(count, rank, fraction, with_point, percentage, money, measure, temperature),
    *(date, day_of_year, time, telephone),
)
"""Kinds that need no sentence to be understood."""

KINDS = {kind.__name__: kind for kind in (*ALONE, year_alone, decade, distance, score)}
"""All kinds by name."""


def _of_any_size(dice: Dice, most: int) -> int:
    """A number of up to `most` digits, each number of digits as likely as any other."""
    return dice.number(0, 10 ** dice.number(1, most) - 1)


def _with_point(dice: Dice, before: int, behind: int) -> str:
    """Figures with a decimal point, whose last digit is not zero."""
    part = [dice.number(0, 9) for _ in range(dice.number(0, behind - 1))]
    return f"{_of_any_size(dice, before)}." + "".join(map(str, [*part, dice.number(1, 9)]))


def _counted(name: str, number: int) -> str:
    """The name of as many: one dollar, two dollars, three halves."""
    return name if number == 1 else _PLURALS.get(name) or plural(name)


# ---------------------------------------------------------------- sentences and the corpus

_SENTENCES = """\
{who} was born on {date}.
The shop in {where} opened on {date}.
We meet on {day_of_year} at {time}.
The party is on {day_of_year}.
The bridge of {where} was built in {year_alone}.
In {year_alone} {who} moved to {where}.
{who} grew up in the {decade}.
The music of the {decade} is back.
The train to {where} leaves at {time}.
{who} called at {time}.
It opens at {time} and closes at {time}.
{who} paid {money} for it.
The ticket to {where} costs {money}.
The price rose from {money} to {money}.
{who} owes me {money}.
{where} has {count} inhabitants.
{who} sold {count} books.
There were {count} people in {where}.
About {percentage} of the {count} voters stayed at home.
{percentage} of all visitors come from {where}.
{who} lives on the {rank} floor.
This is the {rank} time that {who} is late.
{who} ate {fraction} of the cake.
It is {distance} from here to {where}.
{who} bought {measure} of it.
In {where} it was {temperature} at {time}.
The value is {with_point}.
Call {who} at {telephone}.
{where} won {score}.
They lost {score} on {date}.
""".splitlines()
"""Places for expressions are named by their kind."""

_WHO, _WHERE = (
    names.split(", ")
    for names in (
        "Ada, Ben, Clara, Mr. Novak, Dr. Ito, my sister, Noor, the baker, Sam, my aunt",
        "Oslo, Lima, New York, Cairo, Kyoto, the old town, Porto, Graz, York",
    )
)

_WITHHELD_ONE_IN = 20
_FEWEST_FIGURES = 3


def numbers_corpus(train_size: int, valid_size: int, *, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Distinct pairs for training and for validation; a seed gives the same pairs everywhere.

    Each validation sentence has an expression, "$12.50", that no training sentence has.
    """
    train: list[Pair] = []
    valid: list[Pair] = []
    dice, seen = Dice(seed), set[str]()
    while len(train) < train_size or len(valid) < valid_size:
        pair, found = draw_sentence(dice)
        if pair.src not in seen:
            seen.add(pair.src)
            novel = any(withheld(expression.figures) for expression in found)
            part, size = (valid, valid_size) if novel else (train, train_size)
            if len(part) < size:
                part.append(pair)
    return train, valid


def withheld(figures: str) -> bool:
    """Whether an expression is kept for validation: one in twenty, chosen by its checksum.

    Those of fewer than three figures never are: they are few, and many have a reading of their own.
    """
    enough = sum(map(str.isdecimal, figures)) >= _FEWEST_FIGURES
    return enough and crc32(figures.encode()) % _WITHHELD_ONE_IN == 0


def draw_sentence(dice: Dice) -> tuple[Pair, list[Expression]]:
    """An expression alone, or a sentence around one or two."""
    if dice.chance(0.3):
        alone = dice.pick(ALONE)(dice)
        return Pair(alone.figures, alone.words), [alone]
    template = dice.pick(_SENTENCES)
    kinds = [name for name in re.findall(r"{(\w+)}", template) if name in KINDS]
    found = [KINDS[kind](dice) for kind in kinds]
    src = tgt = template.replace("{who}", dice.pick(_WHO)).replace("{where}", dice.pick(_WHERE))
    for kind, expression in zip(kinds, found, strict=True):
        src = src.replace(f"{{{kind}}}", expression.figures, 1)
        tgt = tgt.replace(f"{{{kind}}}", expression.words, 1)
    tgt = tgt.replace("m..", "m.")  # "p.m." ends a sentence by itself
    return Pair(src[:1].upper() + src[1:], tgt[:1].upper() + tgt[1:]), found


if __name__ == "__main__":
    ship("numbers.tsv.bz2", pairs_text(*numbers_corpus(*SIZES, seed=SEED)))
