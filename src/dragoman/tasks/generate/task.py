"""Generation, as others see it."""

from dragoman.tasks.generate.evaluation import evaluate_generator
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.job import assemble
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.generate.work import WORKLOAD
from dragoman.tasks.task import Task

__all__ = ["TASK"]

TASK = Task(
    recipe=GenerateRecipe,
    assemble=assemble,
    kind="decoder-only",
    does="goes on with texts (dragoman generate)",
    workload=WORKLOAD,
    use="dragoman generate {folder} PROMPT",
    load=Generator.of,
    evaluate=evaluate_generator,
    measured_on=("text",),
)
