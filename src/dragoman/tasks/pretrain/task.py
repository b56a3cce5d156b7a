"""Masked pretraining, as others see it."""

from dragoman.tasks.pretrain.job import assemble
from dragoman.tasks.pretrain.recipe import MaskedRecipe
from dragoman.tasks.pretrain.work import WORKLOAD
from dragoman.tasks.task import Task

__all__ = ["TASK"]

TASK = Task(
    recipe=MaskedRecipe,
    assemble=assemble,
    kind="masked-language",
    does="guesses hidden words and is there to start from (dragoman train --from)",
    workload=WORKLOAD,
    use="dragoman train RECIPE --from {folder}",
)
