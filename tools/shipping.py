"""Corpora as the package ships them: compressed files in `dragoman.data`."""

import bz2
from collections.abc import Iterable
from importlib.resources import as_file, files

from dragoman.data.made import Pair

SEED = 1
"""Of every corpus that the package ships."""

SIZES = (40_000, 1_000)
"""Number of training and validation pairs of `numbers` and `stories`."""


def pairs_text(*parts: Iterable[Pair]) -> str:
    """One pair a line, source, tab, target; empty lines between the parts."""
    return "\n\n".join("\n".join("\t".join(pair) for pair in part) for part in parts)


def ship(name: str, text: str) -> None:
    """Write a text into the package."""
    with as_file(files("dragoman.data").joinpath(name)) as path:
        path.write_bytes(bz2.compress(text.encode()))
