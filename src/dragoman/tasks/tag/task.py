"""Learning to tag words: an encoder with a label for each word's first piece, judged by spans."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from dragoman.data.shape import Shape, random_ids, some_targets
from dragoman.data.tagged import (
    TaggedDataset,
    TaggedLayout,
    find_spans,
    load_tagged,
    read_tagged,
    to_bio,
)
from dragoman.data.word_features import COUNT
from dragoman.errors import InputError
from dragoman.evaluate import tag_scores
from dragoman.folder.format import ReadingDefaults, Words
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.bio import best_tags
from dragoman.models.heads import TaggingHead
from dragoman.settings import override_settings
from dragoman.tasks.encoders import EncoderJob, LabelRecipe, read_labels
from dragoman.tasks.tag.batches import NO_TAG, TagBatch, tag_batches
from dragoman.tasks.tag.tagger import GAPS, Tagger
from dragoman.tasks.task import EvaluationData, Report, Task, measures_table
from dragoman.train.job import Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import reference_loss
from dragoman.train.recipe import TrainingFiles
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizer
from dragoman.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedFiles(TrainingFiles):
    """Sentences with a tag for each word."""

    layout: TaggedLayout = field(default_factory=TaggedLayout)
    """Columns or keys of the files."""

    def words(self) -> Iterator[str]:
        """Yield each word of the training file as our own tokenizers encode it: alone."""
        return (w for s in read_tagged(self.training, self.layout) for w in s.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRecipe(LabelRecipe):
    """From words to a tag for each, by an encoder."""

    head_type = TaggingHead
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "accuracy")

    task: Literal["tag"] = "tag"
    """Learn the tag of each word."""
    data: TaggedFiles = field(default_factory=TaggedFiles)
    """The sentences."""
    model: EncoderOnlyConfig = field(default_factory=lambda: EncoderOnlyConfig(head=TaggingHead()))
    """The architecture."""

    @staticmethod
    def loss(model: EncoderOnly, batch: TagBatch, smoothing: float) -> Tensor:
        """Sum the smoothed cross-entropy over words."""
        return _summed_loss(_logits(model, batch), batch.tags_BL, smoothing)

    @staticmethod
    def sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> TagBatch:
        """Return a batch of random ids."""
        ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
        targets = ids_BL.numel() if shape.targets is None else shape.targets
        return TagBatch(
            ids_BL=ids_BL,
            tags_BL=some_targets(torch.zeros_like(ids_BL), targets, NO_TAG),
            words_BLF=ids_BL.new_zeros(*ids_BL.shape, COUNT) if config.word_features else None,
            words=np.arange(targets),
            num_targets=targets,
            num_tokens=ids_BL.numel(),
            indices=np.arange(shape.rows),
        )


def _logits(model: EncoderOnly, batch: TagBatch) -> Tensor:
    logits_BLC: Tensor = model(batch.ids_BL, words_BLF=batch.words_BLF)
    return logits_BLC


def _summed_loss(logits_BLC: Tensor, tags_BL: Tensor, smoothing: float) -> Tensor:
    tagged_BL = tags_BL != NO_TAG
    return reference_loss(logits_BLC[tagged_BL], tags_BL[tagged_BL], smoothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagJob(EncoderJob[TagRecipe, TaggedDataset, TagBatch]):
    """An encoder and tagged sentences."""

    title = "Tagger of words"
    judged = (
        "Precision, recall and F1 are those of whole spans, both ends and the type right (the rule "
        "of the CoNLL shared tasks), the accuracy is that of tags, all in percent; the loss is in "
        "nats per word."
    )
    use = "dragoman tag THIS_FOLDER < input.txt"

    def measure(self) -> Validation:
        """Measure the loss, and how many spans are found by the best tags that form spans."""
        loss, predicted = 0.0, np.zeros_like(self.held.tags)
        with evaluating(self.model) as device:
            for batch in self.validation:
                there = batch.to(device)
                logits_BLC = _logits(self.model, there)
                loss += _summed_loss(logits_BLC, there.tags_BL, 0.0).item()
                tagged_BL = there.tags_BL != NO_TAG
                chosen_BL = best_tags(logits_BLC, tagged_BL, self.held.labels)
                predicted[batch.words] = chosen_BL[tagged_BL].cpu().numpy()
        right, found = map(self.held.by_sentence, (self.held.tags, predicted))
        return Validation(loss=loss / len(predicted), scores=tag_scores(right, found).figures)


def assemble(recipe: TagRecipe, folder: RunFolder, say: Say, check: Check = unchecked) -> TagJob:
    """Read the sentences, train or load the tokenizer, and build model and batches."""
    data = recipe.data
    for path in data.files:  # reports their errors before a tokenizer is trained
        deque(read_tagged(path, data.layout), maxlen=0)
    tokenizer = begin_tokenizer(recipe, data.words(), folder, say)

    words: Words = "characters" if all(len(word) == 1 for word in data.words()) else "spaced"

    def load(path: Path, labels: Sequence[str]) -> TaggedDataset:
        rows = recipe.model.word_features
        return load_tagged(path, data.layout, tokenizer, labels, GAPS[words], rows)

    training, held = read_labels(recipe, load, "sentence", say)
    if training.scheme == "plain" and recipe.metric not in ("accuracy", "loss"):
        raise InputError(
            f"{training.name} has tags for single words, no spans, so there is no {recipe.metric}: "
            'set train.metric = "accuracy"'
        )
    return TagJob.of(
        recipe.with_labels(training.labels),
        tokenizer,
        (training, held),
        tag_batches,
        check,
        ReadingDefaults(max_tokens=recipe.batch.max_length, words=words),
    )


def evaluate_tagger(folder: ModelFolder, test: EvaluationData) -> Report:
    """Tag words whose tags are known: precision, recall and F1 of spans, and accuracy of tags."""
    assert test.data is not None  # noqa: S101 (the task asks for it)
    layout = override_settings(TaggedLayout(), test.layout)
    tagger = Tagger.load(folder, device=test.device, precision=test.precision)
    dataset = load_tagged(test.data, layout, tagger.tokenizer, tagger.labels)
    sentences = [sentence.words for sentence in read_tagged(test.data, layout)]
    results, seconds = test.read(tagger.stream_words(sentences), "sentence", len(sentences))
    found = [[word.tag for word in result.words] for result in results]
    if dataset.scheme != "plain":
        found = [to_bio(find_spans(tags)[0], len(tags)) for tags in found]
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
    use="dragoman tag {folder} < FILE",
    load=Tagger.of,
    evaluate=evaluate_tagger,
    measured_on=("data",),
)
