"""Send the lines of `metrics.jsonl` to TensorBoard, MLflow or Weights & Biases too.

Training never waits for the last two, which run in a thread: if one is not installed, unreachable,
failing or too slow, the run only warns. Unless the user's environment says otherwise, everything
stays in the folder.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from queue import Full, Queue
from threading import Thread
from typing import Any

from dragoman.files.writing import write_durably
from dragoman.train.device import variables
from dragoman.train.runfolder import RunFolder

MOST_WAITING = 10_000
"""Number of lines that wait for a slow tracker; further ones are dropped."""
PATIENCE = 30.0
"""Seconds that a run waits for its tracker at the end."""
MOST_PARAMS = 100
"""Number of settings that MLflow accepts at once."""
PROJECT = "dragoman"
"""Project of the runs, unless the user's environment says otherwise."""
VARIABLES = {
    "mlflow": {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_LOGGING_LEVEL": "ERROR",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    },
    "wandb": {"WANDB_ERROR_REPORTING": "false"},
}
"""Settings that a library reads only from the environment, unless the user has set them."""
WANDB = {"console": "off", "mode": "offline", "project": PROJECT, "silent": True}
"""Settings of Weights & Biases, unless the user has set the variable of that name."""

Line = Mapping[str, Any]


class MlflowRun:
    """An MLflow run: in `training/mlflow.db`, or where MLFLOW_TRACKING_URI says.

    When the run is resumed, its `id` is passed as `known`.
    """

    def __init__(self, folder: RunFolder, settings: Mapping[str, Any], known: str | None) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._metric = Metric
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or _own_store(folder))
        if known is not None:
            self.id = known
            self._client.update_run(known, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        number = self._experiment(name)
        self.id = self._client.create_run(number, run_name=folder.path.name).info.run_id
        params = [Param(key, str(value)) for key, value in settings.items()]
        try:
            for first in range(0, len(params), MOST_PARAMS):
                self._client.log_batch(self.id, params=params[first : first + MOST_PARAMS])
        except Exception:
            self.end("FAILED")
            raise

    def _experiment(self, name: str) -> str:
        """Return the number of an experiment, which another run may create at the same moment."""
        found = self._client.get_experiment_by_name(name)
        if not found:
            try:
                return str(self._client.create_experiment(name))
            except Exception:
                found = self._client.get_experiment_by_name(name)
                if not found:
                    raise
        return str(found.experiment_id)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Log the numbers of a step."""
        now = int(1000 * time.time())
        metrics = [self._metric(name, value, now, step) for name, value in numbers.items()]
        self._client.log_batch(self.id, metrics=metrics)

    def end(self, state: str) -> None:
        """End the run as FINISHED, KILLED (by its user) or FAILED."""
        self._client.set_terminated(self.id, state)


def _own_store(folder: RunFolder) -> str:
    """Return the URL of a database in the folder; mlflow-skinny lacks the module for it."""
    import_module("sqlalchemy")
    path = str((folder.training / "mlflow.db").resolve())
    if "?" in path or "%" in path:  # SQLAlchemy releases differ in how to escape these
        raise ValueError(
            f"the path {path} has a ? or %, which the address of its database cannot have: rename "
            "the folder or set MLFLOW_TRACKING_URI"
        )
    return f"sqlite:///{path}"


class WandbRun:
    """A Weights & Biases run: in `training/wandb/`, or where WANDB_MODE says."""

    def __init__(self, folder: RunFolder, settings: Mapping[str, Any], known: str | None) -> None:
        import wandb

        self._run = wandb.init(
            dir=folder.training,
            name=folder.path.name,
            config=dict(settings),
            id=known,
            resume=None if known is None else "allow",
            settings={
                key: ours for key, ours in WANDB.items() if f"WANDB_{key.upper()}" not in os.environ
            },
        )
        self._run.define_metric("*", step_metric="step")  # its own steps may not repeat
        self.id = self._run.id

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Log the numbers of a step."""
        self._run.log({**numbers, "step": step})

    def end(self, state: str) -> None:
        """End the run; the library distinguishes only success and failure."""
        self._run.finish(exit_code=int(state != "FINISHED"))


KINDS: Mapping[str, type[MlflowRun | WandbRun]] = {"mlflow": MlflowRun, "wandb": WandbRun}


class TensorBoard:
    """Curves in `training/tensorboard/`."""

    def __init__(self, writer: Any) -> None:  # noqa: ANN401 -- a SummaryWriter
        self._writer = writer

    @classmethod
    def found(cls, folder: RunFolder) -> list["TensorBoard"]:
        """Return one, or an empty list if TensorBoard (the extra `track`) is not installed."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return []
        return [cls(SummaryWriter(str(folder.training / "tensorboard")))]

    def send(self, line: Line) -> None:
        """Add every number of a line; those of a validation are flushed immediately."""
        for name, value in _numbers(line):
            self._writer.add_scalar(name, value, line["step"])
        if "valid" in line:
            self._writer.flush()

    def close(self) -> None:
        """Flush what is left."""
        self._writer.flush()


class Tracker:
    """Sends lines of `metrics.jsonl` to the library of this name; warns at most once."""

    def __init__(
        self, name: str, folder: RunFolder, settings: Mapping[str, Any], say: Callable[[str], None]
    ) -> None:
        self._name, self._say = name, say
        self._warned = False
        self._lines: Queue[Line | None] = Queue(MOST_WAITING)
        self._thread = Thread(target=self._work, args=(folder, settings), daemon=True)
        self._thread.start()

    def send(self, line: Line) -> None:
        """Queue a line, which has a `step`."""
        try:
            self._lines.put_nowait(line)
        except Full:
            self._warn("is too slow and lacks some numbers")

    def close(self) -> None:
        """Wait until everything is sent, but no longer than `PATIENCE`."""
        end = time.monotonic() + PATIENCE
        if self._thread.is_alive():
            with suppress(Full):
                self._lines.put(None, timeout=PATIENCE)
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            self._warn(f"has not ended within {PATIENCE:.0f} seconds and may lack some numbers")

    def _work(self, folder: RunFolder, settings: Mapping[str, Any]) -> None:
        path = folder.training / f"{self._name}.id"
        run: MlflowRun | WandbRun | None = None
        with variables(VARIABLES[self._name]):
            try:
                known = path.read_text() if path.exists() else None
                run = KINDS[self._name](folder, settings, known)
                write_durably(path, run.id)
                run.end(self._send_all(run))
            except Exception as error:  # noqa: BLE001 -- a library may raise anything
                hint = f": pip install {self._name}" if isinstance(error, ImportError) else ""
                self._warn(f"does not work ({str(error).strip().partition(chr(10))[0]}{hint})")
                with suppress(Exception):
                    if run is not None:
                        run.end("FAILED")

    def _send_all(self, run: MlflowRun | WandbRun) -> str:
        """Send lines until the last one; return the final state of the run."""
        state = "FAILED"
        while (line := self._lines.get()) is not None:
            run.log(dict(_numbers(line)), line["step"])
            if reason := line.get("stopped"):
                state = "KILLED" if reason == "interrupted" else "FINISHED"
        return state

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            self._say(
                f"Warning: train.tracker = {self._name} {what}; training is not affected, and "
                "training/metrics.jsonl has all numbers."
            )


def _numbers(line: Line, prefix: str = "train/") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line: `train/loss`, and nested ones such as `valid/loss`."""
    for key, value in line.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{key}/")
        elif isinstance(value, int | float) and key != "step":
            yield f"{prefix}{key}", value
