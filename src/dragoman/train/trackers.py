"""What `metrics.jsonl` gets, sent to MLflow or Weights & Biases too, by a thread of its own.

Training never waits for a tracker: one that is not installed, cannot be reached, fails or is too
slow costs the run a warning. Unless the user's environment says otherwise, all stays in the folder.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from queue import Full, Queue
from threading import Thread
from typing import Any, Protocol

from dragoman.files.writing import write_durably
from dragoman.train.runfolder import RunFolder

MOST_WAITING = 10_000
"""Lines that wait for a slow tracker; further ones are dropped."""
PATIENCE = 30.0
"""Seconds that the end of a run waits for its tracker."""
MOST_PARAMS = 100
"""Settings that MLflow takes at once."""
DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_EXPERIMENT_NAME": "dragoman",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "WANDB_CONSOLE": "off",
    "WANDB_ERROR_REPORTING": "false",
    "WANDB_MODE": "offline",
    "WANDB_PROJECT": "dragoman",
    "WANDB_SILENT": "true",
}
"""Variables of both libraries where the user has not set them."""

Line = Mapping[str, Any]


class TrackedRun(Protocol):
    """A run as a library knows it; `id` finds it again when the run is resumed."""

    id: str

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Record the numbers of a step."""

    def end(self, state: str) -> None:
        """End it as FINISHED, KILLED (by its user) or FAILED."""


class MlflowRun:
    """A run of MLflow: in `training/mlflow.db`, or where MLFLOW_TRACKING_URI says."""

    def __init__(self, folder: RunFolder, settings: Mapping[str, Any], known: str | None) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._metric = Metric
        own = f"sqlite:///{(folder.training / 'mlflow.db').resolve()}"
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or own)
        if known is not None:
            self.id = known
            self._client.update_run(known, status="RUNNING")
            return
        name = os.environ["MLFLOW_EXPERIMENT_NAME"]
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self._client.create_experiment(name)
        self.id = self._client.create_run(number, run_name=folder.path.name).info.run_id
        params = [Param(key, str(value)) for key, value in settings.items()]
        for first in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(self.id, params=params[first : first + MOST_PARAMS])

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Record the numbers of a step."""
        now = int(1000 * time.time())
        metrics = [self._metric(name, value, now, step) for name, value in numbers.items()]
        self._client.log_batch(self.id, metrics=metrics)

    def end(self, state: str) -> None:
        """End it so."""
        self._client.set_terminated(self.id, state)


class WandbRun:
    """A run of Weights & Biases: in `training/wandb/`, or where WANDB_MODE says."""

    def __init__(self, folder: RunFolder, settings: Mapping[str, Any], known: str | None) -> None:
        import wandb

        self._run = wandb.init(
            dir=folder.training,
            name=folder.path.name,
            config=dict(settings),
            id=known,
            resume="allow",
        )
        self._run.define_metric("*", step_metric="step")  # its own steps may not repeat
        self.id = self._run.id

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Record the numbers of a step."""
        self._run.log({**numbers, "step": step})

    def end(self, state: str) -> None:
        """End it so; it knows success and failure only."""
        self._run.finish(exit_code=int(state != "FINISHED"))


KINDS: Mapping[str, Callable[[RunFolder, Mapping[str, Any], str | None], TrackedRun]] = {
    "mlflow": MlflowRun,
    "wandb": WandbRun,
}


class Tracker:
    """Sends lines of `metrics.jsonl` to the library of this name; says at most one warning."""

    def __init__(
        self, name: str, folder: RunFolder, settings: Mapping[str, Any], say: Callable[[str], None]
    ) -> None:
        self._name, self._say = name, say
        self._warned = False
        self._lines: Queue[Line | None] = Queue(MOST_WAITING)
        self._thread = Thread(target=self._work, args=(folder, settings), daemon=True)
        self._thread.start()

    def send(self, line: Line | None) -> None:
        """Hand over a line, which has a `step`, or None behind the last one."""
        try:
            self._lines.put_nowait(line)
        except Full:
            self._warn("is too slow and lacks some numbers")

    def close(self) -> None:
        """Wait until all is sent, but no longer than `PATIENCE`."""
        self.send(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            self._warn(f"has not ended within {PATIENCE:.0f} seconds and may lack some numbers")

    def _work(self, folder: RunFolder, settings: Mapping[str, Any]) -> None:
        for variable, value in DEFAULTS.items():
            os.environ.setdefault(variable, value)
        path = folder.training / f"{self._name}.id"
        state = "FAILED"
        try:
            run = KINDS[self._name](folder, settings, path.read_text() if path.exists() else None)
            write_durably(path, run.id)
            while (line := self._lines.get()) is not None:
                run.log(dict(_numbers(line)), line["step"])
                if reason := line.get("stopped"):
                    state = "KILLED" if reason == "interrupted" else "FINISHED"
            run.end(state)
        except Exception as error:  # noqa: BLE001 -- a library may raise anything
            self._warn(f"does not work ({str(error).partition(chr(10))[0]})")

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            self._say(
                f"Warning: train.tracker = {self._name} {what}; training is not affected, and "
                "training/metrics.jsonl has all numbers."
            )


def _numbers(line: Line, prefix: str = "train/") -> Iterator[tuple[str, float]]:
    """The numbers of a line: `train/loss`, and those of a part of it, `valid/loss`."""
    for key, value in line.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{key}/")
        elif isinstance(value, int | float) and key != "step":
            yield f"{prefix}{key}", value
