"""A tokenizer as this room knows it, and texts through it into compact arrays."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Protocol

import numpy as np

from dragoman.data.dataset import Ragged, SpecialIds

__all__ = ["CHUNK", "Encoder", "encode_all", "id_type", "special_ids"]

CHUNK = 8192
"""Texts that are tokenised at a time."""


class Encoder(Protocol):
    """What this room asks of a tokenizer."""

    vocab_size: int
    pad_id: int
    bos_id: int
    eos_id: int

    @property
    def content_hash(self) -> str:
        """A hash of everything that decides how a text is encoded."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without bos and eos."""


def special_ids(encoder: Encoder) -> SpecialIds:
    """The special tokens that batches are completed with."""
    return SpecialIds(encoder.pad_id, encoder.bos_id, encoder.eos_id)


def id_type(encoder: Encoder) -> str:
    """The smallest type that holds every id, in NumPy's words: 2 or 4 bytes, little-endian."""
    return "<u2" if encoder.vocab_size <= 1 << 16 else "<u4"


def encode_all(texts: Iterable[str], encoder: Encoder) -> Ragged:
    """The ids of all texts, in memory."""
    texts, dtype = iter(texts), id_type(encoder)
    ids, lengths = [np.empty(0, dtype)], [np.zeros(1, np.int64)]
    while chunk := list(islice(texts, CHUNK)):
        rows = encoder.encode_batch(chunk)
        lengths.append(np.fromiter(map(len, rows), np.int64, len(rows)))
        ids.append(np.fromiter(chain.from_iterable(rows), dtype, int(lengths[-1].sum())))
    return Ragged(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))
