"""The log of a run, `metrics.jsonl`, as read for plots, lists, comparisons and fits."""

from dataclasses import dataclass, field
from pathlib import Path

from dragoman.files.reading import parse_json, read_file


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
        parse_json(f"{path}, line {number}", text, LogLine)
        for number, text in enumerate(lines, start=1)
    ]
