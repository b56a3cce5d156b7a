"""What the tests of data and of tasks share: a tokenizer of its own, made datasets, real data."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.disk import Disk, listen

from dragoman.data.corpus import CorpusConfig, Finding
from dragoman.data.dataset import PairDataset, Ragged, SpecialIds
from dragoman.data.prepare import prepare


class Characters:
    """A tokenizer by protocol: the id of a character is its code point plus 4."""

    pad_id, bos_id, eos_id = 0, 2, 3

    def __init__(self, content_hash: str, vocab_size: int) -> None:
        self.content_hash = content_hash
        self.vocab_size = vocab_size
        self.calls = 0

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """One id for each character."""
        self.calls += 1
        return [[ord(char) + 4 for char in text] for text in texts]

    def encode_words(
        self, texts: Sequence[str], words: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[list[int], list[int | None]]]:
        """One id for each character of a word, none for what is between words."""
        found = []
        for text, places in zip(texts, words, strict=True):
            ids = [ord(char) + 4 for start, end in places for char in text[start:end]]
            sizes = [0, *(end - start for start, end in places)]
            starts: list[int | None] = [*np.cumsum(sizes[:-1]).tolist()]
            found.append((ids, starts))
        return found


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """What is synced and renamed in the test."""
    return listen(monkeypatch)


@pytest.fixture
def make_encoder() -> Callable[..., Characters]:
    """Makes tokenizers that count their calls."""

    def make(content_hash: str = "characters", vocab_size: int = 0x110004) -> Characters:
        return Characters(content_hash, vocab_size)

    return make


@pytest.fixture
def tokenised(
    make_encoder: Callable[..., Any], tmp_path: Path
) -> Callable[[CorpusConfig], PairDataset]:
    """Tokenise a corpus, or take it from the cache of the test."""
    return lambda corpus: prepare(corpus, make_encoder(), make_encoder(), tmp_path / "cache")


@pytest.fixture
def make_dataset() -> Callable[..., PairDataset]:
    """Makes pairs of random lengths; every id of pair i is 4 + i % 1000, to know it again."""

    def make(count: int = 500, name: str = "made", weight: float = 1.0) -> PairDataset:
        rng = np.random.default_rng(count)
        sides = []
        for _ in range(2):
            offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 31, count))])
            ids = np.repeat(np.arange(count) % 1000 + 4, np.diff(offsets))
            sides.append(Ragged(ids.astype(np.uint16), offsets))
        return PairDataset(
            name=name,
            src=sides[0],
            tgt=sides[1],
            special=SpecialIds(0, 2, 3),
            identical=Finding(),
            content_hash=f"{name} {count}",
            weight=weight,
        )

    return make


@pytest.fixture
def data_folder() -> Path:
    """Where the public corpora lie, or a skip."""
    root = Path(os.environ.get("DRAGOMAN_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not root.is_dir():
        pytest.skip(f"there are no corpora at {root}; set DRAGOMAN_DATA")
    return root
