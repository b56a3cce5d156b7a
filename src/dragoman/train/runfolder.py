"""The folder of a run: its recipe, its checkpoints, and whether it is finished."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import parse_json, read_file
from dragoman.files.writing import hold, write_durably
from dragoman.folder.opening import ModelFolder, open_folder
from dragoman.models.build import check_name
from dragoman.plain import to_plain
from dragoman.settings import flatten, parse_settings
from dragoman.train.checkpoint import checkpoints, read_state
from dragoman.train.progress import Progress
from dragoman.train.recipe import RunRecipe

RESULT_NEUTRAL_SETTINGS = (
    "description",
    "expect",
    "out",
    "data.cache",
    "data.root",
    "train.activation_checkpointing",
    "train.shard",
    "train.log_every",
    "train.max_skipped",
    "train.tracker",
)
"""Settings that do not affect the numbers of a run."""

LIMITS = frozenset({"train.max_steps", "train.max_minutes", "train.patience"})
"""Settings that end a run, and may change when it is resumed."""

BATCH_SIZE = ("batch.max_tokens", "batch.rows")
ADJUSTABLE = frozenset({"train.save_every", "train.accumulate", *BATCH_SIZE})
"""Settings that may change when a run is resumed, although its result then differs."""

LOCK = ".lock"
GLANCE = 0.5
"""Seconds to wait for the lock: listing runs takes it for a moment."""
RECIPE = "recipe.json"
GONE = (
    "{} was moved or removed while its run was going on; to resume from the last checkpoint, run "
    "the same command with its new place as --out"
)
FINISHED, FINISHED_BEFORE = "finished.json", "finished.before.json"

T = TypeVar("T")
RecipeT = TypeVar("RecipeT", bound=RunRecipe)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The contents of `finished.json`."""

    reason: str
    step: int
    valid: dict[str, float] | None
    """The validation of the model in the folder."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A model folder in the making; `training/` contains what resuming needs."""

    path: Path
    start: ModelFolder | None = None
    """The model that the run starts from."""

    @classmethod
    def of(cls, recipe: RunRecipe) -> "RunFolder":
        """Return the folder of a recipe's run, and open the model that it starts from.

        If that model is gone but the run has a checkpoint, the checkpoint has the weights and the
        run's own model folder has the rest. Raises InputError for a folder that cannot be used.
        """
        folder, start = cls(Path(recipe.out)), recipe.start.model
        if start is None:
            return folder
        gone = not Path(start).exists() and checkpoints(folder.checkpoints)
        return cls(folder.path, open_folder(folder.path if gone else start))

    @property
    def training(self) -> Path:
        """The folder with everything that resuming needs."""
        return self.path / "training"

    @property
    def checkpoints(self) -> Path:
        """The folder with a folder per checkpoint."""
        return self.training / "checkpoints"

    @property
    def metrics(self) -> Path:
        """The log, one JSON object per line."""
        return self.training / "metrics.jsonl"

    @property
    def progress(self) -> Progress:
        """Progress of the newest checkpoint; a damaged one is reported when it is loaded."""
        with suppress(IndexError, InputError):
            return read_state(checkpoints(self.checkpoints)[-1]).progress
        return Progress()

    @property
    def end(self) -> End | None:
        """How the run finished, if it has. Raises InputError for a damaged file."""
        marker = self.training / FINISHED
        return _read(marker, End) if marker.exists() else None

    @property
    def exported(self) -> dict[str, float] | None:
        """Validation of the model that the run wrote when it finished for the first time."""
        before = self.training / FINISHED_BEFORE
        return _read(before, End).valid if before.exists() else None

    @contextmanager
    def open(self, recipe: RunRecipe) -> Iterator["RunFolder"]:
        """Begin a run in a new or empty folder, or resume the same run in an old one.

        While it is open, no other process can open it. A new run that is rejected (InputError)
        before its first checkpoint leaves no folder behind.
        """
        check_out(recipe)
        with ExitStack() as stack:
            try:
                new = self.training if self.path.exists() else self.path
                self.training.mkdir(parents=True, exist_ok=True)
                hold(self.training / LOCK, stack, GLANCE)
                begun = (self.training / RECIPE).exists()  # stable once locked
                if begun:
                    self._go_on(recipe)
                text = json.dumps(to_plain(recipe), indent=2, sort_keys=True, ensure_ascii=False)
                write_durably(self.training / RECIPE, text)
            except BlockingIOError as error:
                raise InputError(
                    f"another process is training in {self.path}; wait for its end, or give "
                    "another --out"
                ) from error
            except OSError as error:
                raise InputError(
                    f"Cannot write to {self.path}: {error.strerror}; give another --out"
                ) from error
            try:
                yield self
            except InputError:
                if not begun and not self._has_learned:
                    shutil.rmtree(new, ignore_errors=True)
                raise

    def check_there(self) -> None:
        """Raise DragomanError if the folder of a started run was moved or removed."""
        if not (self.training / RECIPE).exists():
            raise DragomanError(GONE.format(self.path))

    def is_finished(self, recipe: RunRecipe) -> bool:
        """Return whether exactly this run is done: no settings and no limits have changed."""
        return (self.training / FINISHED).exists() and not self._changed(recipe)

    def mark_finished(self, reason: str, progress: Progress) -> None:
        """Record that the run reached its end."""
        try:
            end = asdict(End(reason=reason, step=progress.step, valid=progress.best))
            text = json.dumps(end, sort_keys=True)  # sorted, as `best` in a checkpoint is
            write_durably(self.training / FINISHED, text)
        except OSError as error:
            raise DragomanError(f"Cannot write to {self.training}: {error.strerror}") from error

    def _go_on(self, recipe: RunRecipe) -> None:
        """Accept a recipe that resumes the run; a run without a checkpoint starts over."""
        changed = self._changed(recipe)
        others = [key for key in changed if key not in LIMITS | ADJUSTABLE]
        if others and not self._has_learned:
            _empty(self.training)  # from a run that failed on its first steps
        elif others:
            old, new = changed[others[0]]
            raise InputError(
                f"{self.path} holds a run with other settings ({', '.join(others)}; {others[0]} "
                f"was {old!r}, is {new!r}); give the old settings, or another --out, where --from "
                f"{self.path} goes on from its model"
            )
        end = self.end
        if end is None:
            return
        if not changed.keys() & LIMITS:
            raise InputError(
                f"the run in {self.path} is finished (step {end.step:,}, {end.reason}); look at "
                f"its model with dragoman inspect {self.path}, raise train.max_steps or "
                "train.max_minutes to continue, or give another --out"
            )
        (self.training / FINISHED).replace(self.training / FINISHED_BEFORE)

    def _changed(self, recipe: RunRecipe) -> dict[str, tuple[Any, Any]]:
        """Return the old and new value of each setting that affects the result and differs."""
        old, new = deciding(self.begun(recipe)), deciding(recipe)
        keys = [key for key in sorted(old | new) if key not in RESULT_NEUTRAL_SETTINGS]
        return {k: (old.get(k), new.get(k)) for k in keys if old.get(k) != new.get(k)}

    def begun(self, recipe: RecipeT) -> RecipeT:
        """Return the recipe that the run was started with; newer keys have their defaults.

        If its file is damaged, the newest checkpoint has a copy.
        """
        path = self.training / RECIPE
        try:
            data = _read(path, dict[str, Any])
        except InputError:
            saved = checkpoints(self.checkpoints)
            if not saved:
                raise
            data = read_state(saved[-1]).recipe
        task = data.get("task")
        if task != recipe.task:
            raise InputError(
                f'{self.path} holds a run of task = "{task}", not "{recipe.task}"; give another '
                "--out"
            )
        return parse_settings(type(recipe), data, str(path))

    @property
    def _has_learned(self) -> bool:
        return (self.path / "config.json").exists() or any(self.checkpoints.glob("step-*"))


def check_out(recipe: RunRecipe) -> None:
    """Raise InputError for a recipe without a folder, or with one that no model can be in."""
    path = Path(recipe.out)
    if not recipe.out:
        raise InputError("a run needs a folder to write to: give --out DIR or out=DIR")
    check_name(path)
    try:
        begun = (path / "training" / RECIPE).exists()
        foreign = not begun and path.exists() and not _is_empty(path)
    except OSError as error:
        raise InputError(f"Cannot write to {path}: {error.strerror}; give another --out") from error
    if foreign:
        raise InputError(
            f"{path} exists and is not the folder of a training run; give another one with --out, "
            "or remove it"
        )


def deciding(recipe: RunRecipe) -> dict[str, Any]:
    """Return the settings of a recipe by dotted key, with the task's default metric filled in."""
    return flatten(to_plain(recipe)) | {"train.metric": recipe.metric}


Adjusted = Mapping[str, tuple[Any, Any]]
"""Old and new values of settings that have changed since a checkpoint."""


def adjusted_settings(saved: Mapping[str, Any], recipe: RunRecipe) -> Adjusted:
    """Compare a recipe with that of a checkpoint, in the settings that may change on resuming."""
    old, new = flatten(saved), flatten(to_plain(recipe))
    shared = sorted(ADJUSTABLE & old.keys() & new.keys())
    return {key: (old[key], new[key]) for key in shared if old[key] != new[key]}


def former_size(adjusted: Adjusted) -> dict[str, Any]:
    """Return the old values of changed batch sizes, by the field names of a batch config."""
    return {k.removeprefix("batch."): old for k, (old, _) in adjusted.items() if k in BATCH_SIZE}


def resume_warnings(
    before: Mapping[str, str], now: Mapping[str, str], adjusted: Adjusted
) -> list[str]:
    """Return warnings for a run whose machine or settings differ from those of its checkpoint."""
    machine = [f"{k} {v} (was {before.get(k)})" for k, v in now.items() if v != before.get(k)]
    changed = [f"this machine has {', '.join(machine)}"] if machine else []
    changed += [f"{key} is {new} (was {old})" for key, (old, new) in adjusted.items()]
    if not changed:
        return []
    again = " The epoch begins again with the new batches." if former_size(adjusted) else ""
    return [
        f"Warning: {', and '.join(changed)}, so the run will not end with the bits of one that "
        f"never stopped.{again}"
    ]


def _read(path: Path, kind: type[T]) -> T:
    return parse_json(path, read_file(path), kind, "give another --out")


def _is_empty(path: Path) -> bool:
    """Return whether a folder is empty, apart from what a run killed at its start leaves behind."""
    ours = (f".{RECIPE}.part", LOCK)
    return path.is_dir() and all(p.is_dir() or p.name in ours for p in path.rglob("*"))


def _empty(training: Path) -> None:
    """Remove all but the lock, which is held, and the recipe, which marks the folder as a run's."""
    for path in training.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (LOCK, RECIPE):
            path.unlink()
