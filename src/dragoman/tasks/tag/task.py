"""Tagging, as others see it."""

from dragoman.tasks.tag.evaluation import evaluate_tagger
from dragoman.tasks.tag.job import assemble
from dragoman.tasks.tag.recipe import TagRecipe
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.tag.work import WORKLOAD
from dragoman.tasks.task import Task

__all__ = ["TASK"]

TASK = Task(
    recipe=TagRecipe,
    assemble=assemble,
    kind="tag",
    does="tags words (dragoman tag)",
    workload=WORKLOAD,
    use="dragoman tag {folder} < FILE",
    load=Tagger.of,
    evaluate=evaluate_tagger,
    measured_on=("data",),
)
