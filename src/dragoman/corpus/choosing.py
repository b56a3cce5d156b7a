"""Pairs drawn from a corpus, the same for a seed: by a hash of their text, wherever they stand."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dragoman.corpus.checking import Keys, Progress, Read, key_of, normalised
from dragoman.errors import InputError
from dragoman.wording import counted

Numbers = npt.NDArray[np.int64]
"""Which set each pair goes to; -1 is none."""
MOST_TIMES = 1000
"""Greatest weight of a corpus."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


def sample(read: Read, count: int, seed: int, progress: Progress = iter) -> Numbers:
    """Draw `count` pairs: set 0. Raises InputError if there are fewer, or for none."""
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
    """Part a corpus into a training set, 0, and sets 1, 2, ... of these sizes.

    No two sets have a source in common, nor a target, compared by letters and digits: of a text
    that is there several times the later sets have the first pair, and the other pairs are in none.
    Raises InputError if that leaves nothing to train on, or for a set of none.

    `documents` names the document of each pair. Then no two sets have a document in common either,
    and the later sets have whole documents, repeated texts included: in random order, each that
    still fits the size. Pairs are left out only if they have a text of another set. Raises
    InputError if no document fits.
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
    """How often each pair of each corpus is taken, and how many were there before.

    A pair is taken as often as the weight has wholes, and those that are drawn for the rest of it
    once more. With `unique` one that was there before, by letters and digits, in an earlier corpus
    or in its own, is not taken; a weight counts what is left. Raises InputError for a weight that
    is not positive, for too many or too few of them, and if no pair is taken.
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
    """The places of whole groups of free pairs, which have a key in common: in the order of the
    keys, which is random, each that fits what is left of the size.
    """
    different, counts = np.unique(keys[free], return_counts=True)
    fits = np.zeros(len(different), np.bool_)
    for number, count in enumerate(counts):
        if count <= size:
            fits[number] = True
            size -= count
        if not size:
            break
    return np.nonzero(free & np.isin(keys, different[fits]))[0]


def _first_of(keys: Keys) -> npt.NDArray[np.bool_]:
    """Where a key is for the first time."""
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _salt(seed: int) -> bytes:
    return (seed % (1 << 128)).to_bytes(16, "little")


def _draws(read: Read, seed: int, progress: Progress) -> tuple[Keys, Keys, Keys]:
    """A random number of each pair, and the keys of its sides."""
    drawn, src_keys, tgt_keys, salt = array("Q"), array("Q"), array("Q"), _salt(seed)
    for src, tgt in progress(read()):
        drawn.append(key_of(f"{src}\t{tgt}", salt))
        src_keys.append(key_of(normalised(src)))
        tgt_keys.append(key_of(normalised(tgt)))
    drawn_P, src_P, tgt_P = (np.frombuffer(each, np.uint64) for each in (drawn, src_keys, tgt_keys))
    return drawn_P, src_P, tgt_P
