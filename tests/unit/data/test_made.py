"""Generated pairs: the files, and the separation of training and validation."""

from pathlib import Path

import pytest

from dragoman.data.made import EXAMPLE, MadeConfig, demo_corpus, write_made
from dragoman.errors import InputError


def test_what_is_written_is_what_was_asked_for_and_stays_so(tmp_path: Path) -> None:
    """Both sides have the configured numbers of lines, and a second call writes the same bytes."""
    config = MadeConfig(train=50, valid=7)
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
    MadeConfig(name="docstrings", train=10**6, seed=2).check()
    MadeConfig().check()
