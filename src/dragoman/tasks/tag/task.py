"""Tagging, as others see it: what an estimate asks, how it is measured, and its name."""

from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from dragoman.data.tagged import TaggedLayout, load_tagged, read_tagged
from dragoman.evaluate import tag_scores
from dragoman.models import EncoderOnlyConfig
from dragoman.settings import override_settings
from dragoman.tasks.tag.batches import NO_TAG, TagBatch
from dragoman.tasks.tag.job import assemble, batch_loss
from dragoman.tasks.tag.recipe import TagRecipe
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.task import EvaluationData, Report, Task, measures_table
from dragoman.tasks.work import (
    Shape,
    Workload,
    random_ids,
    some_targets,
    text_shape,
    text_work,
)
from dragoman.wording import counted


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


def evaluate_tagger(model: Path, test: EvaluationData) -> Report:
    """Tag words whose tags are known: precision, recall and F1 of spans, and accuracy of tags."""
    assert test.data is not None  # noqa: S101 (the task asks for it)
    layout = override_settings(TaggedLayout(), test.layout)
    tagger = Tagger.load(model, device=test.device)
    dataset = load_tagged(test.data, layout, tagger.tokenizer, tagger.labels)
    sentences = [sentence.words for sentence in read_tagged(test.data, layout)]
    start = perf_counter()
    results = tagger.stream_words(sentences)
    with test.progress(results, "sentences", total=len(sentences)) as shown:
        found = [[word.tag for word in result.words] for result in shown]
    seconds = perf_counter() - start
    scores = tag_scores(dataset.by_sentence(dataset.tags), found)
    speed = {"sentences": len(sentences), "sentences_per_second": len(sentences) / seconds}
    every = {} if scores.spans is None else {"all": scores.spans}
    return Report(
        figures=scores.to_dict() | speed,
        lines=(
            f"accuracy  {scores.accuracy:.2f}  of {counted(len(dataset.tags), 'tag')}",
            f"speed     {speed['sentences_per_second']:,.1f} sentences/s",
            *(["", *measures_table("span", {**scores.types, **every})] if every else []),
        ),
    )


TASK = Task(
    recipe=TagRecipe,
    assemble=assemble,
    kind="tag",
    does="tags words (dragoman tag)",
    workload=Workload(work=text_work, sample=_sample, loss=batch_loss, shape=text_shape),
    use="dragoman tag {folder} < FILE",
    load=Tagger.of,
    evaluate=evaluate_tagger,
    measured_on=("data",),
)
