"""What tests of streams share: an epoch as a list, and a sampler of pieces by protocol."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dragoman.data.batches import Stream

T = TypeVar("T")


def epoch_of(stream: Stream[T]) -> list[T]:
    """The batches up to the end of the epoch that the next one belongs to."""
    epoch = [next(stream)]
    while stream.position < stream.num_batches:
        epoch.append(next(stream))
    return epoch


class Doubling:
    """Subword sampling by protocol: each id is doubled with the probability."""

    def sample(
        self,
        ids: npt.NDArray[np.integer],
        offsets: npt.NDArray[np.int64],
        *,
        probability: float,
        rng: np.random.Generator,
    ) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
        """Double ids."""
        lengths = 1 + (rng.random(len(ids)) < probability)
        return np.repeat(ids, lengths), np.concatenate([[0], np.cumsum(lengths)])[offsets]
