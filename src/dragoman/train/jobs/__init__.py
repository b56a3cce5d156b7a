"""The tasks that a model can be trained for: one file each, and its line in `TASKS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.train.job import Check, Job, Say
from dragoman.train.jobs import classify, generate, masked, tag, translate
from dragoman.train.recipes.base import RunRecipe
from dragoman.train.recipes.classify import ClassifyRecipe
from dragoman.train.recipes.generate import GenerateRecipe
from dragoman.train.recipes.masked import MaskedRecipe
from dragoman.train.recipes.tag import TagRecipe
from dragoman.train.recipes.translate import TranslateRecipe
from dragoman.train.runfolder import RunFolder

Assemble = Callable[[Any, RunFolder, Say, Any, Check], Job[Any]]
"""Makes the job of a recipe of the task. The last two arguments score, where that needs decoding,
and are asked before the weights are drawn, which takes long for a large model."""


@dataclass(frozen=True, slots=True)
class Task:
    """What can be learnt."""

    recipe: type[RunRecipe]
    """What can be set."""
    assemble: Assemble
    """From a recipe to a job."""


TASKS: Mapping[str, Task] = {
    "translate": Task(TranslateRecipe, translate.assemble),
    "generate": Task(GenerateRecipe, generate.assemble),
    "pretrain": Task(MaskedRecipe, masked.assemble),
    "classify": Task(ClassifyRecipe, classify.assemble),
    "tag": Task(TagRecipe, tag.assemble),
}
"""By the key `task` of a recipe; one without it is the first."""
