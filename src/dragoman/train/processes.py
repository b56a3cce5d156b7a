"""The processes that train together, as the trainer sees them.

Here there is one, so every exchange is trivial; `parallel.Ranks` has the same methods for several.
Each has a rank; rank 0 leads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from dragoman.data.batches import Stream
from dragoman.errors import DragomanError, InputError
from dragoman.train.checkpoint import random_state, set_random_state
from dragoman.train.config import TrainConfig
from dragoman.train.device import Place, choose_device, choose_precision, own_gpu
from dragoman.train.job import BatchT, Job
from dragoman.train.memory import OUT_OF_MEMORY, within_memory
from dragoman.train.progress import Progress
from dragoman.train.shard import chooses_shards
from dragoman.train.step import Stepper

Value = TypeVar("Value")


class Processes:
    """The single process of a run, and the base class of several."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def leads(self) -> bool:
        """Whether this process validates, writes and reports."""
        return self.rank == 0

    def gather(self, value: Value, *, patient: bool = False) -> list[Value]:  # noqa: ARG002 (ranks)
        """Send a value to all ranks; return the values of all, by rank.

        Values are plain data as in JSON, or bytes; a tuple arrives as a list. Set `patient` if rank
        0 may be tokenizing, validating or writing at the time.
        """
        return [value]

    def together(
        self,
        work: Callable[[], Value],
        out_of_memory: Callable[[], str] = lambda: OUT_OF_MEMORY,
        *,
        patient: bool = False,
    ) -> Value:
        """Do some work on all ranks; if it fails on any of them, all end with its message."""
        error: DragomanError | None = None
        try:
            with within_memory(out_of_memory):
                result = work()
        except DragomanError as raised:
            error = raised
        told = None if error is None else (isinstance(error, InputError), str(error))
        for failure in self.gather(told, patient=patient):
            if failure is not None:
                is_input, sentence = failure
                self.stop(error or (InputError if is_input else DragomanError)(sentence))
        return result

    def in_turn(self, work: Callable[[], Value]) -> Value:
        """Do some work first on rank 0, which writes what the others read, then on those."""
        idle: Callable[[], Any] = lambda: None  # noqa: E731 -- a type for it
        first: Value = self.together(work if self.leads else idle, patient=True)
        then: Value = self.together(idle if self.leads else work, patient=True)
        return first if self.leads else then

    def stop(self, error: DragomanError) -> NoReturn:
        """Raise the error on rank 0, which prints it for all; the others end after that."""
        if not self.leads:
            self.gather(None)  # rank 0 never joins
        raise error

    def agree(self, progress: Progress, *, interrupted: bool) -> tuple[Progress, bool]:
        """Return the progress of rank 0, and whether any rank was interrupted.

        An interrupt that arrives during this exchange takes effect in the next step, on all ranks.
        """
        told = self.gather((interrupted, asdict(progress)), patient=True)
        return Progress(**told[0][1]), any(pressed for pressed, _ in told)

    def draw(self, batches: Stream[BatchT], count: int) -> list[BatchT]:
        """Draw the batches of a step, `count` for each rank; return those of this rank."""

        def mine() -> list[BatchT]:
            chosen = []
            for number in range(count * self.size):
                if number % self.size == self.rank:
                    chosen.append(next(batches))
                else:
                    batches.skip()
            return chosen

        return self.together(mine)

    def begin_random(self, seed: int) -> None:
        """Reseed every rank but the first after the weights are drawn, so that dropout differs."""
        if self.rank:
            torch.manual_seed((seed + 0x9E3779B1 * self.rank) % 2**32)  # CPUs take 32 bits

    def random_states(self) -> Mapping[str, Tensor]:
        """Return the random states of all ranks; rank 0's are named as in a single process."""
        mine = {name: state.numpy().tobytes() for name, state in random_state().items()}
        return {
            f"{_prefix(rank)}{name}": torch.frombuffer(bytearray(state), dtype=torch.uint8)
            for rank, states in enumerate(self.gather(mine, patient=True))
            for name, state in states.items()
        }

    def set_random_states(self, states: Mapping[str, Tensor]) -> None:
        """Restore the states of this rank; without any, it keeps its initial ones."""
        prefix = _prefix(self.rank)
        mine = {name.removeprefix(prefix): states[name] for name in states if prefix in name}
        if mine:
            set_random_state(mine)

    def place(self, config: TrainConfig, model: nn.Module) -> Place:
        """Return the device of this process and its precision; raises InputError if unavailable."""
        device = own_gpu(choose_device(config.device), self.size)
        precision = choose_precision(config.precision, device)
        sharded = self.size > 1 and chooses_shards(config, model, device, precision)
        return Place(device=device, precision=precision, processes=self.size, sharded=sharded)

    def distribute(
        self,
        stepper: Stepper[BatchT],
        job: Job[BatchT],  # noqa: ARG002 (for ranks)
        config: TrainConfig,  # noqa: ARG002
        place: Place,  # noqa: ARG002
        too_large: Callable[[Sequence[BatchT]], str],  # noqa: ARG002
    ) -> Stepper[BatchT]:
        """Return the stepper of all ranks; `too_large` explains an out-of-memory error.

        In a sharded run it has its own optimizer and model, which are shares of these.
        """
        return stepper


ALONE = Processes()


def _prefix(rank: int) -> str:
    return f"rank{rank}/" if rank else ""
