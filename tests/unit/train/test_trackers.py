"""Metrics sent to MLflow and Weights & Biases, with fakes for both."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest
from tests.unit.train.made import CONFIG, RESULT

from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.train import trackers
from dragoman.train.job import Validation
from dragoman.train.progress import Progress
from dragoman.train.report import MetricsFile, reporters_of
from dragoman.train.runfolder import RunFolder

Module = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder."""
    (tmp_path / "first" / "training").mkdir(parents=True)
    return RunFolder(tmp_path / "first")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Module:
    """Return a function that installs a fake module for the test and returns its attributes."""
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def make(name: str, **held: Any) -> dict[str, Any]:  # noqa: ANN401
        made = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made)
        vars(made).update(held)
        return vars(made)

    return make


def report(folder: RunFolder, name: Any, end: str | None = "4 steps") -> list[str]:  # noqa: ANN401
    """Return the messages of a tracked run with one step and one validation."""
    said: list[str] = []
    train = replace(CONFIG, tracker=name, log_every=1)
    recipe = TranslateRecipe(data=DataConfig(src="a.en"), train=train)
    metrics = next(
        each
        for each in reporters_of(folder, recipe, Progress(), said.append)
        if isinstance(each, MetricsFile)
    )
    metrics.stepped(Progress(step=4, tokens=40), RESULT)
    metrics.validated(Progress(step=4), Validation(loss=1.5, warnings=("x",), scores={"bleu": 7.0}))
    if end is not None:
        metrics.stopped(Progress(step=4), end)
    metrics.close()
    return said


@pytest.fixture
def mlflow(module: Module) -> Mock:
    """A fake `MlflowClient` that returns itself; its one new run is "abc"."""
    methods = [
        "create_experiment", "create_run", "get_experiment_by_name", "log_batch", "set_terminated",
        "update_run",
    ]  # fmt: skip
    client = Mock(spec=methods)
    client.return_value = client
    client.get_experiment_by_name.return_value = None
    client.create_experiment.return_value = "7"
    client.create_run.return_value.info.run_id = "abc"
    module("sqlalchemy")
    module("mlflow", MlflowClient=client)
    module("mlflow.entities", Metric=lambda *metric: metric, Param=lambda *param: param)
    return client


def assert_ended(client: Mock, state: str) -> None:
    """The run is ended once, and nothing is sent after that."""
    client.set_terminated.assert_called_once_with("abc", state)
    assert client.mock_calls[-1] == call.set_terminated("abc", state)


def test_mlflow(folder: RunFolder, mlflow: Mock) -> None:
    """All metrics are logged by name and step, the settings once, and the status is set."""
    before = dict(os.environ)
    assert report(folder, "mlflow") == []
    assert os.environ == before
    mlflow.assert_called_once_with(f"sqlite:///{folder.training.resolve()}/mlflow.db")
    mlflow.create_experiment.assert_called_once_with("dragoman")
    mlflow.create_run.assert_called_once_with("7", run_name="first")
    settings, numbers = dict[str, str](), dict[str, Any]()
    for (run,), given in mlflow.log_batch.call_args_list:
        assert run == "abc"
        assert len(given.get("params", ())) <= 100, "as the library's own store demands"
        settings |= given.get("params", ())
        numbers |= {name: (value, at) for name, value, _, at in given.get("metrics", ())}
    assert (settings["train.log_every"], settings["data.src"]) == ("1", "a.en")
    assert numbers["train/loss"] == (RESULT.loss, 4)
    assert numbers["train/tokens"] == (40, 4)
    assert numbers["valid/loss"] == (1.5, 4)
    assert numbers["valid/bleu"] == (7.0, 4)
    assert "train/step" not in numbers
    assert_ended(mlflow, "FINISHED")


def test_mlflow_resumes_its_run(folder: RunFolder, mlflow: Mock) -> None:
    """A resumed run continues the same MLflow run in the store that the user names."""
    assert report(folder, "mlflow", "interrupted") == []
    assert_ended(mlflow, "KILLED")
    mlflow.reset_mock()
    os.environ["MLFLOW_TRACKING_URI"] = "http://tracking"
    assert report(folder, "mlflow", end=None) == []
    opened, resumed, (name, _, logged), *_ = mlflow.mock_calls
    assert [opened, resumed] == [call("http://tracking"), call.update_run("abc", status="RUNNING")]
    assert (name, logged["metrics"][0][0]) == ("log_batch", "train/loss")
    assert_ended(mlflow, "FAILED")


def test_two_runs_make_one_experiment(folder: RunFolder, mlflow: Mock) -> None:
    """If two runs start at once, the second one uses the experiment of the first."""
    mlflow.get_experiment_by_name.side_effect = [None, SimpleNamespace(experiment_id="8")]
    mlflow.create_experiment.side_effect = RuntimeError("RESOURCE_ALREADY_EXISTS")
    assert report(folder, "mlflow") == []
    mlflow.create_run.assert_called_once_with("8", run_name="first")
    mlflow.get_experiment_by_name.side_effect = None
    mlflow.create_experiment.side_effect = RuntimeError("PERMISSION_DENIED")
    folder.training.joinpath("mlflow.id").unlink()
    (warning,) = report(folder, "mlflow")
    assert "PERMISSION_DENIED" in warning


@pytest.mark.parametrize("name", ["why?", "41%41"])
def test_mlflow_has_no_address_for_a_folder(tmp_path: Path, mlflow: Mock, name: str) -> None:
    """It is refused rather than written to another place; a tracking server is unaffected."""
    folder = RunFolder(tmp_path / name)
    folder.training.mkdir(parents=True)
    (warning,) = report(folder, "mlflow")
    assert "has a ? or %" in warning
    assert mlflow.mock_calls == []
    os.environ["MLFLOW_TRACKING_URI"] = "http://tracking"
    assert report(folder, "mlflow") == []


def wandb_run(log: Callable[[Any], None]) -> tuple[Any, list[int]]:
    """Return a fake run with this `log`, and the list of its exit codes."""
    ended = list[int]()
    run = SimpleNamespace(
        id="xyz",
        define_metric=lambda *_, **__: None,
        log=log,
        finish=lambda exit_code: ended.append(int(exit_code)),
    )
    return run, ended


@pytest.mark.parametrize(("end", "code"), [("4 steps", 0), ("interrupted", 1), (None, 1)], ids=str)
def test_wandb(folder: RunFolder, module: Module, end: str | None, code: int) -> None:
    """The same for Weights & Biases, offline by default and resumed by id."""
    opened, logged = [], list[Mapping[str, Any]]()
    run, ended = wandb_run(logged.append)
    run.define_metric = lambda name, step_metric: logged.append({name: step_metric})

    def init(**given: Any) -> Any:  # noqa: ANN401
        opened.append(given | {"reports": os.environ["WANDB_ERROR_REPORTING"]})
        return run

    module("wandb", init=init)
    before = dict(os.environ)
    assert report(folder, "wandb", end) == []
    assert os.environ == before, "what the notebook does later is not changed"
    ours = {"mode": "offline", "project": "dragoman", "console": "off", "silent": True}
    assert (opened[0]["settings"], opened[0]["reports"]) == (ours, "false")
    assert (opened[0]["dir"], opened[0]["name"], opened[0]["id"]) == (
        folder.training,
        "first",
        None,
    )
    assert opened[0]["resume"] is None, "older releases warn of it"
    assert opened[0]["config"]["train.log_every"] == 1
    assert logged[0] == {"*": "step"}
    assert logged[1]["train/loss"] == RESULT.loss
    assert logged[2]["valid/bleu"] == 7.0
    assert {line["step"] for line in logged[1:]} == {4}
    assert ended == [code]
    os.environ["WANDB_MODE"] = "online"
    report(folder, "wandb", end)
    assert "mode" not in opened[1]["settings"], "the library reads it by itself"
    assert (opened[1]["id"], opened[1]["resume"]) == ("xyz", "allow")


def test_a_tracker_that_fails_is_left_alone(
    folder: RunFolder, module: Module, mlflow: Mock
) -> None:
    """There is one warning, the log is complete, and the tracker's run is marked as failed."""

    def fail(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise RuntimeError("no API key\nat line 7")

    run, ended = wandb_run(fail)
    for init in (fail, lambda **_: run):
        module("wandb", init=init)
        folder.metrics.unlink(missing_ok=True)
        assert report(folder, "wandb") == [
            "Warning: train.tracker = wandb does not work (no API key); training is not affected, "
            "and training/metrics.jsonl has all numbers."
        ]
        lines = [json.loads(line) for line in folder.metrics.read_text("utf-8").splitlines()]
        assert [sorted(line)[-1] for line in lines] == ["tokens_per_second", "warnings", "stopped"]
    assert ended == [1]
    mlflow.log_batch = fail
    (warning,) = report(folder, "mlflow")
    assert "no API key" in warning
    assert_ended(mlflow, "FAILED")


@pytest.mark.parametrize("missing", ["mlflow", "sqlalchemy"])  # mlflow-skinny lacks SQLAlchemy
@pytest.mark.usefixtures("mlflow")
def test_a_tracker_that_is_not_installed(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """A missing tracker is only a warning, since the run may have started elsewhere."""
    monkeypatch.setitem(sys.modules, missing, None)
    (warning,) = report(folder, "mlflow")
    assert "train.tracker = mlflow does not work (import of " in warning
    assert ": pip install mlflow)" in warning


@pytest.mark.parametrize(
    ("waiting", "patience", "told", "ends"),
    [
        (10, 0.01, "has not ended within 0 seconds", 0),
        (1, 0.01, "is too slow and lacks some numbers", 0),
        (1, 5.0, "is too slow and lacks some numbers", 1),  # it responds eventually
    ],
)
def test_a_tracker_that_hangs(
    folder: RunFolder,
    module: Module,
    monkeypatch: pytest.MonkeyPatch,
    *,
    waiting: int,
    patience: float,
    told: str,
    ends: int,
) -> None:
    """Neither steps nor the end wait longer than the timeout; there is one warning."""
    answer, (run, ended) = Event(), wandb_run(lambda _: None)
    module("wandb", init=lambda **_: answer.wait() and run)
    monkeypatch.setattr(trackers, "MOST_WAITING", waiting)
    monkeypatch.setattr(trackers, "PATIENCE", patience)
    Timer(0.1, answer.set).start()
    (warning,) = report(folder, "wandb")
    assert told in warning
    assert len(ended) == ends


NUMBERS = {
    "train/loss": RESULT.loss, "train/grad_norm": 1.0, "train/tokens": 40, "valid/loss": 1.5,
    "valid/bleu": 7.0,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # MLflow uses deprecated SQLAlchemy features
def test_the_real_mlflow(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real library, if installed, records an interrupted and resumed run."""
    real = pytest.importorskip("mlflow", minversion="3.0")
    pytest.importorskip("sqlalchemy", reason="mlflow-skinny has no database")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(folder.path)
    assert [report(folder, "mlflow", end) for end in ("interrupted", "4 steps")] == [[], []]
    client = real.MlflowClient(f"sqlite:///{folder.training}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'dragoman'")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.status, run.data.params["train.log_every"]) == ("FINISHED", "1")
    assert NUMBERS.items() <= run.data.metrics.items()
    history = client.get_metric_history(run.info.run_id, "valid/bleu")
    assert [each.step for each in history] == [4, 4]
    assert [path.name for path in folder.path.iterdir()] == ["training"]


def test_the_real_wandb(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the real library, if installed, both parts have one name, and nothing is printed."""
    pytest.importorskip("wandb", minversion="0.20")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.chdir(folder.path)
    assert [report(folder, "wandb", end) for end in ("interrupted", "4 steps")] == [[], []]
    (name,) = {each.stem for each in folder.training.glob("wandb/offline-run-*/*.wandb")}
    assert name == f"run-{(folder.training / 'wandb.id').read_text()}"
    assert [path.name for path in folder.path.iterdir()] == ["training"]
    assert capfd.readouterr() == ("", "")


def test_no_tracker_by_default(folder: RunFolder) -> None:
    """Without the setting nothing is imported and no thread starts."""
    assert report(folder, None) == []
    assert {path.name for path in folder.training.iterdir()} <= {"metrics.jsonl", "tensorboard"}
