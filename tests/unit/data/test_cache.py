"""The cache on disk: killed writers, concurrent writers and files that change."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.disk import Disk
from tests.unit.data.killing import moments
from tests.unit.train.made import file_size_limit

from dragoman.data.corpus import CorpusConfig
from dragoman.data.dataset import PairDataset
from dragoman.data.prepare import RaggedWriter, kept, prepare
from dragoman.errors import DragomanError, InputError
from dragoman.files.writing import locked

MakeEncoder = Callable[..., Any]
Tokenised = Callable[[CorpusConfig], PairDataset]


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusConfig:
    """Return a corpus of a hundred pairs in one file."""
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"one {n}\teins {n}\n" for n in range(100)))
    return CorpusConfig(tsv=str(path))


def test_what_a_killed_run_has_left_goes(
    corpus: CorpusConfig, tokenised: Tokenised, tmp_path: Path
) -> None:
    """The next writer removes them, except for folders that a running process is writing."""
    dead, alive = (tmp_path / "cache" / f"building-{name}" for name in ("dead", "alive"))
    for folder in (dead, alive):
        folder.mkdir(parents=True)
        (folder / "src.ids").write_bytes(b"12")
    with locked(alive, wait=False):
        dataset = tokenised(corpus)
    found = {path.name for path in (tmp_path / "cache").iterdir()}
    assert found == {dataset.content_hash, alive.name}
    assert (alive / "src.ids").read_bytes() == b"12"


def test_the_arrays_are_on_the_disk_before_they_have_their_name(
    corpus: CorpusConfig, tokenised: Tokenised, disk: Disk
) -> None:
    """The files, the folder and then the cache are synced to disk around the rename."""
    dataset = tokenised(corpus)
    disk.assert_renamed(dataset.content_hash)


BREAKS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "ids that end early": ("a.ids", lambda content: content[:-1]),
    "offsets that end early": ("a.offsets", lambda content: content[:-8]),
    "half an offset": ("a.offsets", lambda content: content[:-3]),
    "no offsets": ("a.offsets", lambda _: b""),
    "an offset too many": ("a.offsets", lambda content: content + content[-8:]),
    "nothing": ("meta.json", lambda _: b""),
    "no JSON": ("meta.json", lambda content: content[:-1]),
    "a list": ("meta.json", lambda _: b"[]"),
    "no arrays": ("meta.json", lambda _: b'{"arrays": {}, "found": {}}'),
    "nothing found": ("meta.json", lambda content: content.replace(b"found", b"lost")),
}


@pytest.mark.parametrize("how", BREAKS)
def test_what_is_broken_is_made_again(tmp_path: Path, how: str) -> None:
    """Files that were damaged in a crash or written by another version are rebuilt."""
    texts = tmp_path / "texts"
    texts.write_text("one two\n\n")
    writings = []

    def write(writers: Mapping[str, RaggedWriter]) -> dict[str, Any]:
        writings.append(list(writers))
        writers["a"].append([[1, 2], []])
        return {"words": 2}

    def read() -> tuple[str, object, object, dict[str, Any]]:
        name, arrays, found = kept(tmp_path / "cache", (["v"], [texts]), {"a": "uint16"}, write)
        return name, arrays["a"].ids.tolist(), arrays["a"].offsets.tolist(), found

    first = read()
    assert first[1:] == ([1, 2], [0, 2, 2], {"words": 2})
    assert (read(), len(writings)) == (first, 1)
    name, spoil = BREAKS[how]
    file = tmp_path / "cache" / first[0] / name
    file.write_bytes(spoil(file.read_bytes()))
    assert (read(), len(writings)) == (first, 2)
    assert (read(), len(writings)) == (first, 2)


def test_a_file_that_changes_meanwhile_is_not_kept(
    corpus: CorpusConfig, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    """The ids would be stored under the hash of the old text; size and time may be unchanged."""
    path = corpus.paths[0]
    encoder, before = make_encoder(), path.stat()
    encode_batch = encoder.encode_batch

    def change(texts: Sequence[str]) -> object:
        path.write_text(path.read_text().replace("one", "two"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return encode_batch(texts)

    encoder.encode_batch = change
    with pytest.raises(InputError, match=r"a\.tsv changed while it was read"):
        prepare(corpus, encoder, encoder, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("size", [0, 300, 600, 900])
def test_a_full_disk_is_told(
    corpus: CorpusConfig, tokenised: Tokenised, tmp_path: Path, size: int
) -> None:
    """Even an error that NumPy ignores when closing a small file is reported; nothing is left."""
    told = r"Cannot write the cache .*: (File too large|.* the disk is full); name a.* data\.cache"
    with file_size_limit(size), pytest.raises(DragomanError, match=told):
        tokenised(corpus)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_pipe_is_refused(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    """A pipe can be read only once; a second read would block forever."""
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is a pipe"):
        prepare(CorpusConfig(tsv=str(pipe)), make_encoder(), make_encoder(), tmp_path / "cache")


WRITES = """
import shutil, sys
from pathlib import Path
from dragoman.data.corpus import CorpusConfig
from dragoman.data.dataset import PairDataset
from dragoman.data.prepare import prepare

class Encoder:
    vocab_size, pad_id, bos_id, eos_id, content_hash = 1000, 0, 2, 3, "x"
    def encode_batch(self, texts):
        return [[len(text)] * len(text) for text in texts]

cache = Path(sys.argv[2])
def before():
    shutil.rmtree(cache, ignore_errors=True)
def write():
    return prepare(CorpusConfig(tsv=sys.argv[1]), Encoder(), Encoder(), cache)
def check():
    dataset = write()
    assert (len(dataset), dataset.tgt[7].tolist()) == (100, [6] * 6)
    assert [path.name for path in cache.iterdir()] == [dataset.content_hash]
"""


def test_killed_at_every_change_of_a_file(corpus: CorpusConfig, tmp_path: Path) -> None:
    """The next run finds the whole entry or none, writes all of it, and leaves no other files."""
    assert moments(WRITES, corpus.tsv, tmp_path / "cache") > 6
