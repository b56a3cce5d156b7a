"""Sequences of ids in arrays that may be on disk; subword sampling; validation splits."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dragoman.data.corpus import Finding
from dragoman.languages import LangCodes
from dragoman.wording import counted

MANY = 0.05
"""Share of the pairs that a limit may leave out without a warning."""


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """The ids that complete batches, shared by source and target."""

    pad_id: int
    bos_id: int
    eos_id: int


@dataclass(frozen=True, slots=True)
class Ragged:
    """Many sequences of ids in one array: sequence i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: npt.NDArray[np.integer]
    offsets: npt.NDArray[np.int64]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of ids in each sequence."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The index of the sequence of each id."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> npt.NDArray[np.integer]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], dtype: str = "<i8") -> "Ragged":
        """Build from sequences in memory."""
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        flat = np.fromiter(chain.from_iterable(sequences), dtype=dtype, count=lengths.sum())
        return cls(flat, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def concatenate(cls, parts: "Sequence[Ragged]") -> "Ragged":
        """Return the sequences of all parts, one part after another."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([part.lengths for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        return cls(ids, np.concatenate([[0], np.cumsum(lengths)]))

    def take(self, indices: npt.NDArray[np.int64]) -> "Ragged":
        """Return the sequences at `indices`, in that order, copied into memory."""
        starts = self.offsets[indices]
        return gather(self.ids, starts, self.offsets[indices + 1] - starts)

    def chunks(self) -> "Iterator[Ragged]":
        """Yield the sequences in chunks, to save memory."""
        for start in range(0, len(self), CHUNK):
            offsets = self.offsets[start : start + CHUNK + 1]
            yield Ragged(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0])

    def cut(self, limit: int) -> "Ragged":
        """Truncate each sequence to its first `limit` ids."""
        lengths = np.minimum(self.lengths, limit)
        return gather(self.ids, self.offsets[:-1], lengths)


def gather(
    ids: npt.NDArray[np.integer], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Ragged:
    """Return the slices `ids[starts[i]:starts[i] + lengths[i]]`, copied into memory."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    return Ragged(ids[np.repeat(starts, lengths) + within], offsets)


def windows_over(
    lengths: npt.NDArray[np.int64], longest: int, step: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return windows over sequences: the sequence of each, and the range in it that is new.

    The first window of a sequence has up to `longest` new ids, each later one up to `step`.
    """
    counts = np.where(lengths > 0, 1 + np.maximum(0, lengths - longest + step - 1) // step, 0)
    of = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    before = np.where(number > 0, longest + (number - 1) * step, 0)
    return of, before, np.minimum(longest + number * step, lengths[of])


def meetings(src: Ragged, tgt: Ragged) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pair each source id with each id of its target; return indices in `src.ids` and `tgt.ids`.

    The pairs of one target id are adjacent.
    """
    pair = tgt.rows
    widths = src.lengths[pair]
    firsts = src.offsets[pair] - (np.cumsum(widths) - widths)
    places = np.repeat(np.arange(len(pair)), widths)
    return np.arange(len(places)) + firsts[places], places


def fingerprint_of(*decides: object, arrays: Iterable[np.ndarray] = ()) -> str:
    """Return a hash of values that JSON can represent, and of arrays."""
    digest = hashlib.sha256(json.dumps(decides).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDataset:
    """Texts as ids, without the labels or tags of their files."""

    name: str
    texts: Ragged
    """Piece ids, possibly with bos and eos at the ends."""
    special: SpecialIds
    content_hash: str
    """A hash of everything that determines the ids."""

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def joined(cls, parts: "Sequence[TextDataset]") -> "TextDataset":
        """Join the texts of all parts, which share one tokenizer, in memory."""
        if len({part.special for part in parts}) > 1:
            raise ValueError("the datasets were made with different tokenizers")
        return cls(
            name=", ".join(part.name for part in parts),
            texts=Ragged.concatenate([part.texts for part in parts]),
            special=parts[0].special,
            content_hash=" ".join(part.content_hash for part in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDataset:
    """The pairs of one corpus as ids; pair i is line i + 1 of the corpus."""

    name: str
    src: Ragged
    tgt: Ragged
    special: SpecialIds
    identical: Finding
    """Pairs whose source equals their target exactly; they are kept."""
    content_hash: str
    """A hash of everything that determines the ids."""
    weight: float = 1.0
    """Number of passes over the pairs per epoch."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Number of units left out of a memory, by reason."""
    languages: LangCodes = (None, None)
    """Languages of source and target, if known."""
    tags: tuple[int, ...] = ()
    """The ids before each source, in a multilingual model."""
    excluded: npt.NDArray[np.bool_] | None = None
    """Pairs excluded from training because validation uses them."""
    links: Ragged | None = None
    """Position of the source token that each target token translates, or -1."""

    def __len__(self) -> int:
        return len(self.src)

    def turned(self) -> "PairDataset":
        """Return the reverse direction: each target with its source."""
        return replace(
            self,
            src=self.tgt,
            tgt=self.src,
            languages=self.languages[::-1],
            content_hash=f"{self.content_hash} turned",
        )

    def usable(self, max_length: int) -> npt.NDArray[np.bool_]:
        """Return which pairs have 1 to `max_length` tokens on both sides and are not excluded."""
        shorter = np.minimum(self.src.lengths, self.tgt.lengths)
        longer = np.maximum(self.src.lengths, self.tgt.lengths)
        usable: npt.NDArray[np.bool_] = (shorter > 0) & (longer <= max_length)
        return usable if self.excluded is None else usable & ~self.excluded

    def report(self, max_length: int, *, is_trained: bool = True) -> Iterator[str]:
        """Describe the dataset in sentences; `max_length` is the training limit, on each side.

        `is_trained` says whether the tokenizer is trained for this run, so that another could be.
        """
        (empty,) = np.nonzero(np.minimum(self.src.lengths, self.tgt.lengths) == 0)
        (too_long,) = np.nonzero(np.maximum(self.src.lengths, self.tgt.lengths) > max_length)
        used = int(self.usable(max_length).sum())
        yield f"{self.name}: {used:,} of {counted(len(self), 'pair is', 'pairs are')} used."
        for why, count in self.left.items():
            yield f"{self.name}: {why}, left out: {count:,}."
        found = {
            "an empty side, left out": Finding.of((empty + 1).tolist()),
            f"more than {counted(max_length, 'token')} on a side, left out": Finding.of(
                (too_long + 1).tolist()
            ),
            "source and target are identical, kept": self.identical,
        }
        for what, lines in found.items():
            if lines.count:
                yield f"{self.name}: {what}: {lines}."
        if len(too_long) > MANY * len(self):
            src, tgt = (int((side.lengths > max_length).sum()) for side in (self.src, self.tgt))
            side = "" if src == tgt else f", mostly of the {'sources' if src > tgt else 'targets'}"
            other = ", or tokenizer.vocab_size, with which texts have fewer tokens"
            yield (
                f"Warning: {self.name}: {len(too_long) / len(self):.0%} of the pairs are left out "
                f"for their length{side}; raise batch.max_length{other if is_trained else ''}."
            )


# ---------------------------------------------------------------- subword sampling

CHUNK = 1 << 16
"""Number of sequences that are sampled or hashed at a time."""


class Splits(Protocol):
    """The interface of subword sampling that this package needs."""

    def sample(
        self,
        ids: npt.NDArray[np.integer],
        offsets: npt.NDArray[np.int64],
        *,
        probability: float,
        rng: np.random.Generator,
    ) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
        """Split pieces of many texts; text i is `ids[offsets[i]:offsets[i + 1]]`."""


def sampled(
    ragged: Ragged, splits: Splits | None, probability: float, rng: np.random.Generator
) -> Ragged:
    """Return all sequences with pieces split at random.

    Returns the same sequences if the probability is 0; otherwise `splits` is required.
    """
    if not probability:
        return ragged
    if splits is None:
        raise ValueError("subword sampling needs the splits of the tokenizer")
    chunks = ((part.ids, part.offsets) for part in ragged.chunks())
    parts = (splits.sample(*chunk, probability=probability, rng=rng) for chunk in chunks)
    return Ragged.concatenate([Ragged(*part) for part in parts])


# ---------------------------------------------------------------- validation without files

MIXER, BASE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # from splitmix64


def hold_out(
    dataset: PairDataset, count: int, max_length: int, seed: int, *, both: bool = False
) -> tuple[PairDataset, PairDataset]:
    """Split off about `count` usable pairs, drawn by `seed`; return the rest and the held-out.

    At least one pair and at most a tenth of the usable ones is taken. Pairs that share their source
    with a held-out one leave training too, so no validation source has been seen; if pairs are
    learned in `both` directions, so do those that share either side.
    """
    (usable,) = np.nonzero(dataset.usable(max_length))
    count = max(1, min(count, len(usable) // 10))
    chosen = np.sort(np.random.default_rng(seed).permutation(usable)[:count])
    src, tgt = dataset.src.take(chosen), dataset.tgt.take(chosen)
    held = replace(dataset, src=src, tgt=tgt, excluded=None)
    rest = leave_out(dataset, held, both=both)
    if not rest.usable(max_length).any():  # nothing would be left to learn from
        rest = dataset
    return rest, held


def leave_out(dataset: PairDataset, held: PairDataset, *, both: bool = False) -> PairDataset:
    """Exclude from training the pairs whose source is that of a held-out pair.

    With `both`, exclude pairs with a side that equals either side of one.
    """
    sides = 2 if both else 1
    ours, theirs = ([_hashes(s) for s in (d.src, d.tgt)[:sides]] for d in (dataset, held))
    shared = [np.isin(side, np.concatenate(theirs)) for side in ours]
    before = [] if dataset.excluded is None else [dataset.excluded]
    return replace(dataset, excluded=np.any([*before, *shared], axis=0))


def seen_in(dataset: PairDataset, held: PairDataset) -> npt.NDArray[np.bool_]:
    """Return which pairs of `held` are in `dataset` too, with both sides equal."""
    ours, theirs = (_hashes(each.src) * BASE + _hashes(each.tgt) for each in (dataset, held))
    return np.isin(theirs, ours)


def hold_out_rows(
    texts: Ragged, count: int, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split texts of one side likewise; return the indices to learn from and those held out."""
    count = max(1, min(count, len(texts) // 10))
    held = np.sort(np.random.default_rng(seed).permutation(len(texts))[:count])
    hashes = _hashes(texts)
    (rest,) = np.nonzero(~np.isin(hashes, hashes[held]))
    return (rest if len(rest) else np.arange(len(texts))), held


def format_held_out(
    name: str,
    held: int,
    left_out: int,
    what: str,
    shared: str = "text",
    *,
    needed: str = "No validation files",
) -> str:
    """Describe what training does not see; `left_out` texts share what is hashed with `held`.

    A negative number means that all texts did, so that training sees them.
    """
    these = counted(held, f"{what} of {name} is", f"{what}s of {name} are")
    more = f"more with the {shared} of one of these"
    also = f"; {counted(left_out, f'{more} is', f'{more} are')} left out of training"
    if left_out < 0:
        also = f", and trained on too, as there is no other {shared}: the scores measure memory"
    return f"{needed}: {these} held out for it{also if left_out else ''}."


def _hashes(ragged: Ragged) -> npt.NDArray[np.uint64]:
    """Return one number per sentence: `sum_j mix(id_j) * BASE^j` modulo 2^64.

    Without both mixing and a large base, short sentences with similar ids could collide.
    """
    hashes = [np.zeros(0, dtype=np.uint64)]
    for part in ragged.chunks():
        mixed = (part.ids.astype(np.uint64) + np.uint64(1)) * MIXER
        mixed ^= mixed >> np.uint64(29)
        places = np.arange(len(mixed)) - np.repeat(part.offsets[:-1], part.lengths)
        powers = BASE ** np.arange(max(1, part.lengths.max(initial=0)), dtype=np.uint64)
        sums = np.zeros(len(mixed) + 1, dtype=np.uint64)
        np.cumsum(mixed * powers[places], dtype=np.uint64, out=sums[1:])
        hashes.append(sums[part.offsets[1:]] - sums[part.offsets[:-1]])
    return np.concatenate(hashes)
