"""Tokenise a corpus of pairs once and keep the ids on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.cache import RaggedWriter, kept
from dragoman.data.check import Finding
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.data.dataset import PairDataset, SpecialIds
from dragoman.data.encode import CHUNK, Encoder, id_type, special_ids
from dragoman.errors import InputError

__all__ = ["Encoder", "prepare"]

FORMAT = 1
"""Counts up when the ids of a tokenised corpus change their meaning."""


def prepare(
    corpus: CorpusConfig, src_encoder: Encoder, tgt_encoder: Encoder, cache: Path
) -> PairDataset:
    """The corpus as ids: read from the cache, or tokenised and put there.

    Raises InputError for everything that is wrong with the corpus, and DragomanError when the cache
    cannot be written.
    """
    special = _special_ids(src_encoder, tgt_encoder)
    keys = [corpus.src_key, corpus.tgt_key] if corpus.jsonl else []
    hashes = [src_encoder.content_hash, tgt_encoder.content_hash]
    content = [FORMAT, *hashes, bool(corpus.tsv), keys], corpus.paths
    types = {"src": id_type(src_encoder), "tgt": id_type(tgt_encoder)}
    write = partial(_write_pairs, corpus, (src_encoder, tgt_encoder))
    content_hash, arrays, found = kept(cache, content, types, write)
    return PairDataset(
        name=corpus.label,
        src=arrays["src"],
        tgt=arrays["tgt"],
        special=special,
        identical=Finding(**found["identical"]),
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


def _write_pairs(
    corpus: CorpusConfig, encoders: Sequence[Encoder], writers: Mapping[str, RaggedWriter]
) -> dict[str, Any]:
    """Tokenise all pairs; gives the lines whose two sides are one text."""
    identical = Finding()
    num_pairs = 0
    pairs = read_pairs(corpus)
    while chunk := list(islice(pairs, CHUNK)):
        for line, (src, tgt) in enumerate(chunk, start=num_pairs + 1):
            if src == tgt and src.strip():
                identical.add(line)
        for i, writer in enumerate((writers["src"], writers["tgt"])):
            texts = [pair[i] if pair[i].strip() else "" for pair in chunk]
            writer.append(encoders[i].encode_batch(texts))
        num_pairs += len(chunk)
    return {"identical": asdict(identical)}
