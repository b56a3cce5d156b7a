"""Learning to tag words: an encoder with a label for each word's first piece, judged by spans.

The first piece of a word carries its tag, the other pieces carry none (Devlin et al. 2019, section
5.3). A word without pieces is not predicted. A sentence over the limit is split between words, so
that every other word is predicted.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig, Examples, SequenceBatches
from dragoman.data.dataset import Ragged, Splits, gather
from dragoman.data.padding import framed, padded
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
from dragoman.tasks.encoders import EncoderJob, LabelRecipe, TextBatch, read_labels
from dragoman.tasks.tag.tagger import GAPS, Tagger, features_at
from dragoman.tasks.task import EvaluationData, Report, Task, measures_table
from dragoman.train.job import Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import reference_loss
from dragoman.train.recipe import TrainingFiles
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizer
from dragoman.wording import counted

NO_TAG = -1
"""The value in `tags_BL` where nothing is to be predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagBatch(TextBatch):
    """Padded sentences and their tags.

    Predictions find their words by `predicted[batch.words] = choices_BL[batch.tags_BL >= 0]`.
    """

    tags_BL: Tensor
    """The number of the tag at the first piece of each word, `NO_TAG` elsewhere."""
    words_BLF: Tensor | None = None
    """The features of each word, at its first piece; zeros elsewhere."""
    words: npt.NDArray[np.int64]
    """The number of each word in the dataset, in the order of `tags_BL[tags_BL >= 0]`."""

    def reading(self, ids_BL: Tensor) -> Self:
        """Return the batch with other ids; a word whose piece is hidden loses its features."""
        words_BLF = self.words_BLF
        if words_BLF is not None:
            words_BLF = words_BLF.masked_fill((ids_BL != self.ids_BL)[..., None], 0)
        return replace(self, ids_BL=ids_BL, words_BLF=words_BLF)


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


def tag_batches(
    dataset: TaggedDataset, config: BatchConfig, splits: Splits | None = None
) -> SequenceBatches[TagBatch]:
    """Return the batches of tagged sentences; those over the limit are split.

    Subword sampling splits words but leaves each its tag.
    """
    return SequenceBatches(
        sequences=dataset.pieces,
        examples=partial(_parts, dataset, config.max_length),
        content_hash=dataset.content_hash,
        config=config,
        splits=splits,
    )


def _parts(dataset: TaggedDataset, limit: int, pieces: Ragged) -> Examples[TagBatch]:
    """Return sentences, their words perhaps sampled; those over the limit are split."""
    pieces = pieces.cut(limit)
    has_pieces = pieces.lengths > 0
    tags_of = np.full(len(pieces.ids), NO_TAG, dtype=np.int64)  # of each piece
    tags_of[pieces.offsets[:-1][has_pieces]] = dataset.tags[has_pieces]
    bounds = _bounds(pieces.offsets, dataset.sentences, limit)
    filled = np.diff(pieces.offsets[bounds]) > 0
    firsts, lasts = bounds[:-1][filled], bounds[1:][filled]  # words of each part
    starts, ends = pieces.offsets[firsts], pieces.offsets[lasts]

    def collate(rows: npt.NDArray[np.int64]) -> TagBatch:
        ids = gather(pieces.ids, starts[rows], ends[rows] - starts[rows])
        tags = gather(tags_of, starts[rows], ends[rows] - starts[rows])
        first, count = firsts[rows], lasts[rows] - firsts[rows]
        words = gather(np.arange(len(pieces)), first, count).ids.astype(np.int64)
        words = words[has_pieces[words]]
        tags_BL = padded(tags, NO_TAG, before=1, after=1)
        return TagBatch(
            ids_BL=framed(ids, dataset.special),
            tags_BL=tags_BL,
            words_BLF=features_at(tags_BL != NO_TAG, dataset.features[words]),
            words=words,
            num_tokens=len(ids.ids) + 2 * len(rows),
            num_targets=len(words),
            indices=np.searchsorted(dataset.sentences, first, side="right") - 1,
        )

    return Examples(ends - starts + 2, collate)


def _bounds(
    pieces: npt.NDArray[np.int64], sentences: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.int64]:
    """Return where sentences and parts of them begin, in words, so that each fits the limit.

    `pieces` are the bounds of words in pieces; no single word is over the limit.
    """
    (longer,) = np.nonzero(np.diff(pieces[sentences]) > limit)
    cuts: list[int] = []
    for sentence in longer:
        start, end = sentences[sentence], pieces[sentences[sentence + 1]]
        while end - pieces[start] > limit:
            start = np.searchsorted(pieces, pieces[start] + limit, side="right") - 1
            cuts.append(int(start))
    return np.union1d(sentences, np.array(cuts, dtype=np.int64))


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
