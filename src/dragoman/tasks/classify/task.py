"""Classification, as others see it: what an estimate asks, how it is measured, and its name."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from dragoman.data.labelled import LabelledLayout, read_labelled
from dragoman.errors import InputError
from dragoman.evaluate import label_scores
from dragoman.models import EncoderOnlyConfig
from dragoman.settings import override_settings
from dragoman.tasks.classify.batches import ClassBatch
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.classify.job import assemble, batch_loss
from dragoman.tasks.classify.recipe import ClassifyRecipe
from dragoman.tasks.task import EvaluationData, Report, Task, measures_table
from dragoman.tasks.work import Shape, Workload, random_ids, text_shape, text_work


def _sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> ClassBatch:
    ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
    return ClassBatch(
        ids_BL=ids_BL,
        labels_B=torch.zeros(shape.rows, dtype=torch.long),
        num_targets=shape.rows,
        num_tokens=ids_BL.numel(),
        indices=np.arange(shape.rows),
    )


def evaluate_classifier(model: Path, test: EvaluationData) -> Report:
    """Classify the labelled texts: accuracy, and precision, recall and F1 of each label.

    Raises InputError for a label that the model does not know.
    """
    assert test.data is not None  # noqa: S101 (the task asks for it)
    layout = override_settings(LabelledLayout(), test.layout)
    examples = list(read_labelled(test.data, layout))
    labels = [label for _, label, _ in examples]
    classifier = Classifier.load(model, device=test.device)
    _check_known(test.data, labels, classifier.labels)
    start = perf_counter()
    results = classifier.stream(text for _, _, text in examples)
    with test.progress(results, "texts", total=len(examples)) as shown:
        found = [result.label for result in shown]
    seconds = perf_counter() - start
    scores = label_scores(labels, found)
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


def _check_known(file: Path, labels: Sequence[str], known: Sequence[str]) -> None:
    strange = sorted(set(labels) - set(known))
    if strange:
        raise InputError(
            f"{file} has the label {strange[0]!r}, and the model knows {', '.join(known)}; say "
            f"what it is called: --layout rename.{strange[0]}={known[0]}"
        )


TASK = Task(
    recipe=ClassifyRecipe,
    assemble=assemble,
    kind="classify",
    does="classifies texts (dragoman classify)",
    workload=Workload(work=text_work, sample=_sample, loss=batch_loss, shape=text_shape),
    use="dragoman classify {folder} < FILE",
    load=Classifier.of,
    evaluate=evaluate_classifier,
    measured_on=("data",),
)
