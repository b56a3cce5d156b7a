"""Tokenise a corpus once and keep the ids on disk.

A tokenised corpus is a folder in the cache:

    meta.json           counts, and what was found in the text
    src.ids, tgt.ids    the ids of all sentences one after another, 2 or 4 bytes each
    src.offsets.npy     sentence i is ids[offsets[i]:offsets[i + 1]]
    tgt.offsets.npy

Its name is a hash of all that decides its content (the bytes of the files, the tokenizers, the
layout, the format), so that it is never stale. It appears by a rename, so that it is never half
written. The ids are memory-mapped: what grows in memory with the number of pairs is two offsets of
8 bytes, not the text and not the ids.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dragoman.data.check import Finding
from dragoman.data.corpus import CorpusConfig, Side, read_pairs
from dragoman.data.dataset import PairDataset, Ragged, SpecialIds
from dragoman.data.encode import CHUNK, Encoder, id_type, special_ids
from dragoman.data.files import open_bytes
from dragoman.errors import DragomanError, InputError

__all__ = ["Encoder", "prepare"]

FORMAT = 1
"""Counts up when the files of a tokenised corpus change their meaning."""

SIDES: tuple[Side, Side] = ("src", "tgt")


def prepare(
    corpus: CorpusConfig, src_encoder: Encoder, tgt_encoder: Encoder, cache: Path
) -> PairDataset:
    """The corpus as ids: read from the cache, or tokenised and put there.

    Raises InputError for everything that is wrong with the corpus, and DragomanError when the cache
    cannot be written.
    """
    special = _special_ids(src_encoder, tgt_encoder)
    content_hash = _content_hash(corpus, src_encoder, tgt_encoder)
    folder = cache / content_hash
    if not _is_complete(folder):
        try:
            _build(corpus, (src_encoder, tgt_encoder), folder)
        except OSError as error:
            raise DragomanError(
                f"Cannot write the cache of tokenised corpora {cache}: {error.strerror or error}."
            ) from error
    meta = json.loads((folder / "meta.json").read_text())
    return PairDataset(
        name=corpus.label,
        src=_open(folder, "src", meta),
        tgt=_open(folder, "tgt", meta),
        special=special,
        identical=Finding(**meta["identical"]),
        content_hash=content_hash,
        weight=corpus.weight,
    )


def _special_ids(src: Encoder, tgt: Encoder) -> SpecialIds:
    ours, theirs = special_ids(src), special_ids(tgt)
    if ours != theirs:
        raise InputError(
            f"The tokenizers of source and target number their special tokens differently ({ours}, "
            f"{theirs}); train both with dragoman or use one for both."
        )
    return ours


def _content_hash(corpus: CorpusConfig, src: Encoder, tgt: Encoder) -> str:
    """A hash of the files' bytes as they are on disk, the tokenizers, the layout and the format."""
    keys = [corpus.src_key, corpus.tgt_key] if corpus.jsonl else []
    parts = [FORMAT, src.content_hash, tgt.content_hash, bool(corpus.tsv), keys]
    digest = hashlib.sha256(json.dumps(parts).encode())
    for path in corpus.paths:
        open_bytes(path).close()  # for its errors
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:32]


def _build(corpus: CorpusConfig, encoders: Sequence[Encoder], folder: Path) -> None:
    """Tokenise into a temporary folder beside ``folder``, then rename it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=folder.parent, prefix="building-"))
    try:
        meta = _write_pairs(corpus, encoders, building)
        (building / "meta.json").write_text(json.dumps(meta))
        if folder.exists():
            shutil.rmtree(folder)  # what a crash has left
        try:
            building.rename(folder)
        except OSError:
            if not _is_complete(folder):  # else another run was faster with the same
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _write_pairs(corpus: CorpusConfig, encoders: Sequence[Encoder], folder: Path) -> dict[str, Any]:
    """Write the ids and offsets of all pairs; gives the content of ``meta.json``."""
    types = [id_type(encoder) for encoder in encoders]
    lengths: tuple[list[npt.NDArray[np.int32]], ...] = ([], [])
    identical = Finding()
    num_pairs = 0
    pairs = read_pairs(corpus)
    with (folder / "src.ids").open("wb") as src_file, (folder / "tgt.ids").open("wb") as tgt_file:
        while chunk := list(islice(pairs, CHUNK)):
            for line, (src, tgt) in enumerate(chunk, start=num_pairs + 1):
                if src == tgt and src.strip():
                    identical.add(line)
            for i, file in enumerate((src_file, tgt_file)):
                texts = [pair[i] if pair[i].strip() else "" for pair in chunk]
                rows = encoders[i].encode_batch(texts)
                lengths[i].append(_append(rows, file, types[i]))
            num_pairs += len(chunk)
    for side, parts in zip(SIDES, lengths, strict=True):
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(parts), dtype=np.int64)])
        np.save(folder / f"{side}.offsets.npy", offsets)
    return {
        "num_pairs": num_pairs,
        "types": dict(zip(SIDES, types, strict=True)),
        "identical": asdict(identical),
    }


def _append(rows: Sequence[Sequence[int]], file: BinaryIO, dtype: str) -> npt.NDArray[np.int32]:
    """Write the ids of ``rows`` to the file; gives their lengths."""
    np.fromiter(chain.from_iterable(rows), dtype=dtype).tofile(file)
    return np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))


def _open(folder: Path, side: Side, meta: dict[str, Any]) -> Ragged:
    """Map the ids of one side into memory."""
    offsets = np.load(folder / f"{side}.offsets.npy")
    dtype = np.dtype(meta["types"][side])
    ids = np.memmap(folder / f"{side}.ids", dtype, "r") if offsets[-1] else np.empty(0, dtype)
    return Ragged(ids, offsets)


def _is_complete(folder: Path) -> bool:
    """Whether the folder holds a dataset whose files have the sizes they should have.

    A rename can reach the disk before the content does, when the power fails.
    """
    try:
        meta = json.loads((folder / "meta.json").read_text())
        for side in SIDES:
            offsets = np.load(folder / f"{side}.offsets.npy", mmap_mode="r")
            size = int(offsets[-1]) * np.dtype(meta["types"][side]).itemsize
            if len(offsets) != meta["num_pairs"] + 1:
                return False
            if (folder / f"{side}.ids").stat().st_size != size:
                return False
    except (OSError, EOFError, ValueError, KeyError):
        return False
    return True
