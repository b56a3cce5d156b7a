"""What estimates ask of generation."""

from dataclasses import replace

import numpy as np
from torch import Tensor

from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.tasks.generate.batches import LanguageBatch
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.work import Shape, Work, Workload, random_ids, sentence_length, some_targets
from dragoman.train.objective import next_token_loss

__all__ = ["WORKLOAD"]


def _work(recipe: GenerateRecipe, length: int | None) -> Work:
    batch, config = recipe.batch, recipe.model
    config = replace(config, vocab_size=config.vocab_size or recipe.tokenizer.vocab_size)
    prompt = sentence_length(length, "batch.length", batch.length)
    shape = Shape(rows=batch.rows, length=batch.length)
    if batch.packing == "documents":
        documents = (batch.length,) * batch.rows
        shape = Shape(rows=1, length=sum(documents), documents=documents)
    return Work(
        recipe=recipe,
        config=config,
        length=prompt,
        shape=shape,
        longest=batch.length,
        answer=max(1, min(recipe.generation.max_tokens, batch.length - prompt)),
        vocab_size=config.vocab_size,
    )


def _sample(config: DecoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> LanguageBatch:
    ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
    return LanguageBatch(
        inputs_BL=ids_BL,
        targets_BL=some_targets(ids_BL, shape.targets, config.pad_id),
        document_lengths=shape.documents,
        num_tokens=ids_BL.numel(),
        num_targets=ids_BL.numel() if shape.targets is None else shape.targets,
        indices=np.arange(shape.rows),
    )


def _loss(model: DecoderOnly, batch: LanguageBatch, smoothing: float) -> Tensor:
    return next_token_loss(model, batch, smoothing)


def _shape(batch: LanguageBatch) -> Shape:
    rows, length = batch.inputs_BL.shape
    return Shape(rows=rows, length=length, documents=batch.document_lengths)


def _smaller(recipe: GenerateRecipe, shape: Shape, share: float) -> str:
    rows = min(recipe.batch.rows, shape.tokens // recipe.batch.length)  # a text may hold fewer
    return f"batch.rows to {max(1, int(share * rows)):,}"


WORKLOAD = Workload(work=_work, sample=_sample, loss=_loss, shape=_shape, smaller=_smaller)
