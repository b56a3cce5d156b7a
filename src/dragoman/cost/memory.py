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
from dragoman.models import (
    DecoderOnly,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderOnly,
    ModelConfig,
    build,
)
from dragoman.models.heads import MaskedLanguageOutput
from dragoman.nn import Decoder, Encoder, Precision, autocast
from dragoman.tasks.generate.batches import LanguageBatch
from dragoman.train.objective import (
    masked_guesses,
    masked_loss,
    next_token_loss,
    reference_loss,
    summed_loss,
)

__all__ = [
    "DecodingMemory",
    "TrainingMemory",
    "cache_bytes",
    "decoding_memory",
    "training_memory",
    "validation_memory",
]

Optimizer = Literal["adam", "adamw"]

MOMENTS: dict[Optimizer, int] = {"adam": 2, "adamw": 2}  # numbers for each parameter
COUNT_BYTES = 4  # each tensor of parameters has its own count of steps
SMOOTHING = 0.1  # its size changes no tensor's


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes that a training step needs, by what they hold.

    The peak is less than their sum where activations are freed before the gradients are complete,
    and more where operators need much memory of their own.
    """

    weights: int
    """The parameters."""
    gradients: int
    """One number for each parameter, once the backward pass is complete."""
    optimizer: int
    """Adam's two moments of each parameter, and its count of steps."""
    activations: int
    """What the forward pass keeps for the backward pass."""
    total: int
    """The peak."""


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
    weights = rehearsal.now
    for stack in model.modules():
        if isinstance(stack, Encoder | Decoder):
            stack.checkpointing = activation_checkpointing
    loss = _loss(model, config, shape)
    kept = 0
    with rehearsal:
        for _ in range(min(accumulate, 2)):
            before = rehearsal.now
            with autocast(precision, CPU):
                summed = loss()
            kept = rehearsal.now - before
            summed.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    counts = sum(COUNT_BYTES for _ in model.parameters())
    moments = MOMENTS[optimizer] * weights + counts
    return TrainingMemory(
        weights=weights,
        gradients=weights,
        optimizer=moments,
        activations=kept,
        total=rehearsal.peak + moments,
    )


def validation_memory(
    config: ModelConfig,
    shape: Shape,
    translating: Shape | None,
    *,
    optimizer: Optimizer = "adam",
    precision: Precision = "fp32",
) -> int:
    """Rehearse a validation between two steps and return its peak.

    It computes the loss of a batch of the first shape, without gradients, and decodes greedily (in
    float32, as translating does) one of the second, where there is one.
    """
    rehearsal = Rehearsal()
    with torch.inference_mode():
        model = rehearsal.build(lambda: build(config)).eval()
        weights = rehearsal.now
        loss = _loss(model, config, shape)
        with autocast(precision, CPU), rehearsal:
            loss()
    peak = rehearsal.peak
    if translating is not None and isinstance(config, EncoderDecoderConfig):
        found = decoding_memory(config, translating)
        # when a sentence ends, the others' keys and values of the source are copied
        logits = 4 * translating.rows * config.tgt_vocab_size
        ending = found.weights + found.cache + 2 * found.memory + 2 * logits
        peak = max(peak, found.total, ending)
    return peak + MOMENTS[optimizer] * weights


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
        case EncoderOnly(head=MaskedLanguageOutput()) if torch.is_inference_mode_enabled():
            return lambda: masked_guesses(model, ids_BL, targets_BL)[0]
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
