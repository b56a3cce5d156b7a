r"""From examples to batches: a plan under a token budget, and an endless stream that can resume.

A batch of :math:`n` pairs padded to its longest source and its longest target costs

.. math:: n \, (\max_i S_i + \max_i T_i)

tokens. Pairs are grouped into strips by the length of one side and sorted within a strip by the
other, ascending in one strip and descending in the next, so neighbours have nearly the same two
lengths even at the end of a strip. Then the sequence is cut: each batch takes as many of the next
pairs as the budget allows.

A dataset provides the lengths of its examples and turns some of them into a batch of tensors;
`Stream` draws its epochs and resumes exactly where it was saved. Axes: B sequences, L positions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.dataset import Ragged, Splits, fingerprint_of, sampled
from dragoman.data.shape import Shape
from dragoman.errors import InputError
from dragoman.ranges import Count, Millions, Probability, check_ranges

Lengths = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
"""Indices of examples."""

LONGEST = (1 << 19) - 1
"""Longer lengths count as equal when pairs are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """How examples are put into batches under a budget of tokens."""

    also_called: ClassVar[Mapping[str, str]] = {"batch_size": "max_tokens"}

    max_tokens: Millions = 4096
    """Maximum number of tokens per batch, including padding; a longer example is a batch of its
    own."""
    max_length: Count = 256
    """Maximum number of tokens per side; longer pairs are skipped, longer texts are cut."""
    subword_sampling: Probability = 0.0
    """Probability of splitting a piece, anew in each epoch; 0.1 suits small corpora."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """Batch `k` contains the pairs `order[bounds[k]:bounds[k + 1]]`."""

    order: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]
    num_tokens: int
    """Number of source and target tokens of all pairs."""
    widths: npt.NDArray[np.int64]
    """The longest source plus the longest target of each batch."""

    @property
    def num_padded(self) -> int:
        """Number of tokens including padding."""
        return int(np.diff(self.bounds) @ self.widths)

    @property
    def largest(self) -> list[int]:
        """The batches with most positions and with most pairs of positions (attention's cost)."""
        places = np.diff(self.bounds) * self.widths
        return [int(sizes.argmax()) for sizes in (places, places * self.widths) if len(self)]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, batch: int) -> npt.NDArray[np.int64]:
        return self.order[self.bounds[batch] : self.bounds[batch + 1]]

    @property
    def padding(self) -> float:
        """Share of padding among all tokens."""
        return 1.0 - self.num_tokens / self.num_padded if len(self) else 0.0


def plan_batches(
    src_lengths: Lengths, tgt_lengths: Lengths, max_tokens: int, rng: np.random.Generator
) -> Plan:
    """Put all pairs into batches of at most `max_tokens` source and target tokens with padding.

    Lengths include eos, as in the batch. A pair over the budget gets a batch of its own. The state
    of `rng` decides which side forms the strips, the order of pairs with equal lengths, and where
    the first cut falls. Strips are widened as long as that saves padding, which it does when a
    batch is large for the corpus. Batches come in order of length.
    """
    by_src = bool(rng.integers(2))
    first, second = (src_lengths, tgt_lengths) if by_src else (tgt_lengths, src_lengths)
    ties = rng.integers(0, 1 << 24, len(src_lengths))
    first_budget = int(max_tokens * rng.uniform(0.5, 1.0))
    best: Plan | None = None
    for width in (1, 2, 3, 4):
        order = _snake(first // width, second, ties)
        plan = _cut(order, src_lengths[order], tgt_lengths[order], (first_budget, max_tokens))
        if best is not None and plan.num_padded >= best.num_padded:
            break
        best = plan
    assert best is not None  # noqa: S101
    return best


def _snake(strip: Lengths, within: Lengths, ties: Lengths) -> npt.NDArray[np.int64]:
    """Sort pairs by strip, then up or down by the other length, then at random."""
    strip, within = np.minimum(strip, LONGEST), np.minimum(within, LONGEST)
    turning = np.where(strip % 2 == 0, within, LONGEST - within)
    return np.argsort((strip << 43) | (turning << 24) | ties)


def _cut(
    order: npt.NDArray[np.int64], src: Lengths, tgt: Lengths, budgets: tuple[int, int]
) -> Plan:
    """Cut the sorted pairs greedily; the first batch has its own budget."""
    budget, later_budget = budgets
    bounds, widths = [0], []
    while (start := bounds[-1]) < len(order):
        most = max(1, budget // int(src[start] + tgt[start]))
        width = np.maximum.accumulate(src[start : start + most])
        width += np.maximum.accumulate(tgt[start : start + most])
        cost = width * np.arange(1, len(width) + 1)
        count = max(1, int(np.searchsorted(cost, budget, side="right")))
        widths.append(int(width[count - 1]))
        bounds.append(start + count)
        budget = later_budget
    num_tokens = int(src.sum() + tgt.sum())
    return Plan(order, np.array(bounds), num_tokens, np.array(widths, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Examples as tensors; each task adds its own fields."""

    num_targets: int
    """Number of predictions that the loss sums over, by which a step divides."""
    num_tokens: int
    """Number of tokens without padding, to measure speed."""
    indices: Rows
    """Indices of these examples in the dataset."""

    @property
    def shape(self) -> Shape:
        """The size of the batch."""
        raise NotImplementedError

    def source_lengths(self, pad_id: int, limit: int) -> list[int]:  # noqa: ARG002 (for pairs)
        """Return the lengths of the sources that validation translates: those below the limit."""
        return []

    def to(self, device: torch.device | str) -> Self:
        """Return the batch with every tensor on another device."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if isinstance(value, Tensor):
                values[name] = value.to(device, non_blocking=True)
        return replace(self, **values)


BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(Generic[BatchT_co]):
    """The batches of one pass over the data, in order; each can be made at any time."""

    count: int
    """Number of batches."""
    examples: int
    """Number of examples in them (pairs, texts or windows), counting repetitions."""
    padding: float
    """Share of padding among all tokens."""
    largest: Sequence[int]
    """Numbers of the batches that need the most memory."""
    make: Callable[[int], BatchT_co]
    """Makes a batch; the same number gives the same batch."""

    def __iter__(self) -> Iterator[BatchT_co]:
        return map(self.make, range(self.count))


class BatchSource(Protocol[BatchT_co]):
    """A dataset and the settings of its batches."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines the batches, except the seed."""

    def draw(self, rng: np.random.Generator) -> Epoch[BatchT_co]:
        """Choose and order the batches of an epoch."""


class Stream(Iterator[BatchT]):
    """Endless training batches, in an order determined by a seed.

    An epoch depends only on the seed and its number, so `state_dict` needs only two counters to
    resume exactly.
    """

    def __init__(
        self, source: BatchSource[BatchT], *, seed: int, validation: str | None = None
    ) -> None:
        """Begin the first epoch; `validation` is a hash of the validation data."""
        self.source = source
        self._seed, self._validation = seed, validation
        self._fingerprint = source.fingerprint  # slow for large data
        self._begin(epoch=0)

    def __next__(self) -> BatchT:
        self.skip()
        return self._drawn.make(self.position - 1)

    def skip(self) -> None:
        """Pass over the next batch without making it."""
        while self.position >= self._drawn.count:
            self._begin(self.epoch + 1)
        self.position += 1

    @property
    def num_batches(self) -> int:
        """Number of batches in the current epoch."""
        return self._drawn.count

    @property
    def padding(self) -> float:
        """Share of padding among the tokens of the current epoch."""
        return self._drawn.padding

    def largest(self) -> list[BatchT]:
        """Make the batches of the current epoch that need the most memory, without advancing."""
        return [self._drawn.make(number) for number in self._drawn.largest]

    def state_dict(self) -> dict[str, Any]:
        """Return the position and the amount of data: plain numbers and text, as in JSON."""
        return {
            "seed": self._seed,
            "epoch": self.epoch,
            "position": self.position,
            "fingerprint": self._fingerprint,
            "validation": self._validation,
            "examples": self._drawn.examples,
        }

    def load_state_dict(
        self, state: Mapping[str, Any], former_size: Mapping[str, int] | None = None
    ) -> None:
        """Resume at the position of `state_dict`, with its seed.

        `former_size` contains the old values of fields of the source's `config` that decide the
        size of batches and have changed since. The epoch then has other batches, so it starts over:
        some of its examples come twice, none is missed. Raises InputError if the data, including
        the validation data, or the batch settings have changed, and ValueError for a state that
        `state_dict` never returns.
        """
        place = (state["seed"], state["epoch"], state["position"])
        if not all(isinstance(number, int) and number >= 0 for number in place):
            raise ValueError(f"there is no data at {place}")
        fingerprint = self._fingerprint
        if former_size:
            former: Any = self.source
            fingerprint = replace(former, config=replace(former.config, **former_size)).fingerprint
        if state["fingerprint"] != fingerprint:
            raise InputError(
                "The training data or its batch settings have changed since the run was saved; "
                "restore them, or start a new run in another folder."
            )
        if state["validation"] != self._validation:
            raise InputError(
                "The validation data have changed since the run was saved, and figures of other "
                "texts cannot be compared with its best; restore them, or go on from its model in "
                "another folder (--from)."
            )
        self._seed, epoch, position = place
        self._begin(epoch)
        self.position = 0 if former_size else position

    def _begin(self, epoch: int) -> None:
        self.epoch, self.position = epoch, 0
        self._drawn = self.source.draw(np.random.default_rng([self._seed, epoch]))


def shuffled(
    plan: Plan, rows: Rows, rng: np.random.Generator, collate: Callable[[Rows], BatchT]
) -> Epoch[BatchT]:
    """Return an epoch of the batches of a plan, in random order.

    `rows` are the indices of the planned examples; `collate` makes tensors of those of a batch, in
    ascending order.
    """
    order = rng.permutation(len(plan))
    place = np.argsort(order)
    return Epoch(
        count=len(plan),
        examples=len(rows),
        padding=plan.padding,
        largest=[int(place[batch]) for batch in plan.largest],
        make=lambda number: collate(np.sort(rows[plan[int(order[number])]])),
    )


class Examples(NamedTuple, Generic[BatchT]):
    """Single sequences that can be put into batches."""

    lengths: Lengths
    """Number of tokens of each in a batch, including bos and eos."""
    collate: Callable[[Rows], BatchT]
    """Turns the examples with these indices into tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceBatches(Generic[BatchT]):
    """Batches of single sequences, grouped by similar length."""

    sequences: Ragged
    """The pieces of texts or words, which subword sampling may split."""
    examples: Callable[[Ragged], Examples[BatchT]]
    """Turns these pieces, perhaps sampled, into the examples of an epoch."""
    content_hash: str
    """A hash of everything that determines the examples, except the settings."""
    config: BatchConfig
    splits: Splits | None = None
    """Needed only for subword sampling."""

    @property
    def fingerprint(self) -> str:
        """A hash of the dataset and the settings."""
        return fingerprint_of(self.content_hash, astuple(self.config))

    def draw(self, rng: np.random.Generator) -> Epoch[BatchT]:
        """Sample the pieces, plan the batches, shuffle them."""
        pieces = sampled(self.sequences, self.splits, self.config.subword_sampling, rng)
        return self._planned(pieces, rng)

    def fixed(self) -> Iterator[BatchT]:
        """Return all examples, each once, always in the same batches, for measurements."""
        return iter(self._planned(self.sequences, np.random.default_rng(0)))

    def _planned(self, pieces: Ragged, rng: np.random.Generator) -> Epoch[BatchT]:
        lengths, collate = self.examples(pieces)
        plan = plan_batches(lengths, np.zeros_like(lengths), self.config.max_tokens, rng)
        return shuffled(plan, np.arange(len(lengths)), rng, collate)
