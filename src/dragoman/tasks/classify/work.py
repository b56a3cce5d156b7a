"""What estimates ask of classification."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.classify.batches import ClassBatch
from dragoman.tasks.classify.recipe import ClassifyRecipe
from dragoman.tasks.work import (
    SOME_LABELS,
    Shape,
    Work,
    Workload,
    random_ids,
    text_shape,
    text_work,
)
from dragoman.train.objective import reference_loss

__all__ = ["WORKLOAD"]


def _work(recipe: ClassifyRecipe, length: int | None) -> Work:
    head = replace(recipe.head, labels=recipe.head.labels or SOME_LABELS)
    size = recipe.model.vocab_size or recipe.tokenizer.vocab_size
    return text_work(recipe, length, config=replace(recipe.model, vocab_size=size, head=head))


def _sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> ClassBatch:
    ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
    return ClassBatch(
        ids_BL=ids_BL,
        labels_B=torch.zeros(shape.rows, dtype=torch.long),
        num_targets=shape.rows,
        num_tokens=ids_BL.numel(),
        indices=np.arange(shape.rows),
    )


def _loss(model: EncoderOnly, batch: ClassBatch, smoothing: float) -> Tensor:
    return reference_loss(model(batch.ids_BL), batch.labels_B, smoothing)


WORKLOAD = Workload(work=_work, sample=_sample, loss=_loss, shape=text_shape)
