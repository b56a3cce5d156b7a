"""What estimates ask of tagging."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.tag.batches import NO_TAG, TagBatch
from dragoman.tasks.tag.recipe import TagRecipe
from dragoman.tasks.work import (
    SOME_LABELS,
    Shape,
    Work,
    Workload,
    random_ids,
    some_targets,
    text_shape,
    text_work,
)
from dragoman.train.objective import reference_loss

__all__ = ["WORKLOAD"]


def _work(recipe: TagRecipe, length: int | None) -> Work:
    head = replace(recipe.head, labels=recipe.head.labels or SOME_LABELS)
    size = recipe.model.vocab_size or recipe.tokenizer.vocab_size
    return text_work(recipe, length, config=replace(recipe.model, vocab_size=size, head=head))


def _sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> TagBatch:
    ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
    targets = ids_BL.numel() if shape.targets is None else shape.targets
    return TagBatch(
        ids_BL=ids_BL,
        tags_BL=some_targets(torch.zeros_like(ids_BL), targets, NO_TAG),
        words=np.arange(targets),
        num_targets=targets,
        num_tokens=ids_BL.numel(),
        indices=np.arange(shape.rows),
    )


def _loss(model: EncoderOnly, batch: TagBatch, smoothing: float) -> Tensor:
    tagged_BL = batch.tags_BL != NO_TAG
    return reference_loss(model(batch.ids_BL)[tagged_BL], batch.tags_BL[tagged_BL], smoothing)


WORKLOAD = Workload(work=_work, sample=_sample, loss=_loss, shape=text_shape)
