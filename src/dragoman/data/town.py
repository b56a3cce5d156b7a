"""Conversations about a small town, made by the package: each answer can be checked.

The town is always the same: where a place is, when it opens and closes, what a ticket costs. A
visitor asks and the town answers; after the first question, a place, a number of people or what is
asked about may have been said in an earlier turn only.

A *combination* is what such an answer brings together: two places asked about one after another,
two questions about one place, a place and a number of tickets, a place and an hour. One in ten is
withheld: no training conversation contains it, and each validation conversation ends with one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple
from zlib import crc32

from dragoman.data.numbers import Dice
from dragoman.files.writing import replacing
from dragoman.ranges import Count, check_ranges


class Place(NamedTuple):
    """A place of the town: hours of 24, and pounds."""

    name: str
    opens: int
    closes: int
    price: int
    street: str


def _place(line: str) -> Place:
    name, opens, closes, price, street = line.split(", ")
    return Place(name, int(opens), int(closes), int(price), street)


TOWN = tuple(
    map(
        _place,
        """\
museum, 9, 17, 7, Mill Street
zoo, 8, 18, 12, Park Road
castle, 10, 16, 9, Hill Lane
theatre, 11, 22, 11, King Street
cinema, 11, 23, 6, Mill Street
library, 8, 19, 3, School Lane
market, 7, 14, 2, King Street
aquarium, 9, 18, 10, Harbour Road
gallery, 10, 17, 4, School Lane
garden, 7, 20, 2, Park Road
lighthouse, 10, 15, 5, Harbour Road
planetarium, 11, 22, 8, Hill Lane
palace, 9, 16, 12, Garden Street
swimming pool, 7, 21, 5, Park Road
concert hall, 10, 23, 10, Garden Street
railway museum, 9, 15, 6, Station Road
boat house, 8, 20, 9, Harbour Road
tower, 8, 17, 3, Hill Lane
botanical museum, 10, 19, 4, Garden Street
ice rink, 11, 21, 8, Station Road
""".splitlines(),
    )
)

_FIRST = {
    "opens": ("When does the {} open?", "What time does the {} open?"),
    "closes": ("When does the {} close?", "Until when is the {} open?"),
    "price": ("How much is a ticket for the {}?", "What does the {} cost?"),
    "street": ("Where is the {}?", "How do I find the {}?"),
}
"""Questions that name the place."""

_THEN = {
    "opens": ("When does it open?", "And what time does it open?"),
    "closes": ("When does it close?", "And until when is it open?"),
    "price": ("How much is a ticket?", "And what does it cost?"),
    "street": ("Where is it?", "And how do I find it?"),
}
"""The same of a place that was named before."""

_OTHER = ("And the {}?", "What about the {}?")
_TICKETS = ("How much are {} tickets?", "And {} tickets?")
_ALL = ("What do we all pay?", "And for all of us?")
_HOUR = ("Is it open at {}?", "Can I go there at {}?")

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
    people = dice.number(2, 9) if dice.chance(0.5) else None
    if people is not None:
        turns += [f"There are {people} of us.", f"Welcome, all {people} of you."]
    place, asked = dice.pick(TOWN), dice.pick(tuple(_FIRST))
    turns += [dice.pick(_FIRST[asked]).format(place.name), _fact(place, asked)]
    for _ in range(dice.number(1, 4)):
        kind = dice.pick(("other", "then", "tickets", "hour"))
        if kind == "other":
            other = dice.pick([one for one in TOWN if one is not place])
            combination = f"{asked} {place.name} {other.name}"
            place = other
            said = dice.pick(_OTHER).format(place.name), _fact(place, asked)
        elif kind == "then":
            then = dice.pick([one for one in _THEN if one != asked])
            combination = f"{place.name} {asked} {then}"
            asked = then
            said = dice.pick(_THEN[asked]), _fact(place, asked)
        elif kind == "tickets":
            combination, said = _tickets(dice, place, people)
            asked = "price"
        else:
            hour = dice.number(6, 23)
            combination, said = f"{place.name} at {hour}", _open_at(dice, place, hour)
            asked = "opens"
        turns += said
        if withheld(combination):
            return turns, True
    return turns, False


def _fact(place: Place, asked: str) -> str:
    """The answer to a question about a place."""
    match asked:
        case "opens":
            return f"The {place.name} opens at {_clock(place.opens)}."
        case "closes":
            return f"The {place.name} closes at {_clock(place.closes)}."
        case "price":
            return f"A ticket for the {place.name} costs {place.price} pounds."
    return f"The {place.name} is in {place.street}."


def _tickets(dice: Dice, place: Place, people: int | None) -> tuple[str, tuple[str, str]]:
    """Combination, question and answer about tickets; their number may be that of the people."""
    number, question = people, dice.pick(_ALL)
    if number is None or dice.chance(0.5):
        number = dice.number(2, 9)
        question = dice.pick(_TICKETS).format(number)
    total = number * place.price
    answer = f"{number} tickets for the {place.name} at {place.price} pounds are {total} pounds."
    return f"{place.name} {number} tickets", (question, answer)


def _open_at(dice: Dice, place: Place, hour: int) -> tuple[str, str]:
    """Question and answer about an hour."""
    so = "yes" if place.opens <= hour < place.closes else "no"
    times = f"from {_clock(place.opens)} to {_clock(place.closes)}"
    question = dice.pick(_HOUR).format(_clock(hour))
    return question, f"The {place.name} is open {times}, so {so}."


def _clock(hour: int) -> str:
    """An hour of 24 as people say it."""
    return "noon" if hour == 12 else f"{hour % 12} {'am' if hour < 12 else 'pm'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TownConfig:
    """Which conversations to write, and how many."""

    name: Literal["town"] = "town"
    """town: questions and answers about the places of a small town."""
    train: Count = 20_000
    """Number of training conversations."""
    valid: Count = 500
    """Number of validation conversations; each ends with a combination that no training one has."""
    seed: int = 1
    """Random seed of the conversations."""

    def __post_init__(self) -> None:
        check_ranges(self)


def write_town(config: TownConfig, folder: Path) -> dict[str, Path]:
    """Write `train.txt` and `valid.txt`, a blank line between conversations; return their paths.

    The same config writes the same bytes, so a run that is resumed finds its texts unchanged.
    """
    train, valid = town_corpus(config.train, config.valid, seed=config.seed)
    paths = {"train": folder / "train.txt", "valid": folder / "valid.txt"}
    for name, conversations in (("train", train), ("valid", valid)):
        with replacing(paths[name], "texts") as part:
            part.write_text("\n\n".join(conversations) + "\n", encoding="utf-8")
    return paths
