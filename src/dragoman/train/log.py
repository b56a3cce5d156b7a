"""The log of a run, `metrics.jsonl`, as read for plots, lists, comparisons and fits."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from dragoman.errors import InputError
from dragoman.files.reading import read_file

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """The fields that are read from a line."""

    step: int
    seconds: float = 0.0
    loss: float | None = None
    grad_norm: float | None = None
    learning_rate: float | None = None
    tokens: int | None = None
    tokens_per_second: float | None = None
    valid: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    examples: list[tuple[str, str]] = field(default_factory=list)
    stopped: str | None = None


def read_log(path: Path) -> list[LogLine]:
    """Read a log. Raises InputError if it is missing or has a damaged line."""
    lines = read_file(path).split(b"\n")[:-1]  # a line without line feed is still being written
    return [
        read_json(f"{path}, line {number}", text, LogLine)
        for number, text in enumerate(lines, start=1)
    ]


def read_json(
    name: object, text: bytes, kind: type[T], advice: str = "restore it, or give another run."
) -> T:
    """Parse a file of a run, or a line of it. Raises InputError if it is damaged."""
    try:
        return msgspec.convert(json.loads(text), kind)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise InputError(f"{name} is damaged ({error}); {advice}") from error
