"""Texts that come with the package, so that a recipe and the demo need no files."""

import ast
import bz2
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple
from zlib import crc32

from dragoman.data.documents import standard_library
from dragoman.errors import InputError
from dragoman.files.writing import replacing
from dragoman.ranges import Count, check_ranges


class Pair(NamedTuple):
    """A sentence and its translation: English and Chinese, or with figures and written out."""

    src: str
    tgt: str


WITHHELD_ONE_IN = 10
"""One in this many modules of Python's library is for validation."""
FEWEST_WORDS, MOST_CHARACTERS = 3, 300
"""Minimum words of a docstring's first line, and maximum characters of a function."""
EXAMPLE = Pair("I like studying artificial intelligence.", "我喜欢学习人工智能。")
"""The last sentence that the demo translates: like those of its corpus, but not in it."""


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
    """Read the corpus of `dragoman demo` from the file `demo.tsv.bz2` of the package."""
    return DemoCorpus(*_shipped_pairs("demo"))


def write_town(folder: Path, train: int = 20_000, valid: int = 500) -> dict[str, Path]:
    """Write conversations about a small town to `train.txt` and `valid.txt`; return the paths.

    They are the first of those that `tools/town.py` generated for the package. Each line is a turn,
    and empty lines separate conversations.
    """
    paths = {"train": folder / "train.txt", "valid": folder / "valid.txt"}
    parts = _shipped("town.txt.bz2").split("\n\n\n")
    for path, text, size in zip(paths.values(), parts, (train, valid), strict=True):
        with replacing(path, "texts") as part:
            part.write_text("\n\n".join(text.split("\n\n")[:size]) + "\n", encoding="utf-8")
    return paths


def _shipped_pairs(name: str) -> list[list[Pair]]:
    """Return the parts of a corpus: a line is a tab-separated pair, an empty line ends a part."""
    if name == "demo-zh-en":
        return [[Pair(tgt, src) for src, tgt in part] for part in _shipped_pairs("demo")[:2]]
    parts = _shipped(f"{name}.tsv.bz2").split("\n\n")
    return [[Pair(*line.split("\t")) for line in part.split("\n")] for part in parts]


def _shipped(name: str) -> str:
    return bz2.decompress(files("dragoman.data").joinpath(name).read_bytes()).decode()


def docstrings_corpus(
    train_size: int, valid_size: int, *, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Return functions of Python's library with the first lines of their docstrings, shuffled.

    Returns at most this many. One in ten modules, or whole packages, is for validation, chosen by a
    checksum of its name; pairs in both parts are used only for training. Raises InputError for a
    Python without its sources.
    """
    draw, folder = Random(seed).random, Path(sysconfig.get_paths()["stdlib"])
    found = list[tuple[bool, Pair]]()
    for path in standard_library():
        module = path.relative_to(folder).parts[0].removesuffix(".py")
        withheld = crc32(module.encode()) % WITHHELD_ONE_IN == 0
        found += [(withheld, pair) for pair in functions_of(path.read_bytes())]
    found.sort(key=lambda _: draw())
    train, valid = dict[str, Pair](), dict[str, Pair]()
    for withheld, pair in sorted(found, key=itemgetter(0)):
        if pair.src not in train:
            (valid if withheld else train).setdefault(pair.src, pair)
    return [*train.values()][:train_size], [*valid.values()][:valid_size]


def functions_of(source: bytes | str) -> Iterator[Pair]:
    """Yield functions whose docstring begins with three words or more, and that first line.

    The code is the output of `ast.unparse` on one line, truncated, without comments and docstrings,
    so it depends on the version of Python. Nested functions are also yielded by themselves.
    """
    with warnings.catch_warnings(action="ignore"):  # about escapes in strings for older Pythons
        tree = ast.parse(source)
    documented = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                node.body = node.body[1:] or [ast.Pass()]
                documented.append((node, docstring.splitlines()[0].strip()))
    for node, summary in documented:
        if not isinstance(node, ast.ClassDef) and len(summary.split()) >= FEWEST_WORDS:
            yield Pair(" ".join(ast.unparse(node).split())[:MOST_CHARACTERS].rstrip(), summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeConfig:
    """Which pairs to write, and how many."""

    name: Literal["numbers", "stories", "demo-zh-en", "docstrings"] = "numbers"
    """numbers: sentences with numbers, dates, times and amounts of money, and the same sentences
    written out. stories: a story of up to five sentences with a question, and the answer.
    demo-zh-en: the sentences of `dragoman demo`, Chinese to English. docstrings: a function of
    Python's standard library, and the first line of its docstring."""
    train: Count = 40_000
    """Number of training pairs: at most 40,000, or 30,000 for demo-zh-en; for docstrings all pairs,
    up to this number."""
    valid: Count = 1_000
    """Number of validation pairs, each with an expression, a fact or a module that is not in
    training: at most 1,000, or 300 new sentences for demo-zh-en; for docstrings all pairs, up to
    this number."""
    seed: int = 1
    """Random seed for the order of docstrings; numbers and stories have a fixed order."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def check(self) -> None:
        """Raise InputError for pairs that the package does not contain."""
        if self.name == "docstrings":
            return
        if self.seed != 1:
            raise InputError(
                f'data.made.seed = {self.seed} applies to "docstrings" only: the pairs of '
                f'"{self.name}" are always the same; remove it'
            )
        wanted = {"train": self.train, "valid": self.valid}
        for (key, size), part in zip(wanted.items(), _shipped_pairs(self.name), strict=True):
            if size > len(part):
                raise InputError(
                    f'data.made.{key} = {size}, but "{self.name}" has {len(part)} such pairs; '
                    "choose a smaller number"
                )


def write_made(config: MadeConfig, folder: Path) -> dict[str, Path]:
    """Write `train.src`, `train.tgt`, `valid.src` and `valid.tgt`, and return their paths by name.

    The same config writes the same bytes, so a resumed run finds its texts unchanged.
    """
    if config.name == "docstrings":
        train, valid = docstrings_corpus(config.train, config.valid, seed=config.seed)
    else:
        train, valid = _shipped_pairs(config.name)
    names = ("train.src", "train.tgt", "valid.src", "valid.tgt")
    written = {name: folder / name for name in names}
    write_pairs(train[: config.train], written["train.src"], written["train.tgt"])
    write_pairs(valid[: config.valid], written["valid.src"], written["valid.tgt"])
    return written


def write_pairs(pairs: Sequence[Pair], src: Path, tgt: Path) -> None:
    """Write sources to one file and their translations to another, line by line."""
    for side, path in enumerate((src, tgt)):
        with replacing(path, "texts") as part:
            part.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
