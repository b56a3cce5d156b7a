"""What estimates ask of translation."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dragoman.decode import schedule
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.tasks.options import DecodingOptions
from dragoman.tasks.translate.batches import PairBatch
from dragoman.tasks.translate.job import Judgement, TranslateJob
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Tokenizers
from dragoman.tasks.work import (
    Shape,
    Work,
    Workload,
    random_ids,
    sentence_length,
    some_targets,
    write_to_lengths,
)
from dragoman.train.objective import summed_loss

__all__ = ["WORKLOAD"]


def _work(recipe: TranslateRecipe, length: int | None) -> Work:
    batch, config, size = recipe.batch, recipe.model, recipe.tokenizer.vocab_size
    config = replace(
        config,
        src_vocab_size=config.src_vocab_size or size,
        tgt_vocab_size=config.tgt_vocab_size or size,
    )
    tokens = sentence_length(length, "batch.max_length", batch.max_length)
    rows = max(1, batch.max_tokens // (2 * tokens))
    return Work(
        recipe=recipe,
        config=config,
        length=tokens,
        shape=Shape(rows=rows, src_length=tokens, length=tokens),
        longest=batch.max_length,
        answer=tokens,
        beam_size=recipe.decoding.beam_size,
        vocab_size=config.tgt_vocab_size,
    )


def _sample(config: EncoderDecoderConfig, shape: Shape, rng: np.random.Generator) -> PairBatch:
    rows, pad_id = shape.rows, config.pad_id
    src_BS = random_ids((rows, shape.src_length), config.src_vocab_size, pad_id, rng)
    tgt_BT = random_ids((rows, shape.length), config.tgt_vocab_size, pad_id, rng)
    return PairBatch(
        src_BS=src_BS,
        tgt_in_BT=tgt_BT,
        tgt_out_BT=some_targets(tgt_BT, shape.targets, pad_id),
        num_targets=tgt_BT.numel() if shape.targets is None else shape.targets,
        num_tokens=src_BS.numel() + tgt_BT.numel(),
        indices=np.arange(rows),
    )


def _loss(model: EncoderDecoder, batch: PairBatch, smoothing: float) -> Tensor:
    return summed_loss(model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, smoothing)


def _shape(batch: PairBatch) -> Shape:
    rows, src_length = batch.src_BS.shape
    return Shape(rows=rows, src_length=src_length, length=batch.tgt_in_BT.shape[1])


def _sources(batch: PairBatch, config: EncoderDecoderConfig, limit: int) -> list[int]:
    lengths_B = (batch.src_BS != config.pad_id).sum(1) - 1  # without the end
    return [int(length) for length in lengths_B[torch.from_numpy(batch.indices < limit)]]


def _as_trained(job: TranslateJob) -> TranslateJob:
    return replace(job, score=_write_as_long)


def _write_as_long(
    model: EncoderDecoder, tokenizers: Tokenizers, sources: list[str], references: list[str]
) -> Judgement:
    """Decode greedily, in the batches of translating, each source to its reference's length.

    An untrained model does not end a sentence; a trained one ends about where the reference does.
    """
    src, tgt = tokenizers.src, tokenizers.tgt
    wanted = [len(ids) + 1 for ids in tgt.encode_batch(references)]
    inputs = [[*ids, src.eos_id] for ids in src.encode_batch(sources)]
    device = next(model.parameters()).device
    for batch in schedule([len(ids) for ids in inputs], DecodingOptions().max_batch_tokens):
        longest = max(len(inputs[index]) for index in batch)
        rows = [inputs[index] + [src.pad_id] * (longest - len(inputs[index])) for index in batch]
        source_BS = torch.tensor(rows, device=device)
        lengths_B = torch.tensor([wanted[index] for index in batch], device=device)
        write_to_lengths(model, source_BS, lengths_B, (tgt.bos_id, tgt.eos_id))
    return Judgement(scores=dict.fromkeys(TranslateRecipe.metrics, 0.0))


WORKLOAD = Workload(
    work=_work,
    sample=_sample,
    loss=_loss,
    shape=_shape,
    sources=_sources,
    as_trained=_as_trained,
)
