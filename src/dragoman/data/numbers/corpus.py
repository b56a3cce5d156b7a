"""Sentences around expressions, and pairs of them for training and validation."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple
from zlib import crc32

from dragoman.data.grammar.dice import Dice
from dragoman.data.numbers import expressions as kinds
from dragoman.data.numbers.expressions import Expression, Kind

__all__ = ["WrittenOut", "generate", "numbers_corpus", "withheld"]


class WrittenOut(NamedTuple):
    """A sentence with figures, and the same as one reads it."""

    src: str
    tgt: str


_ALONE: tuple[Kind, ...] = (
    kinds.count,
    kinds.place,
    kinds.fraction,
    kinds.with_point,
    kinds.percentage,
    kinds.money,
    kinds.measure,
    kinds.temperature,
    kinds.date,
    kinds.day_of_year,
    kinds.time,
    kinds.telephone,
)
"""Kinds that need no sentence to be understood."""

_SENTENCES: tuple[tuple[str, tuple[Kind, ...]], ...] = (
    ("{who} was born on {0}.", (kinds.date,)),
    ("The shop in {where} opened on {0}.", (kinds.date,)),
    ("We meet on {0} at {1}.", (kinds.day_of_year, kinds.time)),
    ("The party is on {0}.", (kinds.day_of_year,)),
    ("The bridge of {where} was built in {0}.", (kinds.year_alone,)),
    ("In {0} {who} moved to {where}.", (kinds.year_alone,)),
    ("{who} grew up in the {0}.", (kinds.decade,)),
    ("The music of the {0} is back.", (kinds.decade,)),
    ("The train to {where} leaves at {0}.", (kinds.time,)),
    ("{who} called at {0}.", (kinds.time,)),
    ("It opens at {0} and closes at {1}.", (kinds.time, kinds.time)),
    ("{who} paid {0} for it.", (kinds.money,)),
    ("The ticket to {where} costs {0}.", (kinds.money,)),
    ("The price rose from {0} to {1}.", (kinds.money, kinds.money)),
    ("{who} owes me {0}.", (kinds.money,)),
    ("{where} has {0} inhabitants.", (kinds.count,)),
    ("{who} sold {0} books.", (kinds.count,)),
    ("There were {0} people in {where}.", (kinds.count,)),
    ("About {0} of the {1} voters stayed at home.", (kinds.percentage, kinds.count)),
    ("{0} of all visitors come from {where}.", (kinds.percentage,)),
    ("{who} lives on the {0} floor.", (kinds.place,)),
    ("This is the {0} time that {who} is late.", (kinds.place,)),
    ("{who} ate {0} of the cake.", (kinds.fraction,)),
    ("It is {0} from here to {where}.", (kinds.distance,)),
    ("{who} bought {0} of it.", (kinds.measure,)),
    ("In {where} it was {0} at {1}.", (kinds.temperature, kinds.time)),
    ("The value is {0}.", (kinds.with_point,)),
    ("Call {who} at {0}.", (kinds.telephone,)),
    ("{where} won {0}.", (kinds.score,)),
    ("They lost {0} on {1}.", (kinds.score, kinds.date)),
)

_WHO = (
    "Ada",
    "Ben",
    "Clara",
    "Mr. Novak",
    "Dr. Ito",
    "my sister",
    "Noor",
    "the baker",
    "Sam",
    "my aunt",
)
_WHERE = ("Oslo", "Lima", "New York", "Cairo", "Kyoto", "the old town", "Porto", "Graz", "York")

_WITHHELD_ONE_IN = 20
_FEWEST_FIGURES = 3


def generate(count: int, *, seed: int) -> list[WrittenOut]:
    """That many pairs with different sources; the same seed gives the same pairs everywhere."""
    return [pair for pair, _ in islice(_distinct(seed), count)]


def numbers_corpus(
    train_size: int, valid_size: int, *, seed: int
) -> tuple[list[WrittenOut], list[WrittenOut]]:
    """Pairs for training and for validation.

    Each validation sentence has an expression, "$12.50", that no training sentence has.
    """
    train: list[WrittenOut] = []
    valid: list[WrittenOut] = []
    for pair, is_withheld in _distinct(seed):
        part, size = (valid, valid_size) if is_withheld else (train, train_size)
        if len(part) < size:
            part.append(pair)
        elif len(train) >= train_size and len(valid) >= valid_size:
            break
    return train, valid


def withheld(figures: str) -> bool:
    """Whether an expression is kept for validation: one in twenty, chosen by its checksum.

    Those of fewer than three figures never are: they are few, and many are read in their own way.
    """
    enough = sum(map(str.isdecimal, figures)) >= _FEWEST_FIGURES
    return enough and crc32(figures.encode()) % _WITHHELD_ONE_IN == 0


def _distinct(seed: int) -> Iterator[tuple[WrittenOut, bool]]:
    """Pairs in random order, none twice, and whether a withheld expression is in them."""
    dice, seen = Dice(seed), set[str]()
    while True:
        pair, found = _sentence(dice)
        if pair.src not in seen:
            seen.add(pair.src)
            yield pair, any(withheld(expression.figures) for expression in found)


def _sentence(dice: Dice) -> tuple[WrittenOut, list[Expression]]:
    """An expression alone or a sentence around some."""
    if dice.chance(0.3):
        alone = dice.pick(_ALONE)(dice)
        return WrittenOut(alone.figures, alone.words), [alone]
    template, wanted = dice.pick(_SENTENCES)
    found = [kind(dice) for kind in wanted]
    who, where = dice.pick(_WHO), dice.pick(_WHERE)
    src, tgt = (template.format(*(e[side] for e in found), who=who, where=where) for side in (0, 1))
    tgt = tgt.replace("m..", "m.")  # "p.m." ends a sentence by itself
    return WrittenOut(src[:1].upper() + src[1:], tgt[:1].upper() + tgt[1:]), found
