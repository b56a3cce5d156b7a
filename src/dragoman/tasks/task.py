"""What a model can be trained for: a task is one folder, and its line in `TASKS`.

A task of your own is a module with a value `TASK`; a recipe names it by its dotted path:
`task = "my_package.my_task"`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dragoman.errors import InputError, nearest
from dragoman.models import EncoderOnlyConfig
from dragoman.models.folder import FolderConfig
from dragoman.nn import Precision
from dragoman.tasks.evaluation import EvaluationData, Report
from dragoman.tasks.work import Workload
from dragoman.train.job import Check, Job, Say, unchecked
from dragoman.train.recipe import RunRecipe
from dragoman.train.run import TrainResult, run_recipe
from dragoman.train.runfolder import RunFolder

if TYPE_CHECKING:
    from dragoman.tasks.folders import Folder

__all__ = ["TASKS", "Task", "find_task", "task_of", "train"]

Assemble = Callable[[Any, RunFolder, Say, Check], Job[Any]]
"""Makes the job of a recipe; the check is called before the weights are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All that others ask of a task."""

    recipe: type[RunRecipe]
    """What can be set."""
    assemble: Assemble
    """From a recipe to the job that the engine runs."""
    kind: str
    """The models that it trains: the `kind` of their config, of an encoder that of its head."""
    does: str
    """What a trained model does, after "a model that", with the command for it."""
    workload: Workload
    """What an estimate asks: the size of its batches, a batch, its loss."""
    use: str
    """The command that a trained model is for; `{folder}` stands for its folder."""
    load: "Callable[[Folder, Precision], Any] | None" = None
    """From a model folder to the object that answers; None where a model answers nothing."""
    evaluate: Callable[[Path, EvaluationData], Report] | None = None
    """Measures the model in a folder; None where a model answers nothing."""
    measured_on: tuple[str, ...] = ()
    """The files of the `EvaluationData` that this needs."""


TASKS: Mapping[str, str] = {
    "translate": "dragoman.tasks.translate.task",
    "generate": "dragoman.tasks.generate.task",
    "pretrain": "dragoman.tasks.pretrain.task",
    "classify": "dragoman.tasks.classify.task",
    "tag": "dragoman.tasks.tag.task",
}
"""The module of each task, by the key `task` of a recipe; a recipe without it has the first."""


def find_task(name: str) -> Task:
    """Return a task by its name in `TASKS` or by the path of a module that holds a `TASK`."""
    module = TASKS.get(name, name)
    try:
        task = import_module(module).TASK
    except (ImportError, AttributeError, ValueError) as error:
        close = nearest(name, TASKS)
        hint = f"; did you mean {close}?" if close else ""
        raise InputError(
            f'there is no task "{name}" ({error}){hint}; tasks are {", ".join(TASKS)}, or the path '
            "of a module with a value TASK, which Python must find (PYTHONPATH)"
        ) from error
    if not isinstance(task, Task):
        raise InputError(f"TASK of the module {module} is a {type(task).__name__}, not a Task")
    return task


def task_of(config: FolderConfig) -> Task | None:
    """Return the task that a model was trained for; None for an encoder without a head.

    A folder names a task from outside the package; of the others the model tells.
    """
    if config.task is not None:
        return find_task(config.task)
    model = config.model
    kind = model.head.kind if isinstance(model, EncoderOnlyConfig) else model.kind
    return next((task for task in map(find_task, TASKS) if task.kind == kind), None)


def train(
    recipe: RunRecipe, *, console: Console, estimate: Callable[[], Check] = lambda: unchecked
) -> TrainResult:
    """Run a recipe of any task to its end, or go on with the unfinished run in its folder.

    As `train.run.run_recipe`, which says what `estimate` is for and what is raised.
    """
    return run_recipe(recipe, find_task(recipe.task).assemble, console=console, estimate=estimate)
