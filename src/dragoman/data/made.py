"""Pairs of texts that come with the package: a recipe and the demonstration need no files."""

import lzma
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from dragoman.data.numbers import numbers_corpus
from dragoman.files.writing import replacing
from dragoman.ranges import Count, check_ranges

__all__ = ["EXAMPLE", "DemoCorpus", "MadeConfig", "Pair", "demo_corpus", "write_made"]


class Pair(NamedTuple):
    """A sentence and its translation."""

    src: str
    """English."""
    tgt: str
    """Chinese."""


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
    content = files("dragoman.data").joinpath("demo.tsv.xz").read_bytes()
    parts = lzma.decompress(content).decode().split("\n\n")
    return DemoCorpus(*([Pair(*line.split("\t")) for line in part.split("\n")] for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeConfig:
    """Which pairs to write, and how many."""

    name: Literal["numbers"] = "numbers"
    """numbers: sentences with figures, dates, times and money, and the same written out."""
    train: Count = 40_000
    """Number of training pairs."""
    valid: Count = 1_000
    """Number of validation pairs; each has an expression that no training pair has."""
    seed: int = 1
    """Random seed of the pairs."""

    def __post_init__(self) -> None:
        """Raise InputError for a corpus without pairs."""
        check_ranges(self)


def write_made(config: MadeConfig, folder: Path) -> dict[str, Path]:
    """Write `train.src`, `train.tgt`, `valid.src` and `valid.tgt`, and return their paths by name.

    The same config writes the same bytes, so a run that is resumed finds its texts unchanged.
    """
    train, valid = numbers_corpus(config.train, config.valid, seed=config.seed)
    written = {}
    for split, pairs in (("train", train), ("valid", valid)):
        for side, name in enumerate(("src", "tgt")):
            path = folder / f"{split}.{name}"
            with replacing(path, "texts") as part:
                lines = "".join(pair[side] + "\n" for pair in pairs)
                part.write_text(lines, encoding="utf-8")
            written[path.name] = path
    return written
