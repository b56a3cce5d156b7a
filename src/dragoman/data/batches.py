r"""From examples to batches: a plan under a token budget, and an endless stream that can resume.

A batch of :math:`n` pairs padded to its longest source and its longest target costs

.. math:: n \, (\max_i S_i + \max_i T_i)

tokens. Pairs are put into strips by the length of one side and, within a strip, in order of the
other, up one strip and down the next, so that neighbours have nearly the same two lengths even
where a strip ends. Then the row is cut: each batch takes as many of the following pairs as the
budget allows.

A dataset says how long its examples are and how some of them become a batch of tensors; `Stream`
draws its epochs and resumes exactly where it was saved. In the names of tensors: B sequences, L
positions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.dataset import Ragged, Splits, fingerprint_of, sampled
from dragoman.data.shape import Shape
from dragoman.errors import InputError
from dragoman.ranges import Count, Probability, check_ranges

Lengths = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
"""Numbers of examples."""

LONGEST = (1 << 19) - 1
"""Lengths beyond it count as equal when pairs are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """How examples are put into batches under a budget of tokens."""

    max_tokens: Count = 4096
    """Maximum number of tokens per batch, padding included; a longer example is one batch."""
    max_length: Count = 256
    """Maximum number of tokens per side; longer pairs are skipped, longer texts are cut."""
    subword_sampling: Probability = 0.0
    """Probability of splitting a piece, anew in each epoch; 0.1 suits small corpora."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """Batch `k` holds the pairs `order[bounds[k]:bounds[k + 1]]`."""

    order: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]
    num_tokens: int
    """Source and target tokens of all pairs."""
    widths: npt.NDArray[np.int64]
    """The longest source of each batch with its longest target."""

    @property
    def num_padded(self) -> int:
        """The same with padding."""
        return int(np.diff(self.bounds) @ self.widths)

    @property
    def largest(self) -> list[int]:
        """The batch with most places, and that with most pairs of them: attention takes those."""
        places = np.diff(self.bounds) * self.widths
        return [int(sizes.argmax()) for sizes in (places, places * self.widths) if len(self)]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, batch: int) -> npt.NDArray[np.int64]:
        return self.order[self.bounds[batch] : self.bounds[batch + 1]]

    @property
    def padding(self) -> float:
        """The share of padding in all tokens."""
        return 1.0 - self.num_tokens / self.num_padded if len(self) else 0.0


def plan_batches(
    src_lengths: Lengths, tgt_lengths: Lengths, max_tokens: int, rng: np.random.Generator
) -> Plan:
    """Put all pairs into batches of at most `max_tokens` source and target tokens with padding.

    Lengths are those in the batch, with eos. A pair that is over the budget by itself makes a
    batch. What differs from one state of `rng` to the next: which side makes the strips, the
    order of pairs with equal lengths, and where the first cut falls. The strips are made wider as
    long as that saves padding, which it does when a batch is large for the corpus. Batches come in
    order of length.
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
    """Pairs by strip, then up or down by the other length, then by chance."""
    strip, within = np.minimum(strip, LONGEST), np.minimum(within, LONGEST)
    turning = np.where(strip % 2 == 0, within, LONGEST - within)
    return np.argsort((strip << 43) | (turning << 24) | ties)


def _cut(
    order: npt.NDArray[np.int64], src: Lengths, tgt: Lengths, budgets: tuple[int, int]
) -> Plan:
    """Cut the ordered pairs greedily; the first batch has a budget of its own."""
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
    """Examples as tensors; each task adds its own."""

    num_targets: int
    """Predictions that the loss sums over: what the mean of a step is taken of."""
    num_tokens: int
    """Tokens without padding, for the speed."""
    indices: Rows
    """Which examples of the dataset these are."""

    @property
    def shape(self) -> Shape:
        """How large it is."""
        raise NotImplementedError

    def source_lengths(self, pad_id: int, limit: int) -> list[int]:  # noqa: ARG002 (for pairs)
        """Return the lengths of the sources that a validation translates: those below the limit."""
        return []

    def to(self, device: torch.device | str) -> Self:
        """Return the same batch with every tensor on another device."""
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
    """How many batches."""
    examples: int
    """The number of examples in them: pairs, texts, windows; one that comes twice counts twice."""
    padding: float
    """The share of padding in all tokens."""
    largest: Sequence[int]
    """The numbers of the batches that take most memory."""
    make: Callable[[int], BatchT_co]
    """Makes a batch; the same number gives the same batch."""

    def __iter__(self) -> Iterator[BatchT_co]:
        return map(self.make, range(self.count))


class BatchSource(Protocol[BatchT_co]):
    """A dataset and the settings of its batches."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides the batches, the seed aside."""

    def draw(self, rng: np.random.Generator) -> Epoch[BatchT_co]:
        """Choose and order the batches of an epoch."""


class Stream(Iterator[BatchT]):
    """Training batches without end, in an order that a seed decides.

    An epoch follows from seed and number alone, so that `state_dict` needs only two
    counters to resume exactly.
    """

    def __init__(
        self, source: BatchSource[BatchT], *, seed: int, validation: str | None = None
    ) -> None:
        """Begin the first epoch; `validation` is a hash of what the run validates on."""
        self.source = source
        self._seed, self._validation = seed, validation
        self._fingerprint = source.fingerprint  # of large data it takes a while
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
        """The number of batches of the present epoch."""
        return self._drawn.count

    @property
    def padding(self) -> float:
        """The share of padding in the tokens of the present epoch."""
        return self._drawn.padding

    def largest(self) -> list[BatchT]:
        """Make the batches of the present epoch that take most memory; the stream stays."""
        return [self._drawn.make(number) for number in self._drawn.largest]

    def state_dict(self) -> dict[str, Any]:
        """Return where the stream is, and how much there is: plain numbers and texts, as JSON."""
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
        """Resume where `state_dict` was taken, with its seed.

        `former_size` has the fields of the source's `config` that decide the size of batches and
        have changed since. The batches of the epoch are others then, so it begins again: some of
        its examples come twice, none is missed.
        Raises InputError when the data, what the run validates on included, or the settings of
        batches are no longer the same, and ValueError for a state that `state_dict` never returns.
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
        if state.get("validation") not in (None, self._validation):  # old checkpoints have none
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
    """An epoch of the batches of a plan, in an order that is drawn.

    `rows` are the examples that the plan counts, by number; `collate` makes tensors of those of a
    batch, whose numbers ascend.
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
    """The tokens of each in a batch, bos and eos counted."""
    collate: Callable[[Rows], BatchT]
    """Turns the examples with these numbers into tensors."""


def plan_epoch(
    examples: Examples[BatchT], max_tokens: int, rng: np.random.Generator
) -> Epoch[BatchT]:
    """An epoch of single sequences, each once, those of like length together."""
    lengths = examples.lengths
    plan = plan_batches(lengths, np.zeros_like(lengths), max_tokens, rng)
    return shuffled(plan, np.arange(len(lengths)), rng, examples.collate)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceBatches(Generic[BatchT]):
    """Batches of single sequences, those of like length together."""

    sequences: Ragged
    """The pieces that subword sampling takes apart, of texts or of words."""
    examples: Callable[[Ragged], Examples[BatchT]]
    """From those pieces, perhaps sampled, to the examples of an epoch."""
    content_hash: str
    """A hash of all that decides the examples, the settings aside."""
    config: BatchConfig
    splits: Splits | None = None
    """Needed for subword sampling only."""

    @property
    def fingerprint(self) -> str:
        """A hash of the dataset and the settings."""
        return fingerprint_of(self.content_hash, astuple(self.config))

    def draw(self, rng: np.random.Generator) -> Epoch[BatchT]:
        """Sample the pieces, plan the batches, shuffle them."""
        pieces = sampled(self.sequences, self.splits, self.config.subword_sampling, rng)
        return plan_epoch(self.examples(pieces), self.config.max_tokens, rng)

    def fixed(self) -> Iterator[BatchT]:
        """All examples, each once, always in the same batches: what is measured on."""
        examples = self.examples(self.sequences)
        return iter(plan_epoch(examples, self.config.max_tokens, np.random.default_rng(0)))
