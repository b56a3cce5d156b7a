"""Texts that come with the package: a recipe and the demonstration need no files."""

import lzma
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple
from zlib import crc32

from dragoman.data import numbers
from dragoman.data.docstrings import library_functions
from dragoman.data.stories import stories_corpus
from dragoman.files.writing import replacing
from dragoman.ranges import Count, check_ranges


class Pair(NamedTuple):
    """A sentence and its translation: English and Chinese, or with figures and written out."""

    src: str
    tgt: str


EXAMPLE = Pair("I like studying artificial intelligence.", "我喜欢学习人工智能。")
"""The sentence that the demonstration translates last: like those of its corpus, and not in it."""


class DemoCorpus(NamedTuple):
    """The English-Chinese sentences of `dragoman demo`, written by the grammar in `tools/`.

    - No English sentence has two translations.
    - A *combination* is a verb with its object (write + poem) or an activity with its place
      (swim + in the lake). One in twenty is withheld: no training or validation sentence contains
      it. So is study + artificial intelligence, which `EXAMPLE` needs.
    - The first half of the test sentences contain a withheld combination each; the others are new
      sentences made of known combinations.
    - No test sentence, English or Chinese, is in training or validation, no validation sentence
      is in training, and `EXAMPLE` is nowhere.
    - Every English word, number and Chinese character of the test occurs in training.
    """

    train: list[Pair]
    """30,000 pairs to learn from."""
    valid: list[Pair]
    """300 pairs for validation."""
    test: list[Pair]
    """500 pairs to score."""


def demo_corpus() -> DemoCorpus:
    """Read the corpus of `dragoman demo` from the file `demo.tsv.xz` of the package.

    A line is a pair, English, tab, Chinese; empty lines separate the three parts.
    """
    parts = _shipped("demo.tsv.xz").split("\n\n")
    return DemoCorpus(*([Pair(*line.split("\t")) for line in part.split("\n")] for part in parts))


def write_town(folder: Path, train: int = 20_000, valid: int = 500) -> dict[str, Path]:
    """Write conversations about a small town to `train.txt` and `valid.txt`; return the paths.

    They are the first ones of those that `tools/town.py` has written into the package. Between two
    stands an empty line, and a line is a turn.
    """
    paths = {"train": folder / "train.txt", "valid": folder / "valid.txt"}
    parts = _shipped("town.txt.xz").split("\n\n\n")
    for path, text, size in zip(paths.values(), parts, (train, valid), strict=True):
        with replacing(path, "texts") as part:
            part.write_text("\n\n".join(text.split("\n\n")[:size]) + "\n", encoding="utf-8")
    return paths


def _shipped(name: str) -> str:
    return lzma.decompress(files("dragoman.data").joinpath(name).read_bytes()).decode()


# ---------------------------------------------------------------- numbers, written out

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
    dice, seen = numbers.Dice(seed), set[str]()
    while len(train) < train_size or len(valid) < valid_size:
        pair, found = _sentence(dice)
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


def _sentence(dice: numbers.Dice) -> tuple[Pair, list[numbers.Expression]]:
    """An expression alone, or a sentence around one or two."""
    if dice.chance(0.3):
        alone = dice.pick(numbers.ALONE)(dice)
        return Pair(alone.figures, alone.words), [alone]
    template = dice.pick(_SENTENCES)
    kinds = [name for name in re.findall(r"{(\w+)}", template) if name in numbers.KINDS]
    found = [numbers.KINDS[kind](dice) for kind in kinds]
    src = tgt = template.replace("{who}", dice.pick(_WHO)).replace("{where}", dice.pick(_WHERE))
    for kind, expression in zip(kinds, found, strict=True):
        src = src.replace(f"{{{kind}}}", expression.figures, 1)
        tgt = tgt.replace(f"{{{kind}}}", expression.words, 1)
    tgt = tgt.replace("m..", "m.")  # "p.m." ends a sentence by itself
    return Pair(src[:1].upper() + src[1:], tgt[:1].upper() + tgt[1:]), found


# ---------------------------------------------------------------- stories, and the library


def _story_pairs(train_size: int, valid_size: int, *, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Stories with a question each, and the answers."""
    train, valid = stories_corpus(train_size, valid_size, seed=seed)
    return [Pair(s.text, s.answer) for s in train], [Pair(s.text, s.answer) for s in valid]


def docstrings_corpus(
    train_size: int, valid_size: int, *, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Functions of Python's library and the first lines of their docstrings, in random order.

    At most so many; validation has other modules than training, and none of its functions.
    """
    dice, seen = numbers.Dice(seed), set[str]()
    train: list[Pair] = []
    valid: list[Pair] = []
    functions = sorted(library_functions(), key=lambda _: dice.random())
    for function in sorted(functions, key=lambda function: function.withheld):
        if function.code not in seen:
            seen.add(function.code)
            part = valid if function.withheld else train
            part.append(Pair(function.code, function.summary))
    return train[:train_size], valid[:valid_size]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeConfig:
    """Which pairs to write, and how many."""

    name: Literal["numbers", "stories", "docstrings"] = "numbers"
    """numbers: sentences with figures, dates, times and money, and the same written out. stories:
    a story of up to five sentences with a question, and the answer. docstrings: a function of
    Python's library, and the first line of its docstring."""
    train: Count = 40_000
    """Number of training pairs; of docstrings at most, since there are about 6,000."""
    valid: Count = 1_000
    """Number of validation pairs, each with an expression, a fact or a module not in training."""
    seed: int = 1
    """Random seed of the pairs."""

    def __post_init__(self) -> None:
        check_ranges(self)


_CORPORA = {"numbers": numbers_corpus, "stories": _story_pairs, "docstrings": docstrings_corpus}


def write_made(config: MadeConfig, folder: Path) -> dict[str, Path]:
    """Write `train.src`, `train.tgt`, `valid.src` and `valid.tgt`, and return their paths by name.

    The same config writes the same bytes, so a run that is resumed finds its texts unchanged.
    """
    train, valid = _CORPORA[config.name](config.train, config.valid, seed=config.seed)
    names = ("train.src", "train.tgt", "valid.src", "valid.tgt")
    written = {name: folder / name for name in names}
    write_pairs(train, written["train.src"], written["train.tgt"])
    write_pairs(valid, written["valid.src"], written["valid.tgt"])
    return written


def write_pairs(pairs: Sequence[Pair], src: Path, tgt: Path) -> None:
    """Write sources to a file and their translations to another, line by line."""
    for side, path in enumerate((src, tgt)):
        with replacing(path, "texts") as part:
            part.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
