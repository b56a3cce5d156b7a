"""Tokenizing once: the cache, its invalidation, the report and memory use."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.processes import python

from dragoman.data.corpus import CorpusConfig
from dragoman.data.dataset import PairDataset
from dragoman.data.prepare import prepare
from dragoman.errors import InputError

MakeEncoder = Callable[..., Any]
Tokenised = Callable[[CorpusConfig], PairDataset]


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusConfig:
    """Return six pairs: two good, one identical, three with an empty side."""
    (tmp_path / "a.en").write_text("one\nsame\n\ntwo\n \n\n")
    (tmp_path / "a.de").write_text("eins\nsame\ndrei\n\u3000\t\n\nzweiundvierzig\n")
    return CorpusConfig(name="six", src=str(tmp_path / "a.en"), tgt=str(tmp_path / "a.de"))


def test_the_cache_is_never_stale(
    corpus: CorpusConfig, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """Another byte in a file, another tokenizer or other keys give another dataset.

    Any name and weight share the same memory-mapped arrays, without tokenizing again.
    """
    cache = tmp_path / "cache"
    first = prepare(corpus, make_encoder(), make_encoder(), cache)
    unused = make_encoder()
    second = prepare(replace(corpus, weight=0.5), unused, unused, cache)
    assert unused.calls == 0
    assert second.src.ids.tolist() == first.src.ids.tolist()
    assert isinstance(second.src.ids, np.memmap)
    assert (second.weight, second.identical) == (0.5, first.identical)
    hashes = {first.content_hash, second.content_hash}
    hashes.add(prepare(corpus, make_encoder("other"), make_encoder(), cache).content_hash)
    hashes.add(prepare(corpus, make_encoder(), make_encoder("other"), cache).content_hash)
    Path(str(corpus.src)).write_text("One\nsame\n\ntwo\n \n\n")
    hashes.add(prepare(corpus, make_encoder(), make_encoder(), cache).content_hash)
    assert len(hashes) == 4
    assert {folder.name for folder in cache.iterdir()} == hashes


def test_what_another_run_has_put_there_meanwhile_stays(
    corpus: CorpusConfig, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """When two runs tokenize the same corpus at once, the slower keeps the faster one's files."""
    cache, slow = tmp_path / "cache", make_encoder()
    encode_batch, folders = slow.encode_batch, list[tuple[Path, int]]()

    def overtaken(texts: list[str]) -> object:
        found = prepare(corpus, make_encoder(), make_encoder(), cache)
        folder = cache / found.content_hash
        folders.append((folder, folder.stat().st_ino))
        return encode_batch(texts)

    slow.encode_batch = overtaken
    dataset = prepare(corpus, slow, slow, cache)
    assert {(folder, folder.stat().st_ino) for folder in cache.iterdir()} == set(folders)
    assert dataset.src[0].tolist() == [ord(char) + 4 for char in "one"]


def test_ids_take_two_bytes_when_they_can(
    corpus: CorpusConfig, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """A vocabulary of 65,536 fits into 16 bits, a larger one does not."""
    small, large = make_encoder(vocab_size=1 << 16), make_encoder("x", vocab_size=(1 << 16) + 1)
    dataset = prepare(corpus, small, large, tmp_path / "cache")
    assert dataset.src.ids.dtype == np.uint16
    assert dataset.tgt.ids.dtype == np.uint32


def test_the_report_counts_and_shows_lines(corpus: CorpusConfig, tokenised: Tokenised) -> None:
    """Empty, over-long and identical pairs are reported with line numbers, and what is left."""
    dataset = tokenised(corpus)
    assert dataset.src.lengths.tolist() == [3, 4, 0, 3, 0, 0]
    assert dataset.tgt.lengths.tolist() == [4, 4, 4, 0, 0, 14]
    assert list(dataset.report(max_length=4)) == [
        "six: 2 of 6 pairs are used.",
        "six: an empty side, left out: 4 (lines 3, 4, 5, 6).",
        "six: more than 4 tokens on a side, left out: 1 (line 6).",
        "six: source and target are identical, kept: 1 (line 2).",
        "Warning: six: 17% of the pairs are left out for their length, mostly of the targets; "
        "raise batch.max_length, or tokenizer.vocab_size, with which texts have fewer tokens.",
    ]
    *_, told = dataset.report(max_length=4, is_trained=False)
    assert told.endswith("their length, mostly of the targets; raise batch.max_length.")
    assert not any("Warning" in sentence for sentence in dataset.report(max_length=99))
    assert dataset.usable(3).sum() == 0


@pytest.mark.parametrize(
    ("text", "used", "identical"),
    [
        ("x\tx\n" * 1200, "1,200 of 1,200", "1,200 (lines 1, 2, 3, 4, 5, ...)"),
        ("\t\n \t\n", "0 of 2", "0"),
    ],
)
def test_of_many_lines_the_first_are_shown(
    text: str, used: str, identical: str, tokenised: Tokenised, tmp_path: Path
) -> None:
    """The count is complete, the examples are few; a dataset may have no ids at all."""
    (tmp_path / "a.tsv").write_text(text)
    dataset = tokenised(CorpusConfig(tsv=str(tmp_path / "a.tsv")))
    assert next(dataset.report(10)).endswith(f": {used} pairs are used.")
    assert str(dataset.identical) == identical


def test_tokenizers_must_agree_on_special_ids(
    corpus: CorpusConfig, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """Source and target must share the padding and end ids."""
    other = make_encoder()
    other.eos_id = 7
    with pytest.raises(InputError, match="special tokens differently"):
        prepare(corpus, make_encoder(), other, tmp_path / "cache")


MEASURE = """
import resource, sys, tracemalloc
from pathlib import Path
from dragoman.data.corpus import CorpusConfig
from dragoman.data.dataset import PairDataset
from dragoman.data.prepare import prepare

class Encoder:
    vocab_size, pad_id, bos_id, eos_id, content_hash = 1000, 0, 2, 3, "x"
    def encode_batch(self, texts):
        return [[7] * 40 for text in texts]

tracemalloc.start()
corpus = CorpusConfig(tsv=sys.argv[1])
dataset = prepare(corpus, Encoder(), Encoder(), Path(sys.argv[2]))
print(len(dataset), tracemalloc.get_traced_memory()[1])
"""


def test_memory_grows_by_offsets_only(tmp_path: Path) -> None:
    """Three times the pairs take under 60 more bytes per pair; the ids alone would take 160.

    At 5 million pairs that is 0.3 GB.
    """
    peaks = {}
    for count in (10_000, 30_000):
        path = tmp_path / f"{count}.tsv"
        path.write_text("a sentence of some words\tein Satz aus einigen Wörtern\n" * count)
        done = python(MEASURE, path, tmp_path / "cache")
        pairs, peaks[count] = map(int, done.stdout.split())
        assert pairs == count
    assert (peaks[30_000] - peaks[10_000]) / 20_000 < 60
