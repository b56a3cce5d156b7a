"""Masked pretraining, as others see it: what an estimate asks, and its name."""

import numpy as np
import torch
from torch import Tensor

from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.pretrain.batches import NO_TARGET, MaskedBatch
from dragoman.tasks.pretrain.job import assemble
from dragoman.tasks.pretrain.recipe import MaskedRecipe
from dragoman.tasks.task import Task
from dragoman.tasks.work import (
    Shape,
    Work,
    Workload,
    random_ids,
    some_targets,
    text_shape,
    text_work,
)
from dragoman.train.objective import masked_guesses, masked_loss


def _work(recipe: MaskedRecipe, length: int | None) -> Work:
    return text_work(recipe, length, recipe.masking.share)


def _sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> MaskedBatch:
    ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
    return MaskedBatch(
        ids_BL=ids_BL,
        targets_BL=some_targets(ids_BL, shape.targets, NO_TARGET),
        num_tokens=ids_BL.numel(),
        num_targets=ids_BL.numel() if shape.targets is None else shape.targets,
        indices=np.arange(shape.rows),
    )


def _loss(model: EncoderOnly, batch: MaskedBatch, smoothing: float) -> Tensor:
    if not torch.is_grad_enabled():  # a validation, which counts the right guesses too
        return masked_guesses(model, batch.ids_BL, batch.targets_BL)[0]
    return masked_loss(model, batch.ids_BL, batch.targets_BL, smoothing)


TASK = Task(
    recipe=MaskedRecipe,
    assemble=assemble,
    kind="masked-language",
    does="guesses hidden words and is there to start from (dragoman train --from)",
    workload=Workload(work=_work, sample=_sample, loss=_loss, shape=text_shape),
    use="dragoman train RECIPE --from {folder}",
)
