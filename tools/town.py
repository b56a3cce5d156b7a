"""Conversations about a small town, whose every answer can be checked: `python -m tools.town`.

It writes those of the recipe `town` into the package, as `file_text` has them.

The town is always the same. A visitor asks and the town answers; after the first question, the
place, what is asked about it or the number of people may have been said in an earlier turn only.

A *combination* is what such an answer brings together: two places asked about one after another,
two questions about one place, a place and a number of tickets, a place and an hour. One in ten is
withheld: no training conversation contains it, and each validation conversation ends with one.
"""

from typing import NamedTuple
from zlib import crc32

from tools.dice import Dice
from tools.shipping import SEED, ship

SIZES = (20_000, 500)
"""Of the corpus that the package ships: number of training and validation conversations."""


class Place(NamedTuple):
    """A place of the town: hours of 24, and pounds."""

    name: str
    opens: int
    closes: int
    price: int
    street: str


_TABLE = """\
museum, 9, 17, 6, Mill Street
zoo, 8, 18, 12, Park Road
castle, 10, 16, 9, Hill Lane
theatre, 11, 22, 12, King Street
cinema, 11, 22, 6, Mill Street
library, 8, 18, 3, School Lane
market, 7, 15, 2, King Street
aquarium, 9, 18, 9, Harbour Road
gallery, 10, 17, 4, School Lane
garden, 7, 20, 2, Park Road
lighthouse, 10, 15, 5, Harbour Road
planetarium, 11, 22, 8, Hill Lane
palace, 9, 16, 12, Garden Street
swimming pool, 7, 20, 5, Park Road
concert hall, 11, 22, 8, Garden Street
railway museum, 9, 15, 6, Station Road
boat house, 8, 20, 9, Harbour Road
tower, 8, 17, 3, Hill Lane
botanical museum, 10, 16, 4, Garden Street
ice rink, 7, 20, 5, Station Road"""
TOWN = [
    Place(name, int(opens), int(closes), int(price), street)
    for name, opens, closes, price, street in (line.split(", ") for line in _TABLE.splitlines())
]

_ASKED = {
    "opens": "When does {} open? What time does {} open?",
    "closes": "When does {} close? Until when is {} open?",
    "price": "How much is a ticket for {}? What does {} cost?",
    "street": "Where is {}? How do I find {}?",
}
"""Two ways of asking, about a place or about "it"."""

_WITHHELD_ONE_IN = 10


def withheld(combination: str) -> bool:
    """Whether a combination is kept for validation: one in ten, chosen by its checksum."""
    return crc32(combination.encode()) % _WITHHELD_ONE_IN == 0


def town_corpus(train_size: int, valid_size: int, *, seed: int) -> tuple[list[str], list[str]]:
    """Distinct conversations for training and for validation; a seed gives the same everywhere.

    A line is a turn, the visitor's first and an answer last.
    """
    train: list[str] = []
    valid: list[str] = []
    dice, seen = Dice(seed), set[str]()
    while len(train) < train_size or len(valid) < valid_size:
        turns, novel = _conversation(dice)
        text = "\n".join(turns)
        part, size = (valid, valid_size) if novel else (train, train_size)
        if text not in seen and len(part) < size:
            seen.add(text)
            part.append(text)
    return train, valid


def _conversation(dice: Dice) -> tuple[list[str], bool]:
    """The turns up to the first withheld combination, and whether there is one."""
    turns: list[str] = []
    people = dice.number(2, 9) if dice.chance(0.5) else 0
    if people:
        turns += [f"There are {people} of us.", f"Welcome, all {people} of you."]
    place, asked = dice.pick(TOWN), dice.pick(tuple(_ASKED))
    turns += [_question(dice, asked, f"the {place.name}"), _fact(place, asked)]
    for _ in range(dice.number(1, 4)):
        before = place.name
        kind = dice.pick(("place", "question", "tickets", "hour"))
        if kind == "place":
            place = dice.pick([other for other in TOWN if other is not place])
            combination = f"{asked} {before} {place.name}"
            question = dice.pick(("And the {}?", "What about the {}?")).format(place.name)
            answer = _fact(place, asked)
        elif kind == "question":
            then = dice.pick([other for other in _ASKED if other != asked])
            combination, asked = f"{before} {asked} {then}", then
            question, answer = _question(dice, asked, "it"), _fact(place, asked)
        elif kind == "tickets":
            all_of_us = people > 0 and dice.chance(0.5)
            number, asked = people if all_of_us else dice.number(2, 9), "price"
            combination = f"{before} {number} tickets"
            question = "What do we all pay?" if all_of_us else f"How much are {number} tickets?"
            pounds = f"at {place.price} pounds are {number * place.price} pounds"
            answer = f"{number} tickets for the {before} {pounds}."
        else:
            hour, asked = dice.number(6, 23), "opens"
            combination, question = f"{before} at {hour}", f"Is it open at {_clock(hour)}?"
            when, so = "between", "yes"
            if not place.opens <= hour < place.closes:
                when, so = "earlier" if hour < place.opens else "later", "no"
            times = f"from {_clock(place.opens)} to {_clock(place.closes)}"
            answer = f"The {before} is open {times}; {_clock(hour)} is {when}, so {so}."
        turns += [question, answer]
        if withheld(combination):
            return turns, True
    return turns, False


def _question(dice: Dice, asked: str, what: str) -> str:
    first, second, _ = _ASKED[asked].format(what, what).split("?")
    return dice.pick((first, second.strip())) + "?"


def _fact(place: Place, asked: str) -> str:
    """The answer to a question about a place."""
    return {
        "opens": f"The {place.name} opens at {_clock(place.opens)}.",
        "closes": f"The {place.name} closes at {_clock(place.closes)}.",
        "price": f"A ticket for the {place.name} costs {place.price} pounds.",
        "street": f"The {place.name} is in {place.street}.",
    }[asked]


def _clock(hour: int) -> str:
    """An hour of 24 as people say it; 12 pm is noon."""
    return f"{(hour - 1) % 12 + 1} {'am' if hour < 12 else 'pm'}"


def file_text(train_size: int, valid_size: int, *, seed: int) -> str:
    """Conversations with an empty line between them, and two between training and validation."""
    return "\n\n\n".join(map("\n\n".join, town_corpus(train_size, valid_size, seed=seed)))


if __name__ == "__main__":
    ship("town.txt.bz2", file_text(*SIZES, seed=SEED))
