"""What `dragoman evaluate` gives to a task, and what it gets back; nothing large is imported."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeVar

from dragoman.decoding import NO_FLAG, Decoding, Precision
from dragoman.languages import LanguagePair

Found = TypeVar("Found")
Item = str | Sequence[Sequence[str]]
"""A sentence, or the rows of a table, its head first."""
FILES = ("src", "ref", "against", "ensemble", "comet", "text", "data")


def holds_lines(path: Path) -> bool:
    """Return whether it is a file or a pipe of finished translations, not a model folder."""
    return path.exists() and not path.is_dir()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationData(LanguagePair):
    """What a model is measured on, and how; each task reads the fields that it needs.

    The options of the command line are made from the fields.
    """

    src: Path | None = None
    """Source lines (.gz, .bz2, .xz, .zst too)."""
    ref: tuple[Path, ...] = ()
    """Reference translations, line by line; may be repeated."""
    against: Path | None = None
    """Compare with this model, or with its translations in a file."""
    ensemble: tuple[Path, ...] = field(default=(), metadata={"metavar": "MODEL"})
    """Another model to decode with, averaging the probabilities; repeatable."""
    comet: Path | None = None
    """Folder of a COMET model to score with as well."""
    tokenize: str | None = None
    """BLEU tokenizer; by default the one for the language."""
    text: Path | None = None
    """Text for a generator to predict."""
    split: Literal["file", "line", "blank-line"] = "file"
    """What counts as a document in the text."""
    data: Path | None = None
    """Labelled texts, or words with tags."""
    layout: tuple[str, ...] = ()
    """Layout of the data as KEY=VALUE; may be repeated."""
    decoding: Decoding = field(default_factory=Decoding, metadata=NO_FLAG)
    """Options of decoding, over those of the folder."""
    device: str = field(default="auto", metadata=NO_FLAG)
    precision: Precision = field(default="fp32", metadata=NO_FLAG)
    progress: Callable[..., AbstractContextManager[Iterable[Any]]] = field(
        default=lambda items, _what, *, total: nullcontext(items),  # noqa: ARG005
        metadata=NO_FLAG,
    )
    """Shows how many of `total` items, each a `what`, have been read."""

    @property
    def files(self) -> list[str]:
        """The names of the files that are given."""
        return [name for name in FILES if getattr(self, name)]

    def read(self, results: Iterable[Found], what: str, total: int) -> tuple[list[Found], float]:
        """Return all results and the seconds that they took, and show the progress."""
        start = perf_counter()
        with self.progress(results, what, total=total) as shown:
            found = list(shown)
        return found, perf_counter() - start


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an evaluation found."""

    figures: Mapping[str, Any]
    """All figures, ready for JSON."""
    lines: Sequence[Item]
    """The same for people."""
    remarks: Sequence[str] = ()
    """Further sentences for people."""
    warnings: Sequence[str] = ()
    answers: Sequence[str] = ()
    """What the model wrote, line by line, if it writes."""
