r"""Training by several processes: all that they need is applied here, to a run that knows of none.

Each process, called a rank, has the whole model; PyTorch's `DistributedDataParallel` (Li et al.,
2020, https://arxiv.org/abs/2006.15704) takes the mean of their gradients. A step of `n` ranks draws
`n` times `train.accumulate` batches of the one stream. Number `i` of them is that of rank
`i mod n`, and the step is that of one process with all of them:

.. math:: \nabla \frac{1}{T} \sum_i \ell_i
          = \frac{1}{n} \sum_{r} \nabla \frac{n}{T} \sum_{i \bmod n = r} \ell_i

where :math:`\ell_i` sums the losses of batch `i` and :math:`T` counts the targets of all. Rank 0
alone validates, writes and reports; what fails on one rank ends all, with one sentence.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, NoReturn, TypeVar

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from dragoman.data.batches import Stream
from dragoman.errors import DragomanError, InputError
from dragoman.train.checkpoint import random_state, set_random_state
from dragoman.train.config import TrainConfig
from dragoman.train.device import choose_device
from dragoman.train.job import BatchT, Job
from dragoman.train.loop import Interrupt, Progress, stop_rule
from dragoman.train.optimizer import optimizer_tensors
from dragoman.train.shard import JobLoss, sharded_loss, sharded_optimizer
from dragoman.train.step import OUT_OF_MEMORY, Stepper, within_memory

PROMPT = timedelta(minutes=10)
"""How long a rank waits for the others within a step."""
PATIENT = timedelta(hours=24)
"""How long it waits while rank 0 tokenizes, validates or writes."""
GO_ON = "the same command resumes from the last checkpoint"

STORE_PORT = "DRAGOMAN_STORE_PORT"
"""Environment variable: the port on 127.0.0.1 where the launcher of `--nproc` keeps the store."""

Value = TypeVar("Value")
StopRule = Callable[[Progress], str | None]


class World:
    """The processes that train together; one that trains alone agrees with itself at once."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self._count = 0
        if size == 1:
            return
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            if STORE_PORT in os.environ:  # the store of the launcher; else that of torchrun
                port = int(os.environ[STORE_PORT])
                self._store = dist.TCPStore("127.0.0.1", port, timeout=PROMPT)  # type: ignore[attr-defined]
            else:
                self._store, _, _ = next(rendezvous("env://", rank, size, timeout=PROMPT))
            dist.init_process_group(
                backend, store=self._store, rank=rank, world_size=size, timeout=PROMPT
            )
            self._patient = dist.new_group(backend="gloo", timeout=PATIENT)
        except (RuntimeError, ValueError) as error:
            raise DragomanError(
                f"process {rank} of {size} cannot reach the others ({error}); compare the "
                "addresses and ports that each was started with"
            ) from error

    @property
    def leads(self) -> bool:
        """Whether this process validates, writes and reports."""
        return self.rank == 0

    def gather(self, value: Value, *, patient: bool = False) -> list[Value]:
        """Give a value to all ranks; return those of all, by rank.

        Values are plain data as in JSON, or bytes; a tuple arrives as a list. `patient` where rank
        0 may be tokenizing, validating or writing meanwhile.
        """
        if self.size == 1:
            return [value]
        self._count += 1
        with self.connected():
            self._store.set(str(self.rank), str(self._count))
            words = msgspec.msgpack.encode(value)
            told = _exchange(words, self.size, self._patient if patient else None)
            return [msgspec.msgpack.decode(each) for each in told]

    def together(
        self,
        work: Callable[[], Value],
        out_of_memory: Callable[[], str] = lambda: OUT_OF_MEMORY,
        *,
        patient: bool = False,
    ) -> Value:
        """Work on all ranks; where it fails on one of them, all end with its sentence."""
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
        """Work on rank 0, which writes what the others read, and then on them."""
        idle: Callable[[], Any] = lambda: None  # noqa: E731 -- a type for it
        first: Value = self.together(work if self.leads else idle, patient=True)
        then: Value = self.together(idle if self.leads else work, patient=True)
        return first if self.leads else then

    def stop(self, error: DragomanError) -> NoReturn:
        """Raise on rank 0, which prints it for all; the others end when that one has."""
        if not self.leads:
            self.gather(None)  # rank 0 never comes to it
        raise error

    def draw(self, batches: Stream[BatchT], count: int) -> list[BatchT]:
        """Draw the batches of a step, `count` for each rank; return those of this one."""
        mine = []
        for number in range(count * self.size):
            if number % self.size == self.rank:
                mine.append(next(batches))
            else:
                batches.skip()
        return mine

    def device(self, device: torch.device) -> torch.device:
        """Return the device of this rank, its own GPU; raises InputError where there is none."""
        if self.size == 1 or device.type != "cuda":
            return device
        gpu, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if ":" in str(device) or gpu >= count:
            raise InputError(
                f"{self.size} processes take a GPU each: torch sees {count} here, and the recipe "
                f"chooses {device}; start as many, with train.device=cuda, or give train.device=cpu"
            )
        torch.cuda.set_device(gpu)
        return torch.device("cuda", gpu)

    def begin_random(self, seed: int) -> None:
        """Seed each rank but the first anew, so that dropout differs; the weights are drawn."""
        if self.rank:
            torch.manual_seed((seed + 0x9E3779B1 * self.rank) % 2**32)  # a CPU takes 32 bits

    def random_states(self) -> Mapping[str, Tensor]:
        """Return the states of all ranks; those of rank 0 have the names of a single process."""
        mine = {name: state.numpy().tobytes() for name, state in random_state().items()}
        return {
            f"{_prefix(rank)}{name}": _bytes(state)
            for rank, states in enumerate(self.gather(mine, patient=True))
            for name, state in states.items()
        }

    def set_random_states(self, states: Mapping[str, Tensor]) -> None:
        """Restore those of this rank; a rank without any keeps its initial ones."""
        prefix = _prefix(self.rank)
        mine = {name.removeprefix(prefix): states[name] for name in states if prefix in name}
        if mine:
            set_random_state(mine)

    def stepper(
        self,
        stepper: Stepper[BatchT],
        job: Job[BatchT],
        config: TrainConfig,
        too_large: Callable[[Sequence[BatchT]], str],
        *,
        sharded: bool,
    ) -> Stepper[BatchT]:
        """Wrap the loss of several ranks; `too_large` explains a lack of memory.

        `sharded`, the stepper has an optimizer and a model of its own, which are shares of these.
        """
        if self.size == 1:
            return stepper
        model, optimizer, silence = stepper.model, stepper.optimizer, None
        loss: nn.Module
        if sharded:
            device = self.device(choose_device(config.device))
            state = optimizer_tensors(optimizer, model)  # before its parameters are sharded
            loss = shares = sharded_loss(job, device, self.size, copy=self.leads)
            model = shares.model
            optimizer = sharded_optimizer(model, config, state)
        else:
            wrapped = DistributedDataParallel(
                _Loss(job), gradient_as_bucket_view=True, find_unused_parameters=True
            )
            loss, silence = wrapped, wrapped.no_sync
        return SharedStepper(
            model=model,
            optimizer=optimizer,
            loss=loss,
            silence=silence,
            precision=stepper.precision,
            clip_norm=stepper.clip_norm,
            scaler=stepper.scaler,
            world=self,
            too_large=too_large,
        )

    def stop_rule(self, config: TrainConfig, interrupt: Interrupt) -> StopRule:
        """Return a rule that judges the progress of rank 0, and an interrupt of any rank.

        An interrupt that comes while ranks tell each other counts in the next step, for all.
        """
        if self.size == 1:
            return stop_rule(config, interrupt)
        limit = stop_rule(config, Interrupt())

        def reason(progress: Progress) -> str | None:
            told = self.gather((interrupt.pressed, progress.to_dict()), patient=True)
            for name, value in told[0][1].items():
                setattr(progress, name, value)
            return "interrupted" if any(pressed for pressed, _ in told) else limit(progress)

        return reason

    def describe(self, accumulate: int, device: torch.device, *, sharded: bool) -> str:
        """Return the number of processes, their backend and the batches of a step."""
        if self.size == 1:
            return ""
        how = "nccl" if device.type == "cuda" else "gloo"
        each = "Each has a share of every layer" if sharded else "Each has the whole model"
        batches = f"{self.size * accumulate:,} batches a step"
        return f" {self.size} processes ({how}), {batches}. {each}."

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Turn the loss of another rank into a DragomanError on rank 0; the others end silently."""
        try:
            yield
        except RuntimeError as error:
            if not any(word in str(error).lower() for word in LOST):
                raise
            if not self.leads:
                os._exit(1)  # there is nothing to clean up, and threads of gloo are still at work
            who = "another process of the run has ended, and it or its launcher has said why"
            if "timed out" in str(error).lower():
                late = [r for r in range(self.size) if int(self._store.get(str(r))) < self._count]
                names = ", ".join(map(str, late)) or "another"
                who = f"process {names} of {self.size} has not answered for {PROMPT}"
            raise DragomanError(f"{who}; {GO_ON}") from error


ALONE = World()

LOST = ("gloo", "nccl", "connection", "socket", "timed out", "broken pipe")
"""Words of the messages of a process whose peer is gone or does not answer."""


LETTER = 1024
"""Bytes that go from each rank to each at once; a longer value takes a second exchange."""


def _exchange(words: bytes, size: int, group: dist.ProcessGroup | None) -> list[bytes]:
    """Give bytes to all ranks of a group; return those of all, by rank."""
    letter, most = len(words).to_bytes(8, "big") + words, LETTER
    while True:
        mine = _bytes(letter[:most].ljust(most))
        letters = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(letters, mine, group=group)
        told = [each.numpy().tobytes() for each in letters]
        ends = [8 + int.from_bytes(each[:8], "big") for each in told]
        if max(ends) <= most:
            return [each[8:end] for each, end in zip(told, ends, strict=True)]
        most = max(ends)  # which all see


def _bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _prefix(rank: int) -> str:
    return f"rank{rank}/" if rank else ""


class _Loss(JobLoss):
    """A job's loss with one parameter that no batch uses.

    Looking for such, as `layer_drop` makes them, DDP would warn that there is none. As it looks, it
    does not regroup the gradients after its first step, which would change the order of their sums
    in a resumed run.
    """

    def __init__(self, job: Job[Any]) -> None:
        super().__init__(job)
        self.unused = nn.Parameter(torch.zeros((), device=next(job.model.parameters()).device))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStepper(Stepper[BatchT]):
    """Takes a step on all ranks at once; its loss is wrapped in `DistributedDataParallel`."""

    world: World
    too_large: Callable[[Sequence[BatchT]], str]
    silence: Callable[[], AbstractContextManager[None]] | None
    """Makes the context of backward passes that exchange nothing; None where each has to."""

    def accumulate(self, batches: Sequence[BatchT]) -> tuple[float, int]:
        """Compute the gradients of the mean loss over all ranks; return that loss and the tokens.

        The ranks agree before the last backward pass, in which they wait for each other. With
        shards they wait all the time: one that fails says so itself, and the others lose it.
        """
        counts = [(batch.num_targets, batch.num_tokens) for batch in batches]
        told = [each for mine in self.world.gather(counts) for each in mine]
        num_targets, num_tokens = map(sum, zip(*told, strict=True))
        means: list[Tensor] = []

        def forward(batch: BatchT) -> Tensor:
            with self.precision():
                mean: Tensor = self.loss(batch) * (self.world.size / num_targets)
            means.append(mean.detach())
            return mean

        def begin() -> Tensor:
            with self.silence() if self.silence else nullcontext():
                for batch in batches[:-1]:
                    self.scaled(forward(batch)).backward()
            return forward(batches[-1])

        last = None
        if self.silence:
            last = self.world.together(begin, lambda: self.too_large(batches))
        with self.world.connected():
            self.scaled(begin() if last is None else last).backward()
        mine = sum(torch.stack(means).tolist()) / self.world.size
        return sum(self.world.gather(mine)), num_tokens


def launched() -> tuple[int, int]:
    """Return the rank of this process and their number, as torchrun says; 0 and 1 without it."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


@cache
def join_world() -> World:
    """Join the processes that this one was started with; a second call returns the same."""
    rank, size = launched()
    if STORE_PORT in os.environ:
        threading.Thread(target=_end_with_launcher, daemon=True).start()
    return ALONE if size == 1 else World(rank, size)


def _end_with_launcher() -> None:
    """End this process when the launcher has ended, which holds the other end of its input."""
    while os.read(0, 1):
        pass
    os._exit(1)
