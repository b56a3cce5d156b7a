"""Functions of Python's own library without their docstrings, and what these begin with."""

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from dragoman.data.documents import standard_library

_WITHHELD_ONE_IN = 10
_FEWEST_WORDS = 3
_MOST_CHARACTERS = 300


class Function(NamedTuple):
    """A function or method, and what its docstring says that it does."""

    module: str
    """The module or package of the library, by the first part of its name."""
    code: str
    """The definition on one line, without comments and docstrings; its first 300 characters."""
    summary: str
    """The first line of its docstring."""

    @property
    def withheld(self) -> bool:
        """Whether its module is kept for validation: one in ten, chosen by its checksum."""
        return crc32(self.module.encode()) % _WITHHELD_ONE_IN == 0


def library_functions() -> Iterator[Function]:
    """Every function of the library whose docstring begins with a line of three words or more.

    The code is what `ast.unparse` makes of it, so the text depends on the version of Python. Raises
    InputError for a Python that came without its sources.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    for path in standard_library():
        module = path.relative_to(folder).parts[0].removesuffix(".py")
        for code, summary in functions_of(path.read_bytes()):
            yield Function(module, code, summary)


def functions_of(source: bytes | str) -> Iterator[tuple[str, str]]:
    """Code and summary of the functions of one file that have a docstring of three words or more.

    Functions within functions have a summary of their own, and none in the code around them.
    """
    with warnings.catch_warnings(action="ignore"):  # of strings with escapes of older Pythons
        tree = ast.parse(source)
    documented = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                node.body = node.body[1:] or [ast.Pass()]
                documented.append((node, docstring.splitlines()[0].strip()))
    for node, summary in documented:
        if not isinstance(node, ast.ClassDef) and len(summary.split()) >= _FEWEST_WORDS:
            yield " ".join(ast.unparse(node).split())[:_MOST_CHARACTERS].rstrip(), summary
