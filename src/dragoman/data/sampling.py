"""Subword sampling of whole corpora, by a protocol."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import Ragged

__all__ = ["Splits", "sampled"]

CHUNK = 1 << 16


class Splits(Protocol):
    """What this room asks of subword sampling."""

    def sample(
        self,
        ids: npt.NDArray[np.integer],
        offsets: npt.NDArray[np.int64],
        *,
        probability: float,
        rng: np.random.Generator,
    ) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
        """Take pieces of many texts apart; text i is ``ids[offsets[i]:offsets[i + 1]]``."""


def sampled(
    ragged: Ragged, splits: Splits | None, probability: float, rng: np.random.Generator
) -> Ragged:
    """All sequences with pieces taken apart, a part of them at a time to spare memory.

    The same sequences when the probability is 0; otherwise ``splits`` must be there.
    """
    if not probability:
        return ragged
    if splits is None:
        raise ValueError("subword sampling needs the splits of the tokenizer")
    parts = []
    for start in range(0, len(ragged), CHUNK):
        offsets = ragged.offsets[start : start + CHUNK + 1]
        ids = ragged.ids[offsets[0] : offsets[-1]]
        parts.append(
            Ragged(*splits.sample(ids, offsets - offsets[0], probability=probability, rng=rng))
        )
    return Ragged.concatenate(parts)
