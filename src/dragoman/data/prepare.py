"""Tokenise a corpus once and keep the ids on disk.

The result is a folder in the cache:

    meta.json           type and number of sequences of each array, and other findings
    NAME.ids            the ids of all sequences one after another, 2 or 4 bytes each
    NAME.offsets        sequence i is ids[offsets[i]:offsets[i + 1]], 8 bytes each

Its name is a hash of everything that determines its content, so it is never stale. It appears by a
rename, so it is never incomplete. The ids are memory-mapped: memory grows with the number of
sequences by an offset of 8 bytes each, not by the ids.
"""

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from dragoman.data.corpus import CorpusConfig, Finding, read_pairs
from dragoman.data.dataset import PairDataset, Ragged, SpecialIds
from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import open_bytes, reject_pipe
from dragoman.files.writing import locked, rename_durably

CHUNK = 8192
"""Number of texts that are tokenised at a time."""


class TextEncoder(Protocol):
    """The interface of a tokenizer that this package needs."""

    vocab_size: int
    pad_id: int
    bos_id: int
    eos_id: int

    @property
    def content_hash(self) -> str:
        """A hash of everything that determines how a text is encoded."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without bos and eos."""

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts that continue other text."""


def special_ids(encoder: TextEncoder) -> SpecialIds:
    """Return the special tokens that complete batches."""
    return SpecialIds(encoder.pad_id, encoder.bos_id, encoder.eos_id)


def id_type(encoder: TextEncoder) -> str:
    """Return the smallest NumPy type for every id: 2 or 4 bytes, little-endian."""
    return "<u2" if encoder.vocab_size <= 1 << 16 else "<u4"


def encode_all(texts: Iterable[str], encoder: TextEncoder) -> Ragged:
    """Return the ids of all texts, in memory."""
    texts, dtype = iter(texts), id_type(encoder)
    parts = [Ragged.of([], dtype)]
    while chunk := list(islice(texts, CHUNK)):
        parts.append(Ragged.of(encoder.encode_batch(chunk), dtype))
    return Ragged.concatenate(parts)


BUILDING = "building-"
"""Prefix of the names of incomplete folders."""

Found = dict[str, Any]
"""Findings of a writer, ready for JSON."""


class RaggedWriter:
    """Writes sequences of ids to one array."""

    def __init__(self, file: BinaryIO, dtype: str) -> None:
        self._file, self._dtype = file, dtype
        self._lengths = [np.zeros(1, np.int64)]

    def append(self, rows: Sequence[Sequence[int]]) -> None:
        """Write complete sequences."""
        if rows:
            np.fromiter(chain.from_iterable(rows), self._dtype).tofile(self._file)
            self._lengths.append(np.fromiter(map(len, rows), np.int64, len(rows)))

    def extend(self, ids: Sequence[int]) -> None:
        """Append to the last sequence."""
        np.fromiter(ids, self._dtype).tofile(self._file)
        self._lengths[-1][-1] += len(ids)

    def finish(self, offsets: Path) -> dict[str, Any]:
        """Write the offsets; return the metadata for loading."""
        lengths = np.concatenate(self._lengths)
        np.cumsum(lengths).tofile(offsets)
        return {"type": self._dtype, "count": len(lengths) - 1}


def kept(
    cache: Path,
    content: tuple[Sequence[object], Sequence[Path]],
    types: Mapping[str, str],
    write: Callable[[Mapping[str, RaggedWriter]], Found],
) -> tuple[str, dict[str, Ragged], Found]:
    """Return the arrays that result from some values and files; write them if they do not exist.

    `content` are values that JSON can represent, and the files; `types` are the id types of the
    arrays, by name; `write` fills one writer per array and returns its findings. Returns the name
    of the folder (a hash of `content`), the arrays by name, and the findings. Raises DragomanError
    if the cache cannot be written, InputError for a file that is a pipe or changes while it is
    read, and anything that `write` raises.
    """
    name = _hash(*content)
    folder = cache / name
    loaded = _load(folder, types)
    if loaded is None:
        try:
            with _building(cache) as building:
                _write(building, types, write)
                if _hash(*content) != name:
                    files = " or ".join(map(str, content[1]))
                    raise InputError(f"{files} changed while it was read; run the command again.")
                if _load(building, types) is None:
                    raise OSError  # NumPy ignores errors when it closes a file
                with locked(cache, wait=True):
                    if _load(folder, types) is None:  # unless another run was faster
                        shutil.rmtree(folder, ignore_errors=True)  # left by a crash
                        rename_durably(building, folder)
        except OSError as error:
            reason = error.strerror or "not all of it was taken, so the disk is full"  # NumPy's
            raise DragomanError(
                f"Cannot write the cache of tokenised corpora {cache}: {reason}; name a folder "
                "with room by data.cache, or by the environment variable XDG_CACHE_HOME."
            ) from error
        loaded = _load(folder, types)
        assert loaded is not None  # noqa: S101
    return name, *loaded


def _hash(parts: Sequence[object], paths: Sequence[Path]) -> str:
    """Return a hash of values that JSON can represent and of the files' bytes on disk."""
    digest = hashlib.sha256(json.dumps(parts).encode())
    for path in paths:
        reject_pipe(path)
        open_bytes(path).close()  # for its errors
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:32]


def _write(
    folder: Path, types: Mapping[str, str], write: Callable[[Mapping[str, RaggedWriter]], Found]
) -> None:
    with ExitStack() as stack:
        writers = {
            name: RaggedWriter(stack.enter_context((folder / f"{name}.ids").open("wb")), dtype)
            for name, dtype in types.items()
        }
        found = write(writers)
    arrays = {name: each.finish(folder / f"{name}.offsets") for name, each in writers.items()}
    (folder / "meta.json").write_text(json.dumps({"arrays": arrays, "found": found}))


@contextmanager
def _building(cache: Path) -> Iterator[Path]:
    """Yield a locked folder in the cache to write to, removed afterwards unless renamed.

    Folders that nobody has locked were left by killed processes, and are removed first.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with locked(cache, wait=True):
            for left in cache.glob(f"{BUILDING}*"):
                with suppress(OSError), locked(left, wait=False) as is_ours:
                    if is_ours:
                        shutil.rmtree(left)
            building = Path(tempfile.mkdtemp(dir=cache, prefix=BUILDING))
            stack.callback(shutil.rmtree, building, ignore_errors=True)
            stack.enter_context(locked(building, wait=False))
        yield building


def _load(folder: Path, names: Collection[str]) -> tuple[dict[str, Ragged], Found] | None:
    """Map the arrays of a folder into memory, and read the findings.

    Returns None unless all arrays exist in files of the expected sizes: in a power failure, a
    rename can reach the disk before the content does.
    """
    arrays = {}
    try:
        meta = json.loads((folder / "meta.json").read_text())
        for name in names:
            path, dtype = folder / f"{name}.ids", np.dtype(meta["arrays"][name]["type"])
            offsets = np.fromfile(folder / f"{name}.offsets", np.int64)
            size = int(offsets[-1]) * dtype.itemsize
            if len(offsets) != meta["arrays"][name]["count"] + 1 or path.stat().st_size != size:
                return None
            ids = np.memmap(path, dtype, "r") if size else np.empty(0, dtype)
            arrays[name] = Ragged(ids, offsets)
        return arrays, meta["found"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


FORMAT = 1
"""Incremented when the ids of a tokenised corpus change their meaning."""


def prepare(
    corpus: CorpusConfig, src_encoder: TextEncoder, tgt_encoder: TextEncoder, cache: Path
) -> PairDataset:
    """Return the corpus as ids, read from the cache or tokenised and cached.

    Raises InputError for anything wrong with the corpus, and DragomanError if the cache cannot be
    written.
    """
    special, tgt_special = special_ids(src_encoder), special_ids(tgt_encoder)
    if special != tgt_special:
        raise InputError(
            "The tokenizers of source and target number their special tokens differently "
            f"({special}, {tgt_special}); train both with dragoman or use one for both."
        )
    where = corpus.languages if corpus.tm else () if corpus.src else corpus.keys
    hashes = [src_encoder.content_hash, tgt_encoder.content_hash]
    content = [FORMAT, *hashes, bool(corpus.tsv), where], corpus.paths
    types = {"src": id_type(src_encoder), "tgt": id_type(tgt_encoder)}
    write = partial(_write_pairs, corpus, (src_encoder, tgt_encoder))
    content_hash, arrays, found = kept(cache, content, types, write)
    return PairDataset(
        name=corpus.label,
        src=arrays["src"],
        tgt=arrays["tgt"],
        special=special,
        identical=Finding(**found["identical"]),
        languages=corpus.languages,
        left=found.get("left", {}),
        content_hash=content_hash,
        weight=corpus.weight,
    )


def _write_pairs(
    corpus: CorpusConfig, encoders: Sequence[TextEncoder], writers: Mapping[str, RaggedWriter]
) -> dict[str, Any]:
    """Tokenise all pairs; return the lines with two equal sides, and what was left out."""
    identical = Finding()
    num_pairs = 0
    left = Counter[str]()
    pairs = read_pairs(corpus, left=left)
    while chunk := list(islice(pairs, CHUNK)):
        for line, (src, tgt) in enumerate(chunk, start=num_pairs + 1):
            if src == tgt and src.strip():
                identical.add(line)
        for i, writer in enumerate((writers["src"], writers["tgt"])):
            texts = [pair[i] if pair[i].strip() else "" for pair in chunk]
            writer.append(encoders[i].encode_batch(texts))
        num_pairs += len(chunk)
    return {"identical": asdict(identical), "left": left}
