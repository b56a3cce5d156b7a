"""Classification, as others see it."""

from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.classify.evaluation import evaluate_classifier
from dragoman.tasks.classify.job import assemble
from dragoman.tasks.classify.recipe import ClassifyRecipe
from dragoman.tasks.classify.work import WORKLOAD
from dragoman.tasks.task import Task

__all__ = ["TASK"]

TASK = Task(
    recipe=ClassifyRecipe,
    assemble=assemble,
    kind="classify",
    does="classifies texts (dragoman classify)",
    workload=WORKLOAD,
    use="dragoman classify {folder} < FILE",
    load=Classifier.of,
    evaluate=evaluate_classifier,
    measured_on=("data",),
)
