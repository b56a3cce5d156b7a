"""Pairs of texts that the package writes itself, so that a recipe needs no files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dragoman.data.numbers import numbers_corpus
from dragoman.errors import InputError
from dragoman.files.writing import replacing

__all__ = ["MadeConfig", "write_made"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeConfig:
    """Which pairs to write, and how many."""

    name: Literal["numbers"] = "numbers"
    """numbers: sentences with figures, dates, times and money, and the same written out."""
    train: int = 40_000
    """Pairs to learn from."""
    valid: int = 1_000
    """Pairs for validation: each has an expression that no training pair has."""
    seed: int = 1
    """Of the pairs."""

    def __post_init__(self) -> None:
        """Refuse a corpus without pairs."""
        for name in ("train", "valid"):
            count: int = getattr(self, name)
            if count < 1:
                raise InputError(f"made.{name} = {count} must be at least 1")


def write_made(config: MadeConfig, folder: Path) -> dict[str, Path]:
    """Write `train.src`, `train.tgt`, `valid.src` and `valid.tgt`, and return their paths by name.

    The same config writes the same bytes, so a run that goes on finds its texts as they were.
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
