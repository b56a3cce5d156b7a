"""How often a classifier is right, and how fast it is."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from dragoman.data.labelled import LabelledLayout, read_labelled
from dragoman.errors import InputError
from dragoman.evaluate import label_scores
from dragoman.settings import override_settings
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.evaluation import EvaluationData, Report, measures_table

__all__ = ["evaluate_classifier"]


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
