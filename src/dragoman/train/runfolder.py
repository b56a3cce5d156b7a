"""The folder of a run: its recipe, its checkpoints, whether it is finished."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, InputError
from dragoman.settings import to_plain
from dragoman.train.loop import Progress
from dragoman.train.recipe import Recipe

FREE = (
    "description",
    "expect",
    "out",
    "data.cache",
    "data.root",
    "train.max_steps",
    "train.max_minutes",
    "train.patience",
    "train.log_every",
)
"""Settings that may differ when a run goes on: its end, and what changes no number."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A model folder in the making; `training/` holds what going on needs."""

    path: Path

    @property
    def training(self) -> Path:
        """What resuming needs."""
        return self.path / "training"

    @property
    def checkpoints(self) -> Path:
        """A folder for each checkpoint."""
        return self.training / "checkpoints"

    @property
    def metrics(self) -> Path:
        """One JSON object a line."""
        return self.training / "metrics.jsonl"

    @classmethod
    def open(cls, path: Path, recipe: Recipe) -> "RunFolder":
        """Begin a run in a new or empty folder, or go on with the same run in an old one."""
        if not recipe.out:
            raise InputError("a run needs a folder to write to: give --out DIR or out=DIR")
        folder = cls(path)
        if (folder.training / "recipe.json").exists():
            folder._check_same(recipe)
            folder._check_unfinished(recipe)
        elif path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(
                f"{path} exists and is not the folder of a training run; give another one with "
                "--out, or remove it"
            )
        try:
            folder.training.mkdir(parents=True, exist_ok=True)
            text = json.dumps(to_plain(recipe), indent=2, sort_keys=True, ensure_ascii=False)
            unfinished = folder.training / ".recipe.json"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(folder.training / "recipe.json")
        except OSError as error:
            raise InputError(
                f"cannot write to {path}: {error.strerror}; give another --out"
            ) from error
        return folder

    def mark_finished(self, reason: str, progress: Progress) -> None:
        """Remember that the run reached its end."""
        try:
            text = json.dumps({"reason": reason, "step": progress.step, "valid": progress.best})
            (self.training / "finished.json").write_text(text, encoding="utf-8")
        except OSError as error:
            raise DragomanError(f"cannot write to {self.training}: {error.strerror}") from error

    def _check_same(self, recipe: Recipe) -> None:
        old = dict(_flat(json.loads((self.training / "recipe.json").read_text(encoding="utf-8"))))
        new = dict(_flat(to_plain(recipe)))
        changed = [
            key for key in sorted(old | new) if key not in FREE and old.get(key) != new.get(key)
        ]
        if changed:
            key = changed[0]
            raise InputError(
                f"{self.path} holds a run with other settings ({', '.join(changed)}; {key} was "
                f"{old.get(key)!r}, is {new.get(key)!r}); give another --out, or the old settings"
            )

    def _check_unfinished(self, recipe: Recipe) -> None:
        marker = self.training / "finished.json"
        if not marker.exists():
            return
        finished = json.loads(marker.read_text(encoding="utf-8"))
        old = json.loads((self.training / "recipe.json").read_text(encoding="utf-8"))["train"]
        new = to_plain(recipe)["train"]
        limits = ("max_steps", "max_minutes", "patience")
        if all(old[name] == new[name] for name in limits):
            raise InputError(
                f"the run in {self.path} is finished (step {finished['step']:,}, "
                f"{finished['reason']}); use it with dragoman translate {self.path}, raise "
                "train.max_steps or train.max_minutes to go on, or give another --out"
            )
        marker.unlink()


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
