"""Learning to classify: labelled texts, an encoder with a vector for each, judged by accuracy.

The whole text goes in, and one label comes out.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig, Examples, SequenceBatches
from dragoman.data.dataset import Ragged, Splits
from dragoman.data.labelled import LabelledDataset, LabelledLayout, load_labelled, read_labelled
from dragoman.data.padding import framed
from dragoman.data.shape import Shape, random_ids
from dragoman.errors import InputError
from dragoman.evaluate import label_scores
from dragoman.folder.format import ReadingDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead
from dragoman.settings import override_settings
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.encoders import EncoderJob, LabelRecipe, TextBatch, read_labels
from dragoman.tasks.task import EvaluationData, Report, Task, measures_table
from dragoman.train.job import Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import reference_loss
from dragoman.train.recipe import TrainingFiles
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizer

ONE_LABEL = (
    "the model gives all validation texts the same label; lower train.learning_rate or lengthen "
    "train.warmup_steps"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFiles(TrainingFiles):
    """Texts with a label each."""

    layout: LabelledLayout = field(default_factory=LabelledLayout)
    """Columns or keys of the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyRecipe(LabelRecipe):
    """From a text to one of several labels, by an encoder."""

    head_type = ClassificationHead
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["classify"] = "classify"
    """Learn the label of each text."""
    data: LabelledFiles = field(default_factory=LabelledFiles)
    """The texts."""
    model: EncoderOnlyConfig = field(
        default_factory=lambda: EncoderOnlyConfig(head=ClassificationHead())
    )
    """The architecture."""

    @staticmethod
    def loss(model: EncoderOnly, batch: "ClassBatch", smoothing: float) -> Tensor:
        """Sum the smoothed cross-entropy over texts."""
        return reference_loss(model(batch.ids_BL), batch.labels_B, smoothing)

    @staticmethod
    def sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> "ClassBatch":
        """Return a batch of random ids."""
        ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
        return ClassBatch(
            ids_BL=ids_BL,
            labels_B=torch.zeros(shape.rows, dtype=torch.long),
            num_targets=shape.rows,
            num_tokens=ids_BL.numel(),
            indices=np.arange(shape.rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassBatch(TextBatch):
    """Padded texts and their labels."""

    labels_B: Tensor
    """The number of each text's label."""


def class_batches(
    dataset: LabelledDataset, config: BatchConfig, splits: Splits | None = None
) -> SequenceBatches[ClassBatch]:
    """Return the batches of labelled texts; texts over the limit are truncated."""

    def examples(texts: Ragged) -> Examples[ClassBatch]:
        texts = texts.cut(config.max_length)

        def collate(rows: npt.NDArray[np.int64]) -> ClassBatch:
            chosen = texts.take(rows)
            return ClassBatch(
                ids_BL=framed(chosen, dataset.special),
                labels_B=torch.from_numpy(dataset.targets[rows]),
                num_tokens=len(chosen.ids) + 2 * len(rows),
                num_targets=len(rows),
                indices=rows,
            )

        return Examples(texts.lengths + 2, collate)

    return SequenceBatches(
        sequences=dataset.texts,
        examples=examples,
        content_hash=dataset.content_hash,
        config=config,
        splits=splits,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyJob(EncoderJob[ClassifyRecipe, LabelledDataset, ClassBatch]):
    """An encoder and labelled texts."""

    title = "Text classifier"
    judged = (
        "The accuracy is the share, in percent, of texts that get their label; the loss is in nats "
        "per text."
    )
    use = "dragoman classify THIS_FOLDER < input.txt"

    def measure(self) -> Validation:
        """Measure the loss and the share of texts that get the right label."""
        loss, correct, chosen = 0.0, 0, set[int]()
        with evaluating(self.model) as device:
            for batch in (batch.to(device) for batch in self.validation):
                logits_BC = self.model(batch.ids_BL)
                chosen_B = logits_BC.argmax(-1)
                loss += reference_loss(logits_BC, batch.labels_B, 0.0).item()
                correct += int((chosen_B == batch.labels_B).sum())
                chosen.update(chosen_B.tolist())
        return Validation(
            loss=loss / len(self.held),
            scores={"accuracy": 100 * correct / len(self.held)},
            warnings=(ONE_LABEL,) if len(chosen) == 1 else (),
        )


def assemble(
    recipe: ClassifyRecipe, folder: RunFolder, say: Say, check: Check = unchecked
) -> ClassifyJob:
    """Read the texts, train or load the tokenizer, and build model and batches."""
    data = recipe.data
    for path in data.files:  # reports their errors before a tokenizer is trained
        deque(read_labelled(path, data.layout), maxlen=0)
    texts = (text for _, _, text in read_labelled(data.training, data.layout))
    tokenizer = begin_tokenizer(recipe, texts, folder, say)

    def load(path: Path, labels: Sequence[str]) -> LabelledDataset:
        return load_labelled(path, data.layout, tokenizer, labels)

    training, held = read_labels(recipe, load, "text", say)
    return ClassifyJob.of(
        recipe.with_labels(training.labels),
        tokenizer,
        (training, held),
        class_batches,
        check,
        ReadingDefaults(max_tokens=recipe.batch.max_length),
    )


def evaluate_classifier(folder: ModelFolder, test: EvaluationData) -> Report:
    """Classify the labelled texts: accuracy, and precision, recall and F1 of each label.

    Raises InputError for a label that the model does not know.
    """
    assert test.data is not None  # noqa: S101 (the task asks for it)
    layout = override_settings(LabelledLayout(), test.layout)
    examples = list(read_labelled(test.data, layout))
    labels = [label for _, label, _ in examples]
    classifier = Classifier.load(folder, device=test.device, precision=test.precision)
    if strange := sorted(set(labels) - set(classifier.labels)):
        known = ", ".join(classifier.labels)
        raise InputError(
            f"{test.data} has the label {strange[0]!r}, and the model knows {known}; rename "
            f"it: --layout rename.{strange[0]}={classifier.labels[0]}"
        )
    results = classifier.stream(text for _, _, text in examples)
    found, seconds = test.read(results, "text", len(examples))
    scores = label_scores(labels, [result.label for result in found])
    speed = {"texts": len(examples), "texts_per_second": len(examples) / seconds}
    return Report(
        figures=scores.to_dict() | speed,
        lines=(
            f"accuracy  {scores.accuracy:.2f}  (the most frequent label alone: "
            f"{scores.majority:.2f})",
            f"macro F1  {scores.macro_f1:.2f}",
            f"speed     {speed['texts_per_second']:,.1f} texts/s",
            "",
            *measures_table("label", scores.labels),
        ),
    )


TASK = Task(
    recipe=ClassifyRecipe,
    assemble=assemble,
    kind="classify",
    does="classifies texts (dragoman classify)",
    use="dragoman classify {folder} < FILE",
    load=Classifier.of,
    evaluate=evaluate_classifier,
    measured_on=("data",),
)
