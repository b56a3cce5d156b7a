"""Find the origin of a non-finite number by rerunning batches with a hook on every module."""

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
"""The numbers of a batch's examples, from 1, and where its first fault is."""


def find_not_finite(
    job: Job[BatchT],
    batches: Sequence[BatchT],
    precision: Callable[[], AbstractContextManager[object]],
) -> Fault | None:
    """Return the first batch that produces a non-finite number, and where that first appears.

    Checked in this order: the output of each module, the loss, the gradient of each module's
    output, and the gradient of the weights. Returns None if all are finite, for example when only
    the sum of several batches is not. Leaves no gradients behind.
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
    """Return the numbers of the examples in these batches, from 1."""
    return tuple(int(i) + 1 for batch in batches for i in batch.indices)


def _look_at_output(
    seen: list[str],
    name: str,
    _module: nn.Module,
    _given: object,
    output: Any,  # noqa: ANN401
) -> None:
    """Check the output of a module and, in the backward pass, its gradient."""
    for tensor in output if isinstance(output, list | tuple) else [output]:
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            _look_at(seen, f"in what {name} returns", tensor)
            if tensor.requires_grad:
                where = f"in the gradient of what {name} returns"
                tensor.register_hook(partial(_look_at, seen, where))


def _look_at(seen: list[str], where: str, tensor: Tensor | None) -> None:
    if tensor is not None and not math.isfinite(tensor.detach().abs().max().item()):
        seen.append(where)
