"""Pairs from the constructions: as many as wanted, and the corpus of `dragoman demo`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice, tee
from zlib import crc32

from tools.dice import Dice
from tools.grammar import (
    clauses,
    descriptions,
    existence,
    happenings,
    measures,
    questions,
    statements,
    transfers,
    wh_questions,
)
from tools.grammar.sentence import Sentence

from dragoman.data.made import EXAMPLE, DemoCorpus, Pair

SIZES = (30_000, 300, 500)
"""Of the corpus that the package ships: number of training, validation and test pairs."""

Construction = Callable[[Dice], Sentence]

_OFTEN: tuple[Construction, ...] = (
    statements.habit,
    statements.liking_to,
    statements.progressive,
    statements.wish,
    happenings.past,
    happenings.future,
    happenings.encounter,
    descriptions.judgement,
    descriptions.comparison,
    descriptions.rivalry,
    descriptions.best,
    measures.years,
    clauses.described_thing,
    clauses.because,
    transfers.ba_past,
    transfers.passive,
    wh_questions.what_question,
    wh_questions.where_question,
)
"""Constructions that come three times as often as the others: they hold most words."""

CONSTRUCTIONS: tuple[Construction, ...] = (
    *_OFTEN,
    *_OFTEN,
    *statements.ALL,
    *happenings.ALL,
    *descriptions.ALL,
    *measures.ALL,
    *existence.ALL,
    *questions.ALL,
    *wh_questions.ALL,
    *transfers.ALL,
    *clauses.ALL,
)
"""The grammar; a construction that stands here more than once is chosen as often as it stands."""

_WITHHELD_ONE_IN = 20
_WITHHELD = ("study + artificial intelligence",)
_TOKEN = re.compile(r"[A-Za-z']+|\d+|[\u4e00-\u9fff]")


def generate(count: int, *, seed: int) -> list[Pair]:
    """That many distinct pairs; the same seed gives the same pairs on every platform.

    The target is a function of the source: no English sentence has two translations.
    """
    return [_pair(sentence) for sentence in islice(_distinct(seed), count)]


def make_corpus(train_size: int, valid_size: int, test_size: int, *, seed: int) -> DemoCorpus:
    """Training, validation and test pairs that keep what `DemoCorpus` promises.

    A withheld combination is chosen by the checksum of its name, so it is the same for every seed.
    """
    left, right = tee(_distinct(seed))
    known = (_pair(sentence) for sentence in left if not any(map(withheld, sentence.links)))
    novel = (_pair(sentence) for sentence in right if any(map(withheld, sentence.links)))
    taken: set[str] = set()

    def fresh(pair: Pair) -> bool:
        return taken.isdisjoint(pair)

    train = list(islice(known, train_size))
    taken.update(text for pair in train for text in pair)
    vocabulary = {token for text in taken for token in _TOKEN.findall(text)}

    def testable(pair: Pair) -> bool:
        return fresh(pair) and vocabulary.issuperset(_TOKEN.findall(pair.src + pair.tgt))

    valid = list(islice(filter(fresh, known), valid_size))
    taken.update(text for pair in (*valid, EXAMPLE) for text in pair)
    half = test_size // 2
    test = [
        *islice(filter(testable, novel), half),
        *islice(filter(testable, known), test_size - half),
    ]
    return DemoCorpus(train, valid, test)


@cache
def withheld(combination: str) -> bool:
    """Whether the combination, "write + poem", is kept for the test."""
    chosen = crc32(combination.encode()) % _WITHHELD_ONE_IN == 0
    return chosen or combination in _WITHHELD


def _distinct(seed: int) -> Iterator[Sentence]:
    """Sentences of all constructions in random order, none twice."""
    dice, seen = Dice(seed), {EXAMPLE.src}
    while True:
        sentence = dice.pick(CONSTRUCTIONS)(dice)
        if sentence.en not in seen:
            seen.add(sentence.en)
            yield sentence


def _pair(sentence: Sentence) -> Pair:
    return Pair(sentence.en, sentence.zh)
