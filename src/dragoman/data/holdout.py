"""Take validation pairs out of a training corpus that came without any."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import PairDataset, Ragged
from dragoman.wording import counted

__all__ = ["hold_out", "hold_out_rows", "leave_out", "say_held_out"]

CHUNK = 1 << 16  # sentences that are hashed at a time
MIXER, BASE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # splitmix64's


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


def hold_out_rows(
    texts: Ragged, count: int, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The same for texts of one side: the numbers of those to learn from, and of those held out."""
    count = max(1, min(count, len(texts) // 10))
    held = np.sort(np.random.default_rng(seed).permutation(len(texts))[:count])
    hashes = _hashes(texts)
    (rest,) = np.nonzero(~np.isin(hashes, hashes[held]))
    return (rest if len(rest) else np.arange(len(texts))), held


def say_held_out(name: str, held: int, left_out: int, what: str, shared: str = "text") -> str:
    """A sentence on what training does not see; ``left_out`` share what is hashed with ``held``."""
    these = counted(held, f"{what} of {name} is", f"{what}s of {name} are")
    more = f"more with the {shared} of one of these"
    also = f"; {counted(left_out, f'{more} is', f'{more} are')} left out of training"
    return f"No validation files: {these} held out for it{also if left_out > 0 else ''}."


def _hashes(ragged: Ragged) -> npt.NDArray[np.uint64]:
    """One number for each sentence: ``sum_j mix(id_j) * BASE^j`` modulo 2^64.

    Both mixing and a large base are needed lest short sentences with near ids share a number.
    """
    hashes = np.zeros(len(ragged), dtype=np.uint64)
    for start in range(0, len(ragged), CHUNK):
        offsets = ragged.offsets[start : start + CHUNK + 1]
        lengths = np.diff(offsets)
        mixed = (ragged.ids[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)) * MIXER
        mixed ^= mixed >> np.uint64(29)
        places = np.arange(len(mixed)) - np.repeat(offsets[:-1] - offsets[0], lengths)
        powers = BASE ** np.arange(max(1, lengths.max(initial=0)), dtype=np.uint64)
        sums = np.zeros(len(mixed) + 1, dtype=np.uint64)
        np.cumsum(mixed * powers[places], dtype=np.uint64, out=sums[1:])
        bounds = offsets - offsets[0]
        hashes[start : start + CHUNK] = sums[bounds[1:]] - sums[bounds[:-1]]
    return hashes
