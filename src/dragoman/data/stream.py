"""An endless stream of batches, epoch after epoch, that goes on exactly where it was saved."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dragoman.data.plan import Plan, plan_batches
from dragoman.errors import InputError

__all__ = ["Epoch", "Planned", "Stream", "fingerprint_of", "fixed_batches", "plan_epoch"]

BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)


class Epoch(Protocol[BatchT_co]):
    """The batches of one pass over the data, in order; each can be made at any time."""

    @property
    def padding(self) -> float:
        """The share of padding in all tokens."""

    def __len__(self) -> int:
        """How many batches there are."""

    def __getitem__(self, number: int, /) -> BatchT_co:
        """Make a batch; the same number gives the same batch."""


class Stream(Iterator[BatchT], ABC):
    """Training batches without end, in an order that a seed decides.

    An epoch follows from seed and number alone, so that ``state_dict`` needs no more than two
    counters to go on exactly where it was. A class for a kind of data says how an epoch is drawn.
    """

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self._fingerprint = self.fingerprint  # of large data it takes a while
        self._begin(epoch=0)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Epoch[BatchT]:
        """Choose and order the batches of an epoch."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all that decides the batches, the seed aside."""

    def __next__(self) -> BatchT:
        while self.position >= len(self._drawn):
            self._begin(self.epoch + 1)
        self.position += 1
        return self._drawn[self.position - 1]

    @property
    def num_batches(self) -> int:
        """Batches of the present epoch."""
        return len(self._drawn)

    @property
    def padding(self) -> float:
        """The share of padding in the tokens of the present epoch."""
        return self._drawn.padding

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is: plain numbers and a text, fit for JSON."""
        return {
            "seed": self._seed,
            "epoch": self.epoch,
            "position": self.position,
            "fingerprint": self._fingerprint,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was taken, with its seed.

        Raises InputError when the data or the settings of batches are no longer the same, and
        ValueError for a state that ``state_dict`` never returns.
        """
        place = (state["seed"], state["epoch"], state["position"])
        if not all(isinstance(number, int) and number >= 0 for number in place):
            raise ValueError(f"no data stands at {place}")
        if state["fingerprint"] != self._fingerprint:
            raise InputError(
                "The training data or its batch settings have changed since the run was saved; "
                "put them back, or start a new run in another folder."
            )
        self._seed, epoch, position = place
        self._begin(epoch)
        self.position = position

    def _begin(self, epoch: int) -> None:
        self.epoch, self.position = epoch, 0
        self._drawn = self.draw(np.random.default_rng([self._seed, epoch]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Generic[BatchT]):
    """An epoch whose batches a plan has put together."""

    rows: npt.NDArray[np.int64]
    """The examples of the epoch by number; one that comes twice stands here twice."""
    plan: Plan
    """Which places of ``rows`` share a batch."""
    order: npt.NDArray[np.int64]
    """The batches of the plan in the order in which they come."""
    make: Callable[[npt.NDArray[np.int64]], BatchT]
    """From ascending numbers of examples to their tensors."""

    @property
    def padding(self) -> float:
        """The share of padding in all tokens."""
        return self.plan.padding

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, number: int, /) -> BatchT:
        return self.make(np.sort(self.rows[self.plan[int(self.order[number])]]))


def fingerprint_of(*decides: object) -> str:
    """A hash of values that JSON can hold."""
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:32]


def plan_epoch(
    lengths: npt.NDArray[np.int64],
    max_tokens: int,
    rng: np.random.Generator,
    make: Callable[[npt.NDArray[np.int64]], BatchT],
) -> Planned[BatchT]:
    """An epoch of single sequences, each once, those of like length together."""
    plan = plan_batches(lengths, np.zeros_like(lengths), max_tokens, rng)
    rows, order = np.arange(len(lengths)), rng.permutation(len(plan))
    return Planned(rows=rows, plan=plan, order=order, make=make)


def fixed_batches(
    lengths: npt.NDArray[np.int64],
    max_tokens: int,
    make: Callable[[npt.NDArray[np.int64]], BatchT],
) -> Iterator[BatchT]:
    """All sequences, each once, always in the same batches: what is measured on."""
    epoch = plan_epoch(lengths, max_tokens, np.random.default_rng(0), make)
    return (epoch[number] for number in range(len(epoch)))
