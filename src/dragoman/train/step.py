"""One optimizer step: micro-batches in, weights updated."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor, nn

from dragoman.train.job import BatchT
from dragoman.train.optimizer import gradient_sizes, optimizer_tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The figures of one step."""

    loss: float
    """Mean over the step's targets, with label smoothing, in nats."""
    grad_norm: float
    """Gradient norm before clipping."""
    learning_rate: float
    num_tokens: int
    """Number of tokens, without padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A step that was skipped because its loss or gradient is not finite."""

    loss: float
    grad_norm: float
    num_tokens: int
    examples: tuple[int, ...] = ()
    """The numbers, from 1, of the examples of the faulty batch, or of all if none was found."""
    expected: bool = False
    """Whether the loss scale was too large, which loss scaling detects now and then."""
    where: str = ""
    """Where the first non-finite number was when the batches ran again; empty if there was none."""

    def __str__(self) -> str:
        of_loss = not math.isfinite(self.loss)
        what = f"the loss is {self.loss}" if of_loss else f"the gradient norm is {self.grad_norm}"
        shown = f"{[*self.examples[:5]]}" + (" ..." if len(self.examples) > 5 else "")
        first = f", first {self.where}" if self.where else ""
        return f"{what}, in a batch of the examples {shown}{first}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepper(Generic[BatchT]):
    """`step(batches, rate)`: the gradient of the mean loss over all targets of all batches.

    The loss of each micro-batch is a sum, divided by the number of targets of the whole step, so
    `k` micro-batches equal one batch (a mean of means would give short batches too much weight).
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Callable[[BatchT], Tensor]
    """Sums the loss over a batch's targets."""
    precision: Callable[[], AbstractContextManager[object]]
    """Returns the autocast context of the forward pass."""
    clip_norm: float | None
    scaler: torch.amp.GradScaler | None = None
    """Scales the loss in fp16, where small gradients would be 0 (Micikevicius et al., 2018)."""

    def __call__(self, batches: Sequence[BatchT], learning_rate: float) -> StepResult | Skipped:
        """Take one step; a non-finite loss or gradient leaves weights and optimizer unchanged."""
        loss, num_tokens = self.accumulate(batches)
        scale = 1.0
        if self.scaler is not None:
            scale = self.scaler.get_scale()
            self.scaler.unscale_(self.optimizer)
        limit = float("inf") if self.clip_norm is None else self.clip_norm
        grad_norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        finite = math.isfinite(loss) and math.isfinite(grad_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        if finite:
            self.optimizer.step()
        if self.scaler is not None:
            self.scaler.update()
        self.optimizer.zero_grad()
        if not finite:
            expected = scale > 1 and math.isfinite(loss)
            return Skipped(loss=loss, grad_norm=grad_norm, num_tokens=num_tokens, expected=expected)
        return StepResult(
            loss=loss, grad_norm=grad_norm, learning_rate=learning_rate, num_tokens=num_tokens
        )

    def weights(self) -> Mapping[str, Tensor]:
        """Return the complete weights by name, for validation and checkpoints."""
        return dict(self.model.named_parameters())

    def moments(self) -> Mapping[str, Tensor]:
        """Return the complete optimizer state by name, for checkpoints."""
        return optimizer_tensors(self.optimizer, self.model)

    def gradient_sizes(self) -> Mapping[str, float]:
        """Return the size of the latest gradients of each weight by name, if known."""
        return gradient_sizes(self.optimizer, self.model)

    def scaled(self, mean: Tensor) -> Tensor:
        """Return the value to differentiate."""
        return mean if self.scaler is None else self.scaler.scale(mean)

    def accumulate(self, batches: Sequence[BatchT]) -> tuple[float, int]:
        """Compute the gradients of the mean loss; return that loss and the number of tokens."""
        num_targets = sum(batch.num_targets for batch in batches)
        means: list[Tensor] = []
        for batch in batches:
            with self.precision():
                summed = self.loss(batch)
            mean = summed / num_targets
            self.scaled(mean).backward()
            means.append(mean.detach())
        loss = sum(torch.stack(means).tolist())  # read once: this synchronizes a GPU
        return loss, sum(batch.num_tokens for batch in batches)
