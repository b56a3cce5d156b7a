"""Learning to tag words: an encoder with a label for each word's first piece, judged by spans."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.data.tagged import TaggedDataset, load_tagged, read_tagged
from dragoman.errors import InputError
from dragoman.evaluate import tag_scores
from dragoman.models import EncoderOnly
from dragoman.models.bio import best_tags
from dragoman.models.defaults import ReadingDefaults
from dragoman.models.folder import FolderConfig
from dragoman.tasks.encoders import EncoderJob, describe, hide_tokens, read_labels, splits_for
from dragoman.tasks.tag.batches import NO_TAG, TagBatch, tag_batches
from dragoman.tasks.tag.recipe import TaggedFiles, TagRecipe
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import reference_loss
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, begin_tokenizer, check_tokens

Tags = Sequence[Sequence[str]]
"""Those of each sentence."""


def score_tags(right: Tags, predicted: Tags) -> Mapping[str, float]:
    """Return the `accuracy` of tags and `f1`, `precision` and `recall` of spans, in percent."""
    return tag_scores(right, predicted).figures


def batch_loss(model: EncoderOnly, batch: TagBatch, smoothing: float) -> Tensor:
    """Sum the smoothed cross-entropy over words."""
    return _summed_loss(model(batch.ids_BL), batch.tags_BL, smoothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagJob(EncoderJob[TagRecipe, TagBatch]):
    """An encoder and tagged sentences."""

    held: TaggedDataset
    """What validates."""
    score: Callable[[Tags, Tags], Mapping[str, float]] = score_tags

    def loss(self, batch: TagBatch) -> Tensor:
        """Sum the smoothed cross-entropy over words, some of whose pieces are hidden."""
        ids_BL = hide_tokens(batch.ids_BL, self.recipe.batch.token_dropout, self.tokenizer)
        smoothing = self.recipe.train.label_smoothing
        return batch_loss(self.model, replace(batch, ids_BL=ids_BL), smoothing)

    def measure(self) -> Validation:
        """Find the loss, and how many spans are found with tags that form spans."""
        loss, predicted = 0.0, np.zeros_like(self.held.tags)
        with evaluating(self.model) as device:
            for batch in self.validation:
                there = batch.to(device)
                logits_BLC = self.model(there.ids_BL)
                loss += _summed_loss(logits_BLC, there.tags_BL, 0.0).item()
                tagged_BL = there.tags_BL != NO_TAG
                chosen_BL = best_tags(logits_BLC, tagged_BL, self.held.labels)
                predicted[batch.words] = chosen_BL[tagged_BL].cpu().numpy()
        right = self.held.by_sentence(self.held.tags)
        return Validation(
            loss=loss / len(predicted),
            scores=self.score(right, self.held.by_sentence(predicted)),
        )

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say which sentences, and how they are judged."""
        return CardPart(
            title="Tagger of words",
            data=self.recipe.data.said,
            architecture=describe(self.recipe.model),
            judged="Precision, recall and F1 are those of whole spans, both ends and the type "
            "right (the rule of the CoNLL shared tasks), the accuracy is that of tags, all in "
            "percent; the loss is in nats per word.",
            use="dragoman tag THIS_FOLDER < input.txt",
        )


def assemble(
    recipe: TagRecipe,
    folder: RunFolder,
    say: Say,
    check: Check = unchecked,
) -> TagJob:
    """Read the sentences, learn or load the tokenizer, and build model and batches."""
    data, batch = recipe.data, recipe.batch
    tokenizer = begin_tokenizer(recipe, _words(data), folder.training, say)

    def load(path: Path, labels: Sequence[str]) -> TaggedDataset:
        return load_tagged(path, data.layout, tokenizer, labels)

    training, validation = read_labels(recipe, load, "sentence", say)
    if training.scheme == "plain" and recipe.metric not in ("accuracy", "loss"):
        raise InputError(
            f"{training.name} has tags for single words, no spans, so there is no {recipe.metric}: "
            'set train.metric = "accuracy"'
        )
    architecture = replace(
        recipe.model,
        vocab_size=recipe.model.vocab_size or tokenizer.vocab_size,
        head=replace(recipe.head, labels=training.labels),
    )
    source = tag_batches(training, batch, splits_for(batch, tokenizer))
    batches = Stream(source, seed=recipe.train.seed)
    check_tokens(architecture, tokenizer)
    validated = tuple(tag_batches(validation, batch).fixed())
    check(architecture, batches, validated)
    return TagJob(
        recipe=recipe,
        config=FolderConfig(
            model=architecture,
            reading=ReadingDefaults(
                max_tokens=batch.max_length,
                words="characters" if all(len(word) == 1 for word in _words(data)) else "spaced",
            ),
        ),
        model=begin_model(EncoderOnly, architecture, recipe),
        tokenizer=tokenizer,
        batches=batches,
        validation=validated,
        held=validation,
    )


def _words(data: TaggedFiles) -> Iterator[str]:
    """Each word as it will be encoded: alone."""
    return (w for s in read_tagged(data.training, data.layout) for w in s.words)


def _summed_loss(logits_BLC: Tensor, tags_BL: Tensor, smoothing: float) -> Tensor:
    tagged_BL = tags_BL != NO_TAG
    return reference_loss(logits_BLC[tagged_BL], tags_BL[tagged_BL], smoothing)
