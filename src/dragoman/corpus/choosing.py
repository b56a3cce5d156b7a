"""Pairs drawn from a corpus by a seeded hash of their text, wherever they are in it."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dragoman.corpus.checking import Keys, Progress, Read, key_of, normalised
from dragoman.errors import InputError
from dragoman.wording import counted

Numbers = npt.NDArray[np.int64]
"""The set of each pair; -1 for none."""
MOST_TIMES = 1000
"""Maximum weight of a corpus."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


def sample(read: Read, count: int, seed: int, progress: Progress = iter) -> Numbers:
    """Draw `count` pairs as set 0. Raises InputError for too few pairs, or a count below 1."""
    _check_size(count)
    drawn, _, _ = _draws(read, seed, progress)
    if count > len(drawn):
        raise InputError(
            f"{counted(count, 'pair')} cannot be drawn from {len(drawn):,}; ask for fewer."
        )
    chosen = np.full(len(drawn), -1)
    chosen[np.argsort(drawn, kind="stable")[:count]] = 0
    return chosen


def split(
    read: Read,
    sizes: tuple[int, ...],
    seed: int,
    progress: Progress = iter,
    *,
    documents: Iterable[str] | None = None,
) -> Numbers:
    """Split a corpus into a training set, 0, and sets 1, 2, ... of these sizes.

    No two sets share a source or a target, compared by letters and digits: of a text that occurs
    several times, the later sets get the first pair, and no set gets the others. Raises InputError
    if that leaves nothing to train on, or for a size below 1.

    `documents` names the document of each pair. Then no two sets share a document either, and the
    later sets get whole documents, repeated texts included: in random order, each that still fits
    the size. Pairs are left out only if they share a text with another set. Raises InputError if no
    document fits.
    """
    for size in sizes:
        _check_size(size)
    salt, by_pair = _salt(seed), documents is None
    keys = np.fromiter((key_of(name, salt) for name in documents or ()), np.uint64)
    drawn, src, tgt = _draws(read, seed, progress)
    if by_pair:
        keys = drawn
    chosen = np.full(len(drawn), -1)
    free = np.ones(len(drawn), np.bool_)
    for number, size in enumerate(sizes, start=1):
        taken = _fitting(keys, free & _first_of(src) & _first_of(tgt) if by_pair else free, size)
        if not by_pair and not len(taken):
            raise InputError(
                f"No document that is left has {counted(size, 'pair')} or fewer; ask for other "
                "sizes."
            )
        if (by_pair and len(taken) < size) or len(taken) == free.sum():
            raise InputError(
                f"{len(drawn):,} pairs are too few for sets of "
                f"{' and '.join(format(size, ',') for size in sizes)} and a training set without "
                "their sentences; ask for smaller ones."
            )
        chosen[taken] = number
        free &= ~(np.isin(src, src[taken]) | np.isin(tgt, tgt[taken]))
    if not free.any():
        raise InputError("No pair is left to train on; ask for smaller sets.")
    chosen[free] = 0
    return chosen


def times(
    corpora: Sequence[Read],
    weights: Sequence[float],
    seed: int,
    *,
    unique: bool = False,
    progress: Progress = iter,
) -> tuple[list[Numbers], int]:
    """Return how often to take each pair of each corpus, and how many pairs are repetitions.

    A pair is taken as often as the integer part of the weight, and a random fraction of pairs once
    more for the rest. With `unique`, a pair that already occurred (by letters and digits) in an
    earlier corpus or its own is not taken, and the weight applies to the others. Raises InputError
    for a weight that is not positive or too large, for another number of weights than corpora, and
    if no pair is taken.
    """
    if len(weights) != len(corpora):
        given = counted(len(weights), "weight was", "weights were")
        corpora_given = counted(len(corpora), "corpus", "corpora")
        raise InputError(f"{given} given for {corpora_given}; give one for each.")
    found, repeated, seen = list[Numbers](), 0, np.empty(0, np.uint64)
    for read, weight in zip(corpora, weights, strict=True):
        if not 0 < weight <= MOST_TIMES:
            raise InputError(
                f"A corpus has the weight {weight:g}; give one above 0 and up to {MOST_TIMES:,}."
            )
        drawn, src, tgt = _draws(read, seed, progress)
        keys = src * _ODD + tgt
        new = _first_of(keys) & ~np.isin(keys, seen)
        repeated += int((~new).sum())
        seen = np.union1d(seen, keys)
        (places,) = np.nonzero(new | (not unique))
        whole, rest = divmod(weight, 1)
        counts = np.zeros(len(drawn), np.int64)
        counts[places] = int(whole)
        counts[places[np.argsort(drawn[places], kind="stable")[: round(rest * len(places))]]] += 1
        found.append(counts)
    if not any(each.any() for each in found):
        raise InputError("No pair would be taken of these corpora; give greater weights.")
    return found, repeated


def _check_size(size: int) -> None:
    if size < 1:
        raise InputError(f"A set of {size:,} pairs cannot be drawn; ask for at least 1.")


def _fitting(keys: Keys, free: npt.NDArray[np.bool_], size: int) -> Numbers:
    """Return the indices of whole groups of free pairs with the same key.

    Groups come in the order of the keys, which is random; each is taken if it fits the rest of the
    size.
    """
    different, counts = np.unique(keys[free], return_counts=True)
    fits = np.zeros(len(different), np.bool_)
    for number, count in enumerate(counts.tolist()):
        if count <= size:
            fits[number] = True
            size -= count
        if not size:
            break
    return np.nonzero(free & np.isin(keys, different[fits]))[0]


def _first_of(keys: Keys) -> npt.NDArray[np.bool_]:
    """Return where each key occurs for the first time."""
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _salt(seed: int) -> bytes:
    return (seed % (1 << 128)).to_bytes(16, "little")


def _draws(read: Read, seed: int, progress: Progress) -> tuple[Keys, Keys, Keys]:
    """Return a random number for each pair, and the keys of its sides."""
    drawn, src_keys, tgt_keys, salt = array("Q"), array("Q"), array("Q"), _salt(seed)
    for src, tgt in progress(read()):
        drawn.append(key_of(f"{src}\t{tgt}", salt))
        src_keys.append(key_of(normalised(src)))
        tgt_keys.append(key_of(normalised(tgt)))
    drawn_P, src_P, tgt_P = (np.frombuffer(each, np.uint64) for each in (drawn, src_keys, tgt_keys))
    return drawn_P, src_P, tgt_P
