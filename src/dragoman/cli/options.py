"""Arguments and options that several verbs share, and how options override a model's defaults."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar("Options", bound="DataclassInstance")


def option(text: str) -> Any:  # noqa: ANN401 -- as typer's own
    """An option with this help."""
    return typer.Option(help=text)


ModelFolder = Annotated[Path, typer.Argument(help="The model folder.")]
FileOrText = Annotated[
    str | None,
    typer.Argument(
        help="A file of lines (.gz, .xz and .zst too) or a text; standard input if omitted."
    ),
]
BATCH_TOKENS = option("Maximum number of tokens per batch; a smaller one needs less memory.")
BeamSize = Annotated[int | None, option("Beam size; 1 is greedy search.")]
LengthPenalty = Annotated[
    float | None, option("Exponent of the length penalty; a larger one favours longer texts.")
]
Device = Annotated[str, option("cpu, cuda or auto.")]
OutputFile = Annotated[Path | None, option("Write to this file instead of standard output.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted --output where it stopped.")
]


def override(defaults: Options, given: Mapping[str, object]) -> Options:
    """The defaults, a dataclass, with every option that was given; None means that it was not."""
    return replace(defaults, **{k: v for k, v in given.items() if v is not None})
