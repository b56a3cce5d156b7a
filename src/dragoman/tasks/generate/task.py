"""Generation, as others see it."""

from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.job import assemble
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.task import Task

__all__ = ["TASK"]

TASK = Task(
    recipe=GenerateRecipe,
    assemble=assemble,
    kind="decoder-only",
    load=Generator.of,
    use="dragoman generate {folder} PROMPT",
)
