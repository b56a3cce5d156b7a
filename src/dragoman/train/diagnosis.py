"""Where a number that is not finite comes from: batches run again, with every module watched."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.train.checkpoint import random_state, set_random_state
from dragoman.train.job import BatchT, Job
from dragoman.train.step import Skipped, examples_of


def find_not_finite(
    job: Job[BatchT],
    batches: Sequence[BatchT],
    precision: Callable[[], AbstractContextManager[object]],
) -> tuple[BatchT, str] | None:
    """Return the first batch that gives a number that is not finite, and where that is first.

    Looked at are, in this order: what each module returns, the loss, its gradient in what each
    module returned, and that in the weights. None where all are finite, as
    where only the sum of several batches is not. No gradient is left behind.
    """
    for batch in batches:
        seen: list[str] = []
        with ExitStack() as stack:
            for name, module in job.model.named_modules():
                watch = _OutputHook(name or "the model", seen)
                stack.callback(module.register_forward_hook(watch).remove)
            with precision():
                loss = job.loss(batch)
            _note(seen, loss, "in the loss")
            learning = {n: p for n, p in job.model.named_parameters() if p.requires_grad}
            mean = loss / batch.num_targets
            found = torch.autograd.grad(mean, [*learning.values()], allow_unused=True)
        for name, gradient in zip(learning, found, strict=True):
            _note(seen, gradient, f"in the gradient of {name}")
        if seen:
            return batch, seen[0]
    return None


class Fault(NamedTuple):
    """What one process says of its batches."""

    examples: tuple[int, ...]
    """Those of the batch at fault; none where it has none."""
    where: str
    every: tuple[int, ...]
    """Those of all its batches."""


def fault_of(found: tuple[BatchT, str] | None, batches: Sequence[BatchT]) -> Fault:
    """Return what `find_not_finite` found, by numbers of examples."""
    batch, where = ((), "") if found is None else ([found[0]], found[1])
    return Fault(examples_of(*batch), where, examples_of(*batches))


def explained(skipped: Skipped, told: Sequence[Fault]) -> Skipped:
    """Return a skipped step with the first fault of any process; all examples where none is."""
    every = tuple(number for fault in told for number in fault.every)
    first = next((fault for fault in told if fault.examples), Fault(every, "", every))
    return replace(skipped, examples=first.examples, where=first.where)


@contextmanager
def replayed(states: dict[str, Tensor]) -> Iterator[None]:
    """Draw again what was drawn since `random_state` gave `states`, then restore the state."""
    now = random_state()
    set_random_state(states)
    try:
        yield
    finally:
        set_random_state(now)


class _OutputHook:
    """A forward hook that looks at what a module returns, and at the gradient that it gets."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self._name, self._seen = name, seen

    def __call__(self, module: nn.Module, given: object, output: Any) -> None:  # noqa: ANN401, ARG002
        for tensor in output if isinstance(output, list | tuple) else [output]:
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                _note(self._seen, tensor, f"in what {self._name} returns")
                if tensor.requires_grad:
                    tensor.register_hook(self._look)

    def _look(self, gradient: Tensor) -> None:
        _note(self._seen, gradient, f"in the gradient of what {self._name} returns")


def _note(seen: list[str], tensor: Tensor | None, where: str) -> None:
    if tensor is not None and not math.isfinite(tensor.detach().abs().max().item()):
        seen.append(where)
