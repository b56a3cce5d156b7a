r"""Training with several processes: adds all that they need to a run that knows of only one.

Each process, called a rank, has the whole model; PyTorch's `DistributedDataParallel` (Li et al.,
2020, https://arxiv.org/abs/2006.15704) averages their gradients. A step of `n` ranks draws `n`
times `train.accumulate` batches from the one stream. Batch `i` goes to rank `i mod n`, and the step
equals that of one process with all of them:

.. math:: \nabla \frac{1}{T} \sum_i \ell_i
          = \frac{1}{n} \sum_{r} \nabla \frac{n}{T} \sum_{i \bmod n = r} \ell_i

where :math:`\ell_i` sums the losses of batch `i` and :math:`T` is the number of targets of all
batches. Only rank 0 validates, writes and reports. An error on one rank ends all ranks, with one
message.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from dragoman.errors import DragomanError
from dragoman.train.config import TrainConfig
from dragoman.train.device import Place
from dragoman.train.job import BatchT, Job
from dragoman.train.optimizer import optimizer_tensors
from dragoman.train.processes import ALONE, Processes
from dragoman.train.shard import (
    JobLoss,
    sharded_loss,
    sharded_optimizer,
    whole_tensors,
)
from dragoman.train.step import Stepper

PROMPT = timedelta(minutes=10)
"""How long a rank waits for the others within a step."""
PATIENT = timedelta(hours=24)
"""How long a rank waits while rank 0 tokenizes, validates or writes."""
GO_ON = "the same command resumes from the last checkpoint"

STORE_PORT = "DRAGOMAN_STORE_PORT"
"""Environment variable: the port on 127.0.0.1 where the launcher of `--nproc` keeps the store."""

LOST = ("gloo", "nccl", "connection", "socket", "timed out", "broken pipe")
"""Words in the errors of a process whose peer is gone or does not answer."""
LETTER = 1024
"""Bytes that each rank sends to each other in one exchange; a longer value takes a second one."""

Value = TypeVar("Value")


class Ranks(Processes):
    """Several processes, connected by gloo or NCCL."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._count = 0
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            if STORE_PORT in os.environ:  # the launcher's store; otherwise torchrun's
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

    def gather(self, value: Value, *, patient: bool = False) -> list[Value]:
        """Send a value to all ranks; return the values of all, by rank."""
        self._count += 1
        with self.connected():
            self._store.set(str(self.rank), str(self._count))
            words = msgspec.msgpack.encode(value)
            told = _exchange(words, self.size, self._patient if patient else None)
            return [msgspec.msgpack.decode(each) for each in told]

    def distribute(
        self,
        stepper: Stepper[BatchT],
        job: Job[BatchT],
        config: TrainConfig,
        place: Place,
        too_large: Callable[[Sequence[BatchT]], str],
    ) -> Stepper[BatchT]:
        """Return the stepper of all ranks, with a sharded or a replicated model."""
        given: dict[str, Any] = {each.name: getattr(stepper, each.name) for each in fields(stepper)}
        if not place.sharded:
            loss = DistributedDataParallel(
                _Loss(job), gradient_as_bucket_view=True, find_unused_parameters=True
            )
            more = {"loss": loss, "no_sync": loss.no_sync, "too_large": too_large}
            return ReplicatedStepper(**{**given, **more}, ranks=self)
        state = stepper.moments()  # before sharding
        shares = sharded_loss(job, place.device, self.size, copy=self.leads)
        optimizer = sharded_optimizer(shares.model, config, state)
        own = {"model": shares.model, "optimizer": optimizer, "loss": shares}
        return ShardedStepper(**{**given, **own}, ranks=self)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Turn the loss of another rank into a DragomanError on rank 0; others exit silently."""
        try:
            yield
        except RuntimeError as error:
            if not any(word in str(error).lower() for word in LOST):
                raise
            if not self.leads:
                os._exit(1)  # nothing to clean up, and gloo's threads still run
            who = "another process of the run has ended, and it or its launcher has said why"
            if "timed out" in str(error).lower():
                late = [r for r in range(self.size) if int(self._store.get(str(r))) < self._count]
                names = ", ".join(map(str, late)) or "another"
                who = f"process {names} of {self.size} has not answered for {PROMPT}"
            raise DragomanError(f"{who}; {GO_ON}") from error


def _exchange(words: bytes, size: int, group: dist.ProcessGroup | None) -> list[bytes]:
    """Send bytes to all ranks of a group; return the bytes of all, by rank."""
    letter, most = len(words).to_bytes(8, "big") + words, LETTER
    while True:
        mine = torch.frombuffer(bytearray(letter[:most].ljust(most)), dtype=torch.uint8)
        letters = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(letters, mine, group=group)
        told = [each.numpy().tobytes() for each in letters]
        ends = [8 + int.from_bytes(each[:8], "big") for each in told]
        if max(ends) <= most:
            return [each[8:end] for each, end in zip(told, ends, strict=True)]
        most = max(ends)  # the same on all ranks


class _Loss(JobLoss):
    """A job's loss with one parameter that no batch uses.

    DDP looks for unused parameters, which `layer_drop` causes, and would warn if there were none.
    With this search it does not regroup the gradients after its first step, which would change the
    order of their sums in a resumed run.
    """

    def __init__(self, job: Job[Any]) -> None:
        super().__init__(job)
        self.unused = nn.Parameter(torch.zeros((), device=next(job.model.parameters()).device))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStepper(Stepper[BatchT]):
    """Takes a step on all ranks at once."""

    ranks: Ranks

    def accumulate(self, batches: Sequence[BatchT]) -> tuple[float, int]:
        """Compute the gradients of the mean loss over all ranks; return loss and token count."""
        counts = [(batch.num_targets, batch.num_tokens) for batch in batches]
        told = [each for mine in self.ranks.gather(counts) for each in mine]
        num_targets, num_tokens = map(sum, zip(*told, strict=True))
        means: list[Tensor] = []

        def forward(batch: BatchT) -> Tensor:
            with self.precision():
                mean: Tensor = self.loss(batch) * (self.ranks.size / num_targets)
            means.append(mean.detach())
            return self.scaled(mean)

        self.backward(forward, batches)
        mine = sum(torch.stack(means).tolist()) / self.ranks.size
        return sum(self.ranks.gather(mine)), num_tokens

    def backward(self, forward: Callable[[BatchT], Tensor], batches: Sequence[BatchT]) -> None:
        """Run each batch forward and backward, and sum the gradients over all ranks."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedStepper(RankStepper[BatchT]):
    """Each rank has the whole model; the loss is wrapped in `DistributedDataParallel`."""

    no_sync: Callable[[], AbstractContextManager[None]]
    """Returns the context of backward passes without communication."""
    too_large: Callable[[Sequence[BatchT]], str]

    def backward(self, forward: Callable[[BatchT], Tensor], batches: Sequence[BatchT]) -> None:
        """Check that no rank failed before the last backward pass, in which they synchronize."""

        def begin() -> Tensor:
            with self.no_sync():
                for batch in batches[:-1]:
                    forward(batch).backward()
            return forward(batches[-1])

        last = self.ranks.together(begin, lambda: self.too_large(batches))
        with self.ranks.connected():
            last.backward()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedStepper(RankStepper[BatchT]):
    """Each rank has a share of every parameter, of its gradient and of its moments."""

    def backward(self, forward: Callable[[BatchT], Tensor], batches: Sequence[BatchT]) -> None:
        """Run the batches; a rank that fails reports it, and the others lose the connection.

        The ranks wait for each other throughout, so they cannot agree on errors first.
        """
        with self.ranks.connected():
            for batch in batches:
                forward(batch).backward()

    def weights(self) -> Mapping[str, Tensor]:
        """Gather the whole weights on rank 0."""
        return whole_tensors(dict(self.model.named_parameters()), keep=self.ranks.leads)

    def moments(self) -> Mapping[str, Tensor]:
        """Gather the whole state of the optimizer on rank 0."""
        state = optimizer_tensors(self.optimizer, self.model)
        return whole_tensors(state, keep=self.ranks.leads)

    def gradient_sizes(self) -> Mapping[str, float]:
        """Return an empty mapping: no rank has a whole moment."""
        return {}


def launched() -> tuple[int, int]:
    """Return the rank of this process and the number of ranks from torchrun; 0 and 1 without it."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


@cache
def join_processes() -> Processes:
    """Join the processes that this one was started with; later calls return the same object."""
    rank, size = launched()
    if STORE_PORT in os.environ:
        threading.Thread(target=_end_with_launcher, daemon=True).start()
    return ALONE if size == 1 else Ranks(rank, size)


def _end_with_launcher() -> None:
    """End this process when the launcher, which holds the other end of its input, has ended."""
    while os.read(0, 1):
        pass
    os._exit(1)
