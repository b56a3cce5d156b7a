"""Functions and the first lines of their docstrings, as they are in a library and nowhere else."""

import sysconfig
from pathlib import Path

import pytest

from dragoman.data.docstrings import functions_of, library_functions
from dragoman.data.made import docstrings_corpus

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
    """Their code has neither docstrings nor comments, whatever is nested in what."""
    assert dict(functions_of(_SOURCE)) == {
        "def area(self): def side(x): return x return side(2) ** 2": "Return the area of it.",
        "def side(x): return x": "Return the length of a side.",
        "async def wait(self): pass": "Wait until somebody comes.",
    }


def test_a_long_function_is_cut() -> None:
    """At 300 characters."""
    ((code, _),) = functions_of(f'def f():\n    """Say it often."""\n    return {"x + " * 300}x')
    assert len(code) <= 300
    assert code.startswith("def f(): return x + x + ")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of sixty modules and a package, all with one function in common."""
    common = 'def twice(x):\n    """Return two of it."""\n    return 2 * x\n'
    (tmp_path / "package").mkdir()
    for name in [f"module{n}" for n in range(60)] + [f"package/part{n}" for n in range(60)]:
        of_its_own = f'def of_{name.replace("/", "_")}():\n    """Say that it is {name}."""\n'
        (tmp_path / f"{name}.py").write_text(common + of_its_own, encoding="utf-8")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})


@pytest.mark.usefixtures("library")
def test_the_library_is_split_by_module() -> None:
    """Each module is on one side, a package as a whole; what both have is for training alone."""
    functions = list(library_functions())
    sides = {f.module: f.withheld for f in functions}
    assert len(sides) == 61
    assert 1 < sum(sides.values()) < 20
    train, valid = docstrings_corpus(1000, 1000, seed=1)
    own = [f for f in functions if not f.code.startswith("def twice")]
    assert {pair.src for pair in valid} == {f.code for f in own if f.withheld}
    assert sorted(pair.src for pair in train) == sorted(
        ["def twice(x): return 2 * x", *(f.code for f in own if not f.withheld)]
    )


@pytest.mark.usefixtures("library")
def test_a_seed_decides_the_order() -> None:
    """And a number, how many there are at most."""
    train, valid = docstrings_corpus(1000, 1000, seed=1)
    assert docstrings_corpus(9, 2, seed=1) == (train[:9], valid[:2])
    other, _ = docstrings_corpus(1000, 1000, seed=2)
    assert other != train
    assert sorted(other) == sorted(train)


@pytest.mark.slow
def test_python_has_thousands_of_documented_functions() -> None:
    """Enough to learn from and to validate on, in any version of Python that we run on."""
    train, valid = docstrings_corpus(100_000, 100_000, seed=1)
    assert len(train) > 3000
    assert len(valid) > 100
