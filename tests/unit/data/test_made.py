"""Pairs that the package writes itself."""

from pathlib import Path

import pytest

from dragoman.data.made import MadeConfig, write_made
from dragoman.errors import InputError


def test_what_is_written_is_what_was_asked_for_and_stays_so(tmp_path: Path) -> None:
    """As many lines on both sides as the config says; a second time the same bytes, no leavings."""
    config = MadeConfig(train=50, valid=7)
    paths = write_made(config, tmp_path / "texts")
    first = {name: path.read_bytes() for name, path in paths.items()}
    assert [data.count(b"\n") for data in first.values()] == [50, 50, 7, 7]
    again = write_made(config, tmp_path / "texts")
    assert {name: path.read_bytes() for name, path in again.items()} == first
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == sorted(first)


def test_another_seed_writes_other_pairs(tmp_path: Path) -> None:
    """The seed decides the pairs."""
    one = write_made(MadeConfig(train=50, valid=7), tmp_path / "one")
    two = write_made(MadeConfig(train=50, valid=7, seed=2), tmp_path / "two")
    assert one["train.src"].read_text() != two["train.src"].read_text()


def test_a_corpus_needs_pairs() -> None:
    """A count below 1 is refused by its key."""
    with pytest.raises(InputError, match="train is 0; it must be at least 1"):
        MadeConfig(train=0)
    with pytest.raises(InputError, match="valid is -1; it must be at least 1"):
        MadeConfig(valid=-1)
