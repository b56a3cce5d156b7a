"""Generated pairs: the files, their separation, and the functions of a made-up library."""

import sysconfig
from pathlib import Path
from zlib import crc32

import pytest

from dragoman.data.made import (
    EXAMPLE,
    MadeConfig,
    demo_corpus,
    docstrings_corpus,
    functions_of,
    write_made,
)
from dragoman.errors import InputError


def test_what_is_written_is_what_was_asked_for_and_stays_so(tmp_path: Path) -> None:
    """Both sides have the configured numbers of lines, and a second call writes the same bytes."""
    config = MadeConfig(train=50, valid=7)
    for good in (config, MadeConfig(), MadeConfig(name="docstrings", train=10**6, seed=2)):
        good.check()
    paths = write_made(config, tmp_path / "texts")
    first = {name: path.read_bytes() for name, path in paths.items()}
    assert [data.count(b"\n") for data in first.values()] == [50, 50, 7, 7]
    again = write_made(config, tmp_path / "texts")
    assert {name: path.read_bytes() for name, path in again.items()} == first
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == sorted(first)


def test_the_demo_the_other_way_withholds_what_the_demo_does(tmp_path: Path) -> None:
    """The demo's pairs with Chinese first, without the test pairs and the example."""
    paths = write_made(MadeConfig(name="demo-zh-en", train=30_000, valid=300), tmp_path)
    corpus = demo_corpus()
    for part, pairs in (("train", corpus.train), ("valid", corpus.valid)):
        assert paths[f"{part}.src"].read_text("utf-8").splitlines() == [pair.tgt for pair in pairs]
        assert paths[f"{part}.tgt"].read_text("utf-8").splitlines() == [pair.src for pair in pairs]
    assert EXAMPLE.tgt not in paths["train.src"].read_text("utf-8")


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (MadeConfig(seed=2), r'data\.made\.seed = 2 applies to "docstrings" only'),
        (MadeConfig(train=40_001), r'train = 40001, but "numbers" has 40000 such pairs'),
        (MadeConfig(name="demo-zh-en"), r'train = 40000, but "demo-zh-en" has 30000 such pairs'),
        (MadeConfig(name="stories", valid=1001), r'valid = 1001, but "stories" has 1000 such'),
    ],
)
def test_other_pairs_than_the_shipped_ones_are_refused(config: MadeConfig, sentence: str) -> None:
    """More pairs or another seed are refused by key; docstrings have no limit."""
    with pytest.raises(InputError, match=sentence):
        config.check()


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
