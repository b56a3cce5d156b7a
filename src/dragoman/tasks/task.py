"""What a model can be trained for: a task is one folder, and its line in `TASKS`.

A task of your own is a module with a value `TASK`; a recipe names it by its dotted path:
`task = "my_package.my_task"`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from dragoman.errors import InputError, did_you_mean
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import ModelFolder
from dragoman.models import DecoderOnlyConfig, EncoderOnlyConfig, Model
from dragoman.nn import Arithmetic
from dragoman.tasks.evaluation import EvaluationData as EvaluationData  # noqa: PLC0414 -- here too
from dragoman.tasks.evaluation import Report as Report  # noqa: PLC0414 -- for a task of one's own
from dragoman.train.job import Check, Job, Say, unchecked
from dragoman.train.recipe import RunRecipe
from dragoman.train.run import run_recipe
from dragoman.train.runfolder import RunFolder
from dragoman.train.trainer import TrainResult
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.evaluate import Measures  # sacreBLEU is not loaded to translate

ModelT = TypeVar("ModelT", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Everything that other rooms need of a task."""

    recipe: type[RunRecipe]
    assemble: Callable[[Any, RunFolder, Say, Check], Job[Any]]
    """Builds the job of a recipe; the check is called before the weights are drawn."""
    kind: str
    """The models that it trains: the `kind` of their config or, for an encoder, of its head."""
    does: str
    """What a trained model does, to follow "a model that", with the command for it."""
    use: str
    """The command for a trained model, unless its recipe has one; `{folder}` is its folder."""
    choose: Callable[[Any, Callable[[Any], Any]], RunRecipe] | None = None
    """Returns a recipe with sizes that suit its texts, overridden by a function; None if the
    defaults hold."""
    load: Callable[[ModelFolder, Arithmetic], Any] | None = None
    """Returns the object that answers for a model folder; None if a model answers nothing."""
    evaluate: Callable[[ModelFolder, EvaluationData], Report] | None = None
    """Measures the model in a folder; None if a model answers nothing."""
    measured_on: tuple[str, ...] = ()
    """The files of `EvaluationData` that this needs."""
    may_use: tuple[str, ...] = ()
    """Those that it also takes, if they are given."""
    as_trained: Callable[[Any], Any] = lambda job: job
    """The task's job, with a validation that takes as long as that of a trained model."""


TASKS: Mapping[str, str] = {
    "translate": "dragoman.tasks.translate.task",
    "generate": "dragoman.tasks.generate.task",
    "pretrain": "dragoman.tasks.pretrain.task",
    "classify": "dragoman.tasks.classify.task",
    "tag": "dragoman.tasks.tag.task",
}
"""The module of each task, by the key `task` of a recipe; a recipe without it has the first."""


def find_task(name: str) -> Task:
    """Return a task by its name in `TASKS`, or by the name of an imported module with a `TASK`.

    A user's own module is never imported here: recipes and model folders name tasks, and a file
    that could cause an import could run any code.
    """
    module = import_module(TASKS[name]) if name in TASKS else sys.modules.get(name)
    task = getattr(module, "TASK", None)
    if isinstance(task, Task):
        return task
    raise InputError(
        f'there is no task "{name}"; tasks are {", ".join(TASKS)}, or the name of a module with a '
        f"value TASK, which must have been imported{did_you_mean(name, TASKS)}"
    )


def is_imported(name: str) -> bool:
    """Return whether an imported module of this name has a `TASK`."""
    return isinstance(getattr(sys.modules.get(name), "TASK", None), Task)


def task_of(config: FolderConfig) -> Task | None:
    """Return the task that a model was trained for; None for an encoder without a head.

    A folder names a task from outside the package; for the others, the model determines it.
    """
    if config.task is not None:
        return find_task(config.task)
    model = config.model
    kind = model.head.kind if isinstance(model, EncoderOnlyConfig) else model.kind
    return next((task for task in map(find_task, TASKS) if task.kind == kind), None)


def does(config: FolderConfig) -> str:
    """Return what a model does, to follow "a model that"."""
    task = task_of(config)
    return "embeds texts (dragoman embed)" if task is None else task.does


def evaluation_of(system: ModelFolder | Path, test: EvaluationData) -> Callable[..., Report]:
    """Return what measures a model on exactly the files of a test.

    `system` may be a file of finished translations, which need no source.
    """
    task = find_task("translate") if isinstance(system, Path) else task_of(system.config)
    path = system if isinstance(system, Path) else system.path
    if task is None or task.evaluate is None:
        raise InputError(f"{path} holds a model that answers nothing, so nothing is measured.")
    free = {*task.may_use}
    if isinstance(system, Path):
        free = (free | {"src"}) - {"ensemble"}
    required = [name for name in task.measured_on if name not in free]
    given = [name for name in test.files if name not in free]
    if given != required:
        lacking = [name for name in required if name not in given]
        others = [name for name in given if name not in required]
        needed, wrong = (
            " and ".join(f"--{name}" for name in names) for names in (required, lacking or others)
        )
        advice = f"give {wrong} too" if lacking else f"leave out {wrong}"
        raise InputError(f"{path} is measured on {needed}; {advice}.")
    return task.evaluate


def model_of(folder: ModelFolder, variant: type[ModelT]) -> ModelT:
    """Return the model of a folder if it is of a variant. Raises InputError for another one."""
    if not isinstance(folder.model, variant):
        raise InputError(_of_another(folder))
    return folder.model


def check_task(folder: ModelFolder, name: str) -> None:
    """Raise InputError for the model of another task, before anything of it is loaded."""
    task = task_of(folder.config)
    if task is None or task.kind != find_task(name).kind:
        raise InputError(_of_another(folder))


def _of_another(folder: ModelFolder) -> str:
    kind = folder.config.model.kind
    return f"{folder.path} holds a model of the kind {kind}, which {does(folder.config)}."


def train(
    recipe: RunRecipe, *, console: Console, estimate: Callable[[], Check] = lambda: unchecked
) -> TrainResult:
    """Run a recipe of any task to its end, or resume the unfinished run in its folder.

    See `train.run.run_recipe` for `estimate` and for the errors.
    """
    return run_recipe(recipe, find_task(recipe.task).assemble, console=console, estimate=estimate)


def described(what: str, config: EncoderOnlyConfig | DecoderOnlyConfig) -> str:
    """Return the layers and widths of a stack, as on the model card."""
    return (
        f"{what} of {counted(config.num_layers, 'layer')}, d_model {config.d_model}, "
        f"{counted(config.num_heads, 'head')}, d_ff {config.d_ff}, {config.norm_position}-norm, "
        f"positions: {config.positions.kind}"
    )


def measures_table(kind: str, rows: Mapping[str, "Measures"]) -> Iterator[str]:
    """Yield a line for each kind of label, below a header line."""
    width = max(len(kind), *map(len, rows))
    yield f"{kind:<{width}}  precision  recall     F1   count"
    for name, row in rows.items():
        yield (
            f"{name:<{width}}  {row.precision:>9.2f}  {row.recall:>6.2f}  {row.f1:>5.2f}  "
            f"{row.count:>6,}"
        )
