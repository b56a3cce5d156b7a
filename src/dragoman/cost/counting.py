"""What a step takes, counted by running the task's own code without numbers.

A training step and a validation's loss are dry runs (`dryrun.py`) of the real model and of the
task's own loss, so operations and the peak of memory hold for every variant, pattern and task.
Results are cached by config and shape.

In numbers of four bytes a training step holds `N` weights, up to `N` gradients and `2 N` moments of
Adam (Kingma and Ba, 2015), in bf16 too, and activations, which grow with the tokens of the batch:
each layer keeps the inputs of its products and norms, and the `T x S` weights of its heads where
they are kept; checkpointing keeps a layer's input alone (Chen et al., 2016). The logits, `tokens x
V`, which would be the largest of all, never exist at once (`train/objective.py`).

The backward pass takes each product twice more, once for either factor, so a training step takes
three times the operations of the forward pass, or four with activation checkpointing, which runs
the layers again. With all matrices of a layer `N`, that is the `6 N` for each token of Kaplan et
al. (2020), plus the scores, which grow with the length.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from dragoman.cost.dryrun import CPU, DryRun
from dragoman.data.shape import Shape
from dragoman.models import EncoderOnly, ModelConfig
from dragoman.nn import Precision, autocast
from dragoman.nn.cpu.native import imitated
from dragoman.nn.layers import Stack
from dragoman.train.config import TrainConfig
from dragoman.train.recipe import Work

FLOAT = 4  # bytes of a number
MOMENTS = 2  # numbers of Adam for each parameter
COUNT_BYTES = 4  # each tensor of parameters has its own count of steps
SMOOTHING = 0.1  # its size changes no tensor's
PASSES = 1.5  # all products with a matrix by those in which it is a factor, not its gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes that a training step needs, by what they hold.

    The peak is less than their sum where activations are freed before the gradients are complete,
    and more where operators need much memory of their own.
    """

    weights: int
    gradients: int
    optimizer: int
    """Adam's two moments of each parameter and its count of steps; the average, if there is one."""
    activations: int
    """What the forward pass keeps for the backward pass."""
    total: int
    """The peak."""


class TrainingStep(NamedTuple):
    """Operations of one batch, forward and backward, and bytes of a whole step."""

    flops: int
    scores: int
    """Of queries with keys and weights with values: what grows with the length."""
    output: int
    """With the matrices of the output layer, or of the head of an encoder."""
    memory: TrainingMemory


def step_of(
    work: Work,
    precision: Precision,
    *,
    shape: Shape | None = None,
    checkpointing: bool | None = None,
) -> TrainingStep:
    """Run a step of a recipe dry, with another shape or checkpointing if given."""
    train, shape = work.recipe.train, shape or work.shape
    if checkpointing is None:
        checkpointing = train.activation_checkpointing
    if train.r_drop:
        shape = replace(shape, rows=2 * shape.rows)  # each is read twice
    counts = TrainConfig(  # what of it counts: runs that differ in the rest share what was counted
        max_steps=1,
        accumulate=train.accumulate,
        activation_checkpointing=checkpointing,
        ema=train.ema,
    )
    return training_step(work.kind, work.config, shape, counts, precision)


@lru_cache(maxsize=64)
def training_step(
    kind: type[Any],
    config: ModelConfig,
    shape: Shape,
    train: TrainConfig,
    precision: Precision = "fp32",
) -> TrainingStep:
    """Run a step of such a recipe dry.

    With several batches the gradients of the first exist during the forward pass of the next.
    """
    dry = DryRun()
    model = dry.build(config).train()
    weights = dry.now
    for stack in model.modules():
        if isinstance(stack, Stack):
            stack.checkpointing = train.activation_checkpointing
    batch = kind.sample(config, shape, np.random.default_rng(0))
    batches, kept = min(train.accumulate, 2), 0
    with dry, imitated():
        for _ in range(batches):
            before = dry.now
            with autocast(precision, CPU):
                loss = kind.loss(model, batch, SMOOTHING)
            kept = dry.now - before
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    states = (MOMENTS + (train.ema is not None)) * weights
    states += COUNT_BYTES * sum(1 for _ in model.parameters())
    last = model.head if isinstance(model, EncoderOnly) else model.output
    output = sum(dry.flops_with(matrix) for matrix in last.parameters() if matrix.dim() > 1)
    return TrainingStep(
        flops=dry.flops // batches,
        scores=dry.pairwise // batches,
        output=round(PASSES * output / batches),
        memory=TrainingMemory(
            weights=weights,
            gradients=weights,
            optimizer=states,
            activations=kept,
            total=dry.peak + states,
        ),
    )


@lru_cache(maxsize=64)
@torch.inference_mode()
def forward_pass(
    kind: type[Any], config: ModelConfig, shape: Shape, *, precision: Precision = "fp32"
) -> DryRun:
    """Run the loss of a batch dry, as a validation does: without gradients."""
    dry = DryRun()
    model = dry.build(config).eval()
    batch = kind.sample(config, shape, np.random.default_rng(0))
    with autocast(precision, CPU), dry, imitated():
        kind.loss(model, batch, SMOOTHING)
    return dry
