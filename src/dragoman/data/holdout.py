"""Take validation pairs out of a training corpus that came without any."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import PairDataset, Ragged

__all__ = ["hold_out", "leave_out"]

CHUNK = 1 << 16  # sentences that are hashed at a time


def hold_out(
    dataset: PairDataset, count: int, max_length: int, seed: int
) -> tuple[PairDataset, PairDataset]:
    """Split off about ``count`` usable pairs, drawn by ``seed``: the rest, and the held-out ones.

    At most a tenth of the usable pairs is taken, and at least one. Pairs that share their source
    with a held-out one leave training too, so no validation source has been seen.
    """
    (usable,) = np.nonzero(dataset.usable(max_length))
    count = max(1, min(count, len(usable) // 10)) if len(usable) > 1 else len(usable)
    chosen = np.sort(np.random.default_rng(seed).permutation(usable)[:count])
    held = replace(dataset, src=dataset.src.take(chosen), tgt=dataset.tgt.take(chosen))
    rest = leave_out(dataset, held)
    if not rest.usable(max_length).any():  # so few that nothing would be left to learn from
        rest = dataset
    return rest, held


def leave_out(dataset: PairDataset, held: PairDataset) -> PairDataset:
    """Exclude from training the pairs whose source is one of a held-out pair."""
    excluded = np.isin(_hashes(dataset.src), _hashes(held.src))
    return replace(dataset, excluded=excluded)


def _hashes(ragged: Ragged) -> npt.NDArray[np.uint64]:
    """One number for each sentence: ``sum_j (id_j + 1) * 31^j`` modulo 2^64."""
    hashes = np.zeros(len(ragged), dtype=np.uint64)
    for start in range(0, len(ragged), CHUNK):
        offsets = ragged.offsets[start : start + CHUNK + 1]
        lengths = np.diff(offsets)
        ids = ragged.ids[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)
        places = np.arange(len(ids)) - np.repeat(offsets[:-1] - offsets[0], lengths)
        powers = np.uint64(31) ** np.arange(max(1, lengths.max(initial=0)), dtype=np.uint64)
        sums = np.zeros(len(ids) + 1, dtype=np.uint64)
        np.cumsum(ids * powers[places], dtype=np.uint64, out=sums[1:])
        bounds = offsets - offsets[0]
        hashes[start : start + CHUNK] = sums[bounds[1:]] - sums[bounds[:-1]]
    return hashes
