"""The runs below a folder, one per row: what each learned from, how good it is and its state.

Whatever a run has not written yet, or has damaged, is missing in its row; no run hides the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from dragoman.errors import InputError
from dragoman.files.reading import parse_json, read_file
from dragoman.files.writing import locked
from dragoman.folder.opening import open_folder
from dragoman.models import count_parameters
from dragoman.plain import Plain
from dragoman.tasks.task import TASKS, find_task
from dragoman.train.checkpoint import SavedState, checkpoints, read_state
from dragoman.train.job import is_better
from dragoman.train.log import LogLine, read_log
from dragoman.train.runfolder import LOCK, RECIPE, RunFolder
from dragoman.wording import clock, format_money, short

DATA = ("src", "tsv", "jsonl", "tm", "train", "made")
"""Keys of a recipe's data, or of a corpus in it, that name the data: the first one that is set."""
HEAD = (
    *("run", "task", "data", "examples", "parameters", "steps"),
    *("best", "at step", "state", "time", "processor time"),
)

T = TypeVar("T")
State = Literal["running", "finished", "stopped", "failed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(Plain):
    """A run; what is not known is None."""

    run: str
    """Its folder, relative to the one that is listed."""
    task: str
    data: str | None = None
    """The first file that it learns from."""
    examples: int | None = None
    """Pairs or texts in an epoch, as the newest checkpoint says."""
    parameters: int | None = None
    """Parameters of the model in its folder."""
    step: int = 0
    max_steps: int | None = None
    tokens: int | None = None
    """Tokens seen, according to the log."""
    metric: str | None = None
    """The metric that chooses its best model."""
    best: float | None = None
    best_step: int | None = None
    """The validation with that score; for a finished run, the last one that is no better."""
    state: State
    """`failed` means that it neither says why it ended nor runs: killed, or ended by an error;
    `unknown` means that a disk without locks does not tell whether it runs."""
    reason: str | None = None
    """Why it ended, or what is wrong with its files."""
    seconds: float | None = None
    """Wall time, over all parts of the run."""
    processors: int | None = None
    """Threads of all its processes, or number of GPUs, as in the newest checkpoint."""
    processor: str | None = None
    """Their kind: cpu, or the name of the GPU."""
    price: float | None = None
    """Price of an hour of one, if it was given."""
    warnings: tuple[str, ...] = ()
    """The warnings of its validations."""
    changed: str | None = None
    """When it last wrote its log."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table under `HEAD`."""
        steps = f"{self.step:,}" + (f" of {self.max_steps:,}" if self.max_steps else "")
        digits = 3 if self.metric == "loss" else 2  # as a run prints it
        best = "-" if self.best is None else f"{self.metric} {self.best:.{digits}f}"
        return (
            self.run,
            self.task,
            self.data or "-",
            "-" if self.examples is None else short(self.examples),
            "-" if self.parameters is None else short(self.parameters),
            steps,
            best,
            "-" if self.best_step is None else f"{self.best_step:,}",
            f"{self.state}: {self.reason}" if self.reason else self.state,
            "-" if self.seconds is None else clock(self.seconds),
            self._taken,
        )

    @property
    def _taken(self) -> str:
        """Its processor time, which is what a run costs."""
        if self.seconds is None or self.processors is None:
            return "-"
        unit = "core" if self.processor == "cpu" else "GPU"
        hours = self.seconds * self.processors / 3600
        cost = "" if self.price is None else f", {format_money(hours * self.price, None)}"
        return f"{hours:.3g} {unit} h{cost}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLimits:
    """What is read from the section `train` of a recipe."""

    max_steps: int | None = None
    metric: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRecipe:
    """What is read from a recipe, whatever its version and task."""

    task: str = "-"
    data: dict[str, Any] = field(default_factory=dict)
    train: WrittenLimits = field(default_factory=WrittenLimits)


def list_runs(folder: Path, price: float | None = None) -> list[RunRow]:
    """Return the runs in and below a folder, the most recently written one first.

    `price` is that of an hour of a core, or of a GPU. Raises InputError if it is not a folder, or
    has no runs.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give one that holds runs.")
    found = sorted(path.parents[1] for path in folder.rglob(f"training/{RECIPE}"))
    if not found:
        raise InputError(
            f"There is no run in {folder}: dragoman train makes one, with training/{RECIPE}."
        )
    names = [
        str(path.relative_to(folder)) if path != folder else path.resolve().name for path in found
    ]
    rows = [_row(RunFolder(path), name, price) for path, name in zip(found, names, strict=True)]
    return sorted(rows, key=lambda row: row.changed or "", reverse=True)


def _row(run: RunFolder, name: str, price: float | None) -> RunRow:
    faults: list[str] = []

    def read(what: Callable[[], T], otherwise: T) -> T:
        try:
            return what()
        except (InputError, OSError) as error:
            faults.append(str(error).rstrip("."))
            return otherwise

    written = [path for path in (run.metrics, run.training / RECIPE) if path.exists()]
    recipe = read(
        lambda: parse_json(written[-1], read_file(written[-1]), WrittenRecipe), WrittenRecipe()
    )
    lines = read(lambda: read_log(run.metrics) if run.metrics.exists() else [], list[LogLine]())
    end = read(lambda: run.end, None)
    saved = read(lambda: _newest(run), None)
    metric = _metric_of(recipe)
    best, best_step = _best(lines, metric)
    reasons = (x.stopped for x in reversed(lines) if x.stopped or x.loss is not None)
    stopped = next(reasons, None) if end is None else end.reason
    state: State = "failed" if stopped is None else "stopped" if end is None else "finished"
    return RunRow(
        run=name,
        task=recipe.task,
        data=next(filter(None, map(_first_file, (recipe.data, *_corpora(recipe)))), None),
        examples=None if saved is None else saved.batches.get("examples"),
        parameters=read(lambda: _parameters(run), None),
        step=lines[-1].step if lines else 0,
        max_steps=recipe.train.max_steps,
        tokens=next((line.tokens for line in reversed(lines) if line.tokens), None),
        metric=metric,
        best=(best if end is None else end.valid or {}).get(metric),
        best_step=best_step,
        state=read(lambda: _standing(run, state), state),
        reason="; ".join(faults) or stopped,
        seconds=lines[-1].seconds if lines else None,
        price=price,
        **({} if saved is None else _processors(saved.machine)),
        warnings=tuple(dict.fromkeys(warning for line in lines for warning in line.warnings)),
        changed=datetime.fromtimestamp(written[0].stat().st_mtime, UTC).isoformat("T", "seconds"),
    )


def _newest(run: RunFolder) -> SavedState | None:
    saved = checkpoints(run.checkpoints)
    return read_state(saved[-1]) if saved else None


def _processors(machine: Mapping[str, str]) -> dict[str, Any]:
    """Return what a run computed on, from its checkpoint; nothing for older checkpoints."""
    try:
        device, processes = machine["device"], int(machine["processes"].partition(" ")[0])
        if not device.startswith("cpu"):
            return {"processor": device, "processors": processes}
        return {"processor": "cpu", "processors": processes * int(machine["threads"])}
    except (KeyError, ValueError):
        return {}


def _corpora(recipe: WrittenRecipe) -> list[dict[str, Any]]:
    found = recipe.data.get("corpora")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _first_file(data: Mapping[str, Any]) -> str | None:
    found = next((data[key] for key in DATA if data.get(key)), None)
    if isinstance(found, dict):  # for a generated corpus
        found = found.get("name")
    return None if found is None else str(found)


def _metric_of(recipe: WrittenRecipe) -> str:
    known = find_task(recipe.task).recipe.metrics if recipe.task in TASKS else ()
    return recipe.train.metric or (*known, "loss")[0]


def _best(lines: Sequence[LogLine], metric: str) -> tuple[Mapping[str, float], int | None]:
    best, best_step = None, None
    for line in lines:
        if line.valid and is_better(line.valid, best, metric):
            best, best_step = line.valid, line.step
    return best or {}, best_step


def _parameters(run: RunFolder) -> int | None:
    """Return the parameters of the model in a run's folder; None before the first validation."""
    if not (run.path / "config.json").exists():
        return None
    return sum(count_parameters(open_folder(run.path).config.model).values())


def _standing(run: RunFolder, state: State) -> State:
    """Return the state of a run that has this state by its files: a process may hold it."""
    lock = run.training / LOCK
    try:
        with locked(lock, wait=False, shared=True) as held:
            return "unknown" if state == "failed" and not held else state
    except BlockingIOError:
        return "running" if lock.exists() else state
