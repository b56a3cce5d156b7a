"""Listing the runs below a folder, whatever state their files are in."""

import errno
import fcntl
import json
import os
from pathlib import Path

import pytest
from tests.unit.tasks.test_runs import Line, log, make_run, step_line, valid_line
from tests.unit.tasks.tiny import save_translator

from dragoman.errors import InputError
from dragoman.files.writing import locked
from dragoman.tasks.listing import HEAD, RunRow, list_runs


def row_of(folder: Path) -> RunRow:
    """Return the only row."""
    (row,) = list_runs(folder)
    return row


def test_a_finished_run(tmp_path: Path) -> None:
    """The row has the model's score, possibly of an average, and the last better step."""
    run = make_run(save_translator(tmp_path / "a" / "b"), log())
    end = {"reason": "30 steps", "step": 30, "valid": {"loss": 0.1, "bleu": 47.0}}
    (run / "training" / "finished.json").write_text(json.dumps(end), encoding="utf-8")
    row = row_of(tmp_path)
    assert (row.run, row.task, row.data, row.state) == ("a/b", "translate", "a", "finished")
    assert (row.step, row.max_steps, row.tokens) == (30, 100, 3000)
    assert (row.metric, row.best, row.best_step, row.seconds) == ("bleu", 47.0, 30, 1.0)
    assert row.parameters is not None
    assert row.parameters > 1000
    assert row.cells[5:9] == ("30 of 100", "bleu 47.00", "30", "finished: 30 steps")
    assert len(row.cells) == len(HEAD)


CPU = {"device": "cpu (AVX512)", "threads": "4", "processes": "2", "precision": "bf16"}
GPU = {"device": "NVIDIA L4", "threads": "9", "processes": "3 (sharded)", "precision": "bf16"}


@pytest.mark.parametrize(
    ("machine", "taken", "processor"),
    [
        (CPU, "0.00222 core h", "cpu"),
        (GPU, "0.000833 GPU h", "NVIDIA L4"),
        ({}, "-", None),
        (CPU | {"threads": "many"}, "-", None),
    ],
    ids=["cores", "GPUs", "an old run", "damaged"],
)
def test_what_a_run_has_read_and_taken(
    tmp_path: Path, machine: dict[str, str], taken: str, processor: str | None
) -> None:
    """The newest checkpoint gives the examples and the time on eight cores or three GPUs."""
    row = row_of(make_run(tmp_path / "a", log(), machine=machine, examples=29_000))
    assert (row.examples, row.processor) == (29_000, processor)
    assert (row.cells[3], row.cells[-1]) == ("29 k", taken)
    (priced,) = list_runs(tmp_path, price=900)
    money = {"cpu": ", 2.00 in your currency", "NVIDIA L4": ", 0.75 in your currency", None: ""}
    assert priced.cells[-1] == f"{taken}{money[processor]}"
    other = row_of(make_run(tmp_path / "a", log(), machine=machine))
    assert (other.examples, other.cells[3]) == (None, "-")


@pytest.mark.parametrize(
    ("lines", "state", "reason"),
    [
        (log(), "stopped", "30 steps"),
        ([*log(), valid_line(30)], "stopped", "30 steps"),
        (log()[:-1], "failed", None),
        ([*log(), step_line(40)], "failed", None),
        ([], "failed", None),
    ],
    ids=["interrupted", "validated after it", "killed", "resumed and killed", "nothing yet"],
)
def test_how_a_run_stands(
    tmp_path: Path, lines: list[Line], state: str, reason: str | None
) -> None:
    """The end of the log tells the state, unless a process holds the lock."""
    run = make_run(tmp_path / "a", lines)
    (run / "training" / ".lock").touch()
    row = row_of(tmp_path)
    assert (row.state, row.reason, row.parameters) == (state, reason, None)
    with locked(run / "training" / ".lock", wait=False):
        assert row_of(tmp_path).state == "running"
    with locked(run / "training" / ".lock", wait=False, shared=True):  # as another listing does
        assert row_of(tmp_path).state == state
    assert row_of(run).run == "a"


@pytest.mark.parametrize(("lines", "state"), [(log(), "stopped"), (log()[:-1], "unknown")])
def test_a_disk_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Line], state: str
) -> None:
    """Without locks, a run without an end may be running, so its state is unknown."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    run = make_run(tmp_path / "a", lines)
    (run / "training" / ".lock").touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert row_of(tmp_path).state == state


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"src": None, "corpora": [{"tsv": "x.tsv"}, {"src": "y"}]}, "x.tsv"),
        ({"src": None, "corpora": [{"jsonl": "x.jsonl"}]}, "x.jsonl"),
        ({"made": {"name": "demo-zh-en", "seed": 1, "train": 30_000}}, "demo-zh-en"),
    ],
)
def test_what_a_run_learns_from(tmp_path: Path, data: dict[str, object], name: str) -> None:
    """The row names the first file of the first corpus, or the generated data."""
    recipe = {"task": "translate", "data": data}
    assert row_of(make_run(tmp_path / "a", log(), recipe)).data == name


def test_the_latest_comes_first(tmp_path: Path) -> None:
    """Runs are ordered by the time of their last log line; repeated warnings are listed once."""
    warned = valid_line(20) | {"warnings": ["it is deaf"]}
    for name, time in (("a", 1e9), ("b", 3e9), ("c", 2e9)):
        run = make_run(tmp_path / name, [warned, warned])
        os.utime(run / "training" / "metrics.jsonl", (time, time))
    assert [row.run for row in list_runs(tmp_path)] == ["b", "c", "a"]
    assert list_runs(tmp_path)[0].warnings == ("it is deaf",)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("recipe.json", '{"task": "tra', "recipe.json is damaged"),
        ("recipe.json", '{"train": 3}', "recipe.json is damaged"),
        ("metrics.jsonl", '{"step": 1}\n{"st\n', "metrics.jsonl, line 2 is damaged"),
        ("finished.json", "[]", "finished.json is damaged"),
        ("../config.json", "{}", "has no format number"),
        ("checkpoints/step-00000005/state.json", "{}", "step-00000005"),
    ],
)
def test_a_damaged_run_hides_no_other(tmp_path: Path, file: str, content: str, told: str) -> None:
    """Its row has the error and all valid parts."""
    run = make_run(tmp_path / "a", log(), machine=CPU)
    make_run(tmp_path / "b", log())
    (run / "training" / file).write_text(content, encoding="utf-8")
    rows = {row.run: row for row in list_runs(tmp_path)}
    assert rows["b"].state == "stopped"
    assert told in str(rows["a"].reason)
    assert all(isinstance(cell, str) for cell in rows["a"].cells)


def test_a_task_that_is_not_here(tmp_path: Path) -> None:
    """A run of an unknown task is listed by its loss."""
    row = row_of(make_run(tmp_path / "a", log(), {"task": "my.own", "data": {"train": "x"}}))
    assert (row.task, row.data, row.metric, row.best) == ("my.own", "x", "loss", 8 / 30)


def test_a_folder_without_runs(tmp_path: Path) -> None:
    """One sentence reports it, and also a path that is not a folder."""
    with pytest.raises(InputError, match="There is no run in"):
        list_runs(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        list_runs(tmp_path / "none")
