"""Functions and the first lines of their docstrings, from a made-up library."""

import sysconfig
from pathlib import Path
from zlib import crc32

import pytest

from dragoman.data.made import docstrings_corpus, functions_of

_SOURCE = '''
class Shape:
    """The class says something too."""

    def area(self):  # a comment
        """Return the area of it.

        More of it.
        """
        def side(x):
            """Return the length of a side."""
            return x
        return side(2) ** 2

    async def wait(self):
        """Wait until somebody comes."""

    def short(self):
        """Too short."""

def silent():
    return "Return nothing of it."
'''


def test_functions_of_a_source() -> None:
    """Docstrings and comments are removed from their code, however they are nested."""
    assert {pair.src: pair.tgt for pair in functions_of(_SOURCE)} == {
        "def area(self): def side(x): return x return side(2) ** 2": "Return the area of it.",
        "def side(x): return x": "Return the length of a side.",
        "async def wait(self): pass": "Wait until somebody comes.",
    }


def test_a_long_function_is_cut() -> None:
    """The code is cut after 300 characters."""
    ((code, _),) = functions_of(f'def f():\n    """Say it often."""\n    return {"x + " * 300}x')
    assert len(code) <= 300
    assert code.startswith("def f(): return x + x + ")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write sixty modules and a package of as many; each shares a function with the next one."""
    (tmp_path / "package").mkdir()
    for n in range(60):
        source = "".join(
            f'def function{m}(x):\n    """Return {m} of it."""\n    return {m} * x\n'
            for m in (n, n + 1)
        )
        (tmp_path / f"module{n}.py").write_text(source, encoding="utf-8")
        (tmp_path / "package" / f"part{n}.py").write_text(source.replace("x", "y"), "utf-8")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})


@pytest.mark.usefixtures("library")
def test_the_library_is_split_by_module() -> None:
    """A module or a package is on one side as a whole; shared functions are only in training."""
    train, valid = (
        {pair.src.split("return ")[1] for pair in part}
        for part in docstrings_corpus(1000, 1000, seed=1)
    )
    withheld = [n for n in range(60) if crc32(f"module{n}".encode()) % 10 == 0]
    known = {f"{m} * x" for n in range(60) if n not in withheld for m in (n, n + 1)}
    held = {f"{m} * x" for n in withheld for m in (n, n + 1)}
    assert held & known
    assert valid == held - known != set()
    assert train == known | {f"{m} * y" for m in range(61)}


@pytest.mark.usefixtures("library")
def test_a_seed_decides_the_order() -> None:
    """The numbers limit how many there are."""
    train, valid = docstrings_corpus(1000, 1000, seed=1)
    assert docstrings_corpus(9, 2, seed=1) == (train[:9], valid[:2])
    other, _ = docstrings_corpus(1000, 1000, seed=2)
    assert other != train
    assert sorted(other) == sorted(train)
