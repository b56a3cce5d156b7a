"""Texts that every machine has: the sources of Python's own standard library.

Ten million characters of code and of English about code, for a language model to learn from where
nothing else is at hand. They are those of the Python that is running, so that two versions of it
give two different texts.
"""

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from dragoman.errors import InputError

__all__ = ["standard_library"]

LEFT_OUT = {"dist-packages", "encodings", "idle_test", "site-packages", "test", "tests"}
"""Folders of other people's packages, of tables, and of tests, which not every system installs."""


def standard_library() -> list[Path]:
    """Return the files in a fixed order; InputError for a Python that came without its sources."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in _sources(folder) if path.stat().st_size)
    if not files:
        raise InputError(
            f"this Python keeps no sources of its standard library in {folder}; set data.train to "
            "files of your own"
        )
    return files


def _sources(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = set(folders) - LEFT_OUT  # these are not even entered
        yield from (Path(parent, name) for name in names if name.endswith(".py"))
