"""How much memory a training step and decoding take at their peak, from a config alone.

The peak is found by a rehearsal (`memory_rehearsal.py`): the real model, loss and backward pass run
on tensors without numbers, and the storages that would be alive are followed. So it holds for every
variant and pattern; it has no room for error but what kernels take inside one operator.

In numbers of four bytes a training step holds `N` weights, up to `N` gradients and `2 N` moments of
Adam (Kingma and Ba, 2015), in bf16 too: autocast rounds the factors of products and keeps weights
in float32. Beside them stand activations, which grow with the tokens of the batch: each layer keeps
the inputs of its products and norms, and the `T x S` weights of its heads where they are kept;
checkpointing keeps a layer's input alone (Chen et al., 2016). The logits, `tokens x V`, which would
be the largest of all, never exist at once (`train/objective.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.cost.cache import cache_bytes
from dragoman.cost.flops import Shape
from dragoman.cost.memory_decoding import DecodingMemory, decoding_memory
from dragoman.cost.memory_rehearsal import CPU, Rehearsal, real_id
from dragoman.data.packed import LanguageBatch
from dragoman.models import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    ModelConfig,
    build,
)
from dragoman.models.heads import MaskedLanguageOutput
from dragoman.nn import Decoder, Encoder, Precision, autocast
from dragoman.train.objective import masked_loss, next_token_loss, reference_loss, summed_loss

__all__ = [
    "DecodingMemory",
    "TrainingMemory",
    "cache_bytes",
    "decoding_memory",
    "training_memory",
]

Optimizer = Literal["adam", "adamw"]

MOMENTS: dict[Optimizer, int] = {"adam": 2, "adamw": 2}  # numbers for each parameter
COUNT_BYTES = 4  # each tensor of parameters has its own count of steps
SMOOTHING = 0.1  # its size changes no tensor's


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes at the moment of a training step when most are alive, by what they hold."""

    weights: int
    """The parameters."""
    gradients: int
    """The gradients that are ready at that moment; all of them would be as large as the weights."""
    optimizer: int
    """Adam's two moments of each parameter, and its count of steps."""
    activations: int
    """What the backward pass still needs, and what operators are working on."""
    kept: int
    """What the forward pass leaves for the backward pass: the activations between the two."""

    @property
    def total(self) -> int:
        """The peak."""
        return self.weights + self.gradients + self.optimizer + self.activations


def training_memory(
    config: ModelConfig,
    shape: Shape,
    *,
    optimizer: Optimizer = "adam",
    precision: Precision = "fp32",
    activation_checkpointing: bool = False,
    accumulate: int = 1,
) -> TrainingMemory:
    """Rehearse a step and return its peak. Takes a second or so, and next to no memory.

    With `accumulate` batches the gradients of the first are there while the second is learnt from.
    """
    rehearsal = Rehearsal()
    model = rehearsal.build(lambda: build(config)).train()
    weights = rehearsal.now.alive
    for stack in model.modules():
        if isinstance(stack, Encoder | Decoder):
            stack.checkpointing = activation_checkpointing
    loss = _loss(model, config, shape)
    kept = 0
    with rehearsal:
        for _ in range(min(accumulate, 2)):
            before = rehearsal.now.alive
            with autocast(precision, CPU):
                summed = loss()
            kept = rehearsal.now.alive - before
            summed.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    peak = rehearsal.peak
    counts = sum(COUNT_BYTES for _ in model.parameters())
    return TrainingMemory(
        weights=weights,
        gradients=peak.gradients,
        optimizer=MOMENTS[optimizer] * weights + counts,
        activations=peak.alive - weights - peak.gradients,
        kept=kept,
    )


def _loss(model: nn.Module, config: ModelConfig, shape: Shape) -> Callable[[], Tensor]:
    """Return the loss of a batch of this shape, as the jobs of `train/jobs` compute it."""
    ids_BL = torch.full((shape.rows, shape.length), real_id(config))
    targets_BL = _hide(ids_BL, shape.targets)
    match model:
        case EncoderDecoder():
            src_BS = torch.full((shape.rows, shape.src_length), real_id(config))
            real_BL = targets_BL.where(targets_BL >= 0, model.pad_id)
            return lambda: summed_loss(model, src_BS, ids_BL, real_BL, SMOOTHING)
        case DecoderOnly():
            batch = LanguageBatch(
                inputs_BL=ids_BL,
                targets_BL=targets_BL.where(targets_BL >= 0, model.pad_id),
                document_lengths=shape.documents,
                num_tokens=ids_BL.numel(),
                num_targets=ids_BL.numel(),
                indices=np.arange(shape.rows),
            )
            return lambda: next_token_loss(model, batch, SMOOTHING)
        case EncoderOnly(head=MaskedLanguageOutput()):
            return lambda: masked_loss(model, ids_BL, targets_BL, SMOOTHING)
        case _:
            return lambda: _classes_loss(model(ids_BL))


def _classes_loss(logits: Tensor) -> Tensor:
    """The loss of labels, one for each text or each token."""
    logits_MC = logits.flatten(0, -2)
    return reference_loss(logits_MC, torch.zeros(len(logits_MC), dtype=torch.long), SMOOTHING)


def _hide(ids_BL: Tensor, targets: int | None) -> Tensor:
    """Leave as many targets as there shall be, and -1 elsewhere."""
    if targets is None:
        return ids_BL
    places_BL = torch.arange(ids_BL.numel()).view_as(ids_BL)
    return ids_BL.where(places_BL < targets, -1)
