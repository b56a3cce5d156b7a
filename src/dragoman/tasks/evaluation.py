"""How good a model is on a test set: what `dragoman evaluate` asks of a task and prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dragoman.data.documents import Split

if TYPE_CHECKING:  # sacreBLEU is not loaded to translate
    from dragoman.evaluate import Measures

__all__ = ["EvaluationData", "Progress", "Report", "measures_table"]

Item = TypeVar("Item")


class Progress(Protocol):
    """Shows how far a long evaluation is."""

    def __call__(
        self, items: Iterable[Item], what: str, *, total: int
    ) -> AbstractContextManager[Iterable[Item]]:
        """Return the items, of which there are `total`, counted as `what` while they are read."""


def silent(
    items: Iterable[Item],
    what: str,  # noqa: ARG001 (the form of all)
    *,
    total: int,  # noqa: ARG001
) -> AbstractContextManager[Iterable[Item]]:
    """Show nothing."""
    return nullcontext(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationData:
    """What a model is measured on, and how; each task reads the fields that it needs."""

    src: Path | None = None
    """Source lines."""
    ref: Path | None = None
    """Reference translations, line by line."""
    text: Path | None = None
    """A text to predict."""
    data: Path | None = None
    """Labelled texts, or words with tags."""
    tokenize: str | None = None
    """BLEU's tokenizer; else chosen by the language."""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    """Options of decoding; where one is None, that of the folder holds."""
    split: Split = "file"
    """What a document of the text is."""
    layout: Sequence[str] = ()
    """Settings of the data's layout, such as `label_column=2`."""
    device: str = "auto"
    """cpu, cuda or auto."""
    progress: Progress = silent
    """Told of what is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an evaluation found."""

    figures: Mapping[str, Any]
    """All of it, fit for JSON."""
    lines: Sequence[str]
    """The same for people."""
    remarks: Sequence[str] = ()
    """What else there is to tell people."""
    warnings: Sequence[str] = ()
    """What looks wrong."""
    answers: Sequence[str] = ()
    """What the model wrote, line by line, where it writes."""


def measures_table(kind: str, rows: Mapping[str, "Measures"]) -> Iterator[str]:
    """Yield a line for each kind of label, under a line of headings."""
    width = max(len(kind), *map(len, rows))
    yield f"{kind:<{width}}  precision  recall     F1   count"
    for name, row in rows.items():
        yield (
            f"{name:<{width}}  {row.precision:>9.2f}  {row.recall:>6.2f}  {row.f1:>5.2f}  "
            f"{row.count:>6,}"
        )
