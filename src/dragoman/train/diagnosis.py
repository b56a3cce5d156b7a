"""Where a number that is not finite comes from: batches run again, with every module watched."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.train.job import BatchT, Job

Fault = tuple[tuple[int, ...], str]
"""The numbers, from 1, of the examples of a batch, and where its first fault is."""


def find_not_finite(
    job: Job[BatchT],
    batches: Sequence[BatchT],
    precision: Callable[[], AbstractContextManager[object]],
) -> Fault | None:
    """Return the first batch that gives a number that is not finite, and where that is first.

    Looked at are, in this order: what each module returns, the loss, its gradient in what each
    module returned, and that in the weights. None where all are finite, as
    where only the sum of several batches is not. No gradient is left behind.
    """
    for batch in batches:
        seen: list[str] = []
        with ExitStack() as stack:
            for name, module in job.model.named_modules():
                hook = partial(_look_at_output, seen, name or "the model")
                stack.callback(module.register_forward_hook(hook).remove)
            with precision():
                loss = job.loss(batch)
            _look_at(seen, "in the loss", loss)
            learning = {n: p for n, p in job.model.named_parameters() if p.requires_grad}
            mean = loss / batch.num_targets
            found = torch.autograd.grad(mean, [*learning.values()], allow_unused=True)
        for name, gradient in zip(learning, found, strict=True):
            _look_at(seen, f"in the gradient of {name}", gradient)
        if seen:
            return examples_of([batch]), seen[0]
    return None


def examples_of(batches: Sequence[Batch]) -> tuple[int, ...]:
    """Return the numbers of the examples of these batches, from 1."""
    return tuple(int(i) + 1 for batch in batches for i in batch.indices)


def _look_at_output(
    seen: list[str],
    name: str,
    _module: nn.Module,
    _given: object,
    output: Any,  # noqa: ANN401
) -> None:
    """Look at what a module returns and, in the backward pass, at the gradient of that."""
    for tensor in output if isinstance(output, list | tuple) else [output]:
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            _look_at(seen, f"in what {name} returns", tensor)
            if tensor.requires_grad:
                where = f"in the gradient of what {name} returns"
                tensor.register_hook(partial(_look_at, seen, where))


def _look_at(seen: list[str], where: str, tensor: Tensor | None) -> None:
    if tensor is not None and not math.isfinite(tensor.detach().abs().max().item()):
        seen.append(where)
