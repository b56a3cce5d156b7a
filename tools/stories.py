"""Short stories of a small world, each with a question that one of its sentences answers.

`python -m tools.stories` writes those of the recipe `stories` into the package.

A story is a row of facts: somebody went to a place, or did something with a number of things. The
questions are who, where, what and how many; every answer is a word or two of the story. The task is
in the spirit of bAbI (Weston et al., 2015): *where* asks for the last of somebody's moves, so a
reader must know which sentence came later, and the other questions need the one sentence that has
both of the words asked about.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from tools.dice import Dice
from tools.numbers import cardinal
from tools.shipping import SEED, SIZES, pairs_text, ship

from dragoman.data.made import Pair

_WITHHELD_ONE_IN = 20
_PEOPLE, _PLACES, _COLOURS, _THINGS = (
    words.split(", ")
    for words in (
        "Ada, Ben, Clara, Dan, Emma, Finn, Gina, Hugo, Iris, Jack, Kira, Liam, Mona, Nils, Olga, "
        "Paul, Quinn, Rosa, Sven, Tara, Uma, Viktor, Wanda, Xenia, Yusuf, Zoe, Amir, Bea, Carl, "
        "Dora, Erik, Fay",
        "kitchen, garden, library, school, harbour, market, museum, cinema, castle, bakery, "
        "old town, town hall, post office, train station, north gate, south gate",
        "red, green, blue, white, black, yellow",
        "lamps, keys, boats, books, stamps, apples, chairs, clocks, kites, shells, coins, maps, "
        "cups, hats, bells, pens, drums, rugs, masks, dolls",
    )
)
_DEEDS = {"bought": "buy", "sold": "sell", "found": "find", "lost": "lose", "drew": "draw"}
_MOVE = "went"


class Fact(NamedTuple):
    """Who did it, the verb, of a deed how many, and what: a place, or coloured things."""

    who: str
    verb: str
    number: str
    what: str

    def __str__(self) -> str:
        if self.verb == _MOVE:
            return f"{self.who} went to the {self.what}."
        return f"{self.who} {self.verb} {self.number} {self.what}."

    @property
    def withheld(self) -> bool:
        """Whether this person and this place or noun never meet in training: one pair in twenty."""
        pair = f"{self.who} {self.what.rpartition(' ')[2]}"
        return crc32(pair.encode()) % _WITHHELD_ONE_IN == 0


class Story(NamedTuple):
    """Facts in the order in which they happened, and a question about one of them."""

    facts: tuple[Fact, ...]
    question: str
    answer: str
    asked: int
    """Index of the fact that answers the question."""

    @property
    def text(self) -> str:
        """The sentences, and behind them the question."""
        return " ".join((*map(str, self.facts), self.question))


def make_story(dice: Dice, num_sentences: int = 5) -> Story:
    """Draw a story of so many sentences, as many people at most, and a question.

    Each kind of question is as likely as the others, as far as the story allows.
    """
    people = [dice.pick(_PEOPLE) for _ in range(num_sentences)]
    facts: list[Fact] = []
    while len(facts) < num_sentences:
        fact = _draw_fact(dice, people)
        if not any(_clash(fact, other) for other in facts):
            facts.append(fact)
    moves = {fact.who: i for i, fact in enumerate(facts) if fact.verb == _MOVE}
    deeds = [i for i, fact in enumerate(facts) if fact.verb != _MOVE]
    if moves and (not deeds or dice.chance(0.25)):
        asked = dice.pick(list(moves.values()))
    else:
        asked = dice.pick(deeds)
    return Story(tuple(facts), *_ask(dice, facts[asked]), asked)


def stories_corpus(
    train_size: int, valid_size: int, *, seed: int, num_sentences: int = 5
) -> tuple[list[Story], list[Story]]:
    """Distinct stories for training and for validation; a seed gives the same stories everywhere.

    For training of two sentences up to so many, without a withheld fact; for validation of so many,
    each with a question about a withheld fact.
    """
    train = _distinct(
        train_size,
        lambda dice: make_story(dice, dice.number(2, num_sentences)),
        lambda story: not any(fact.withheld for fact in story.facts),
        seed=seed,
    )
    valid = _distinct(
        valid_size,
        lambda dice: make_story(dice, num_sentences),
        lambda story: story.facts[story.asked].withheld,
        seed=seed,
    )
    return train, valid


def _distinct(
    size: int, draw: Callable[[Dice], Story], usable: Callable[[Story], bool], *, seed: int
) -> list[Story]:
    dice, found = Dice(seed), dict[str, Story]()
    while len(found) < size:
        story = draw(dice)
        if usable(story):
            found.setdefault(story.text, story)
    return list(found.values())


def _draw_fact(dice: Dice, people: Sequence[str]) -> Fact:
    who = dice.pick(people)
    if dice.chance(0.5):
        return Fact(who, _MOVE, "", dice.pick(_PLACES))
    what = f"{dice.pick(_COLOURS)} {dice.pick(_THINGS)}"
    return Fact(who, dice.pick(list(_DEEDS)), cardinal(dice.number(2, 12)), what)


def _clash(one: Fact, other: Fact) -> bool:
    """Whether two facts cannot be in one story: a move twice, two deeds of somebody, one of two."""
    if _MOVE in (one.verb, other.verb):
        return one == other
    return one.who == other.who or (one.verb, one.what) == (other.verb, other.what)


def _ask(dice: Dice, fact: Fact) -> tuple[str, str]:
    """Return a question about a fact, and its answer."""
    if fact.verb == _MOVE:
        return f"Where is {fact.who}?", fact.what
    done = _DEEDS[fact.verb]
    return dice.pick(
        (
            (f"Who {fact.verb} the {fact.what}?", fact.who),
            (f"What did {fact.who} {done}?", fact.what),
            (f"How many {fact.what} did {fact.who} {done}?", fact.number),
        )
    )


def story_pairs(stories: Sequence[Story]) -> list[Pair]:
    """Each story with its question, and the answer."""
    return [Pair(story.text, story.answer) for story in stories]


if __name__ == "__main__":
    ship("stories.tsv.bz2", pairs_text(*map(story_pairs, stories_corpus(*SIZES, seed=SEED))))
