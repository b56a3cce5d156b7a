"""Several processes by `--nproc`: started, ended and reachable by nobody else."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.system.conftest import CommandLine
from tests.system.corpora import reversed_digits
from tests.system.ranks import children_of, command, launch, listeners, start

from dragoman.train.launch import launch as run_ranks


def test_the_shorthand(dragoman: CommandLine, tmp_path: Path) -> None:
    """`--nproc 2` is a run of two processes, whose dropout follows from different seeds.

    What is wrong, as to begin it again, is one sentence, and the exit code that of one process.
    """
    reversed_digits(tmp_path, 120)
    ours = tmp_path / "ours"
    words = [*command(tmp_path, ours), "train.max_steps=3"]
    said = launch(dragoman, *words).end().succeeded()
    assert "2 processes (gloo), 4 batches a step." in said
    assert said.count(f"dragoman translate {ours} < FILE") == 1
    for file in (ours / "training").rglob("random.safetensors"):
        states = load_file(file)
        assert states.keys() == {"cpu", "rank1/cpu"}
        seeds = {torch.Generator().set_state(state).initial_seed() for state in states.values()}
        assert len(seeds) == 2
    ended = launch(dragoman, "--quiet", *words).end()
    ended.assert_refused(f"dragoman: the run in {ours} is finished")
    assert ended.said.count("\n") == 1


def test_modules_of_the_current_folder_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a stranger's, with a recipe and its texts."""
    for name in ("json.py", "torch.py", "dragoman.py"):
        (tmp_path / name).write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert run_ranks(1, ["--version"]) == 0


def test_ctrl_c_to_the_shorthand(dragoman: CommandLine, tmp_path: Path) -> None:
    """It saves, says how to go on and exits with 130."""
    reversed_digits(tmp_path, 120)
    words = [*command(tmp_path, tmp_path / "run"), "train.max_steps=60", "train.save_every=20"]
    running = launch(dragoman, *words)
    assert running.wait_until(lambda: "\nstep 1:" in running.said(), 0.02)
    ended = running.end(signal.SIGINT)
    assert ended.code == 130, ended.said
    assert "The same command resumes from there." in ended.said
    assert "Traceback" not in ended.said
    ranks = start(dragoman, 2, words)
    assert ranks[0].wait_until(lambda: "Resuming from step" in ranks[0].said())
    for rank in ranks:
        rank.end(signal.SIGKILL)


def test_nothing_listens_but_on_loopback(dragoman: CommandLine, tmp_path: Path) -> None:
    """No socket of launcher or ranks can be reached from elsewhere; killed, it leaves no rank."""
    reversed_digits(tmp_path, 120)
    words = [*command(tmp_path, tmp_path / "run"), "train.max_steps=1000", "train.shard=off"]
    running = launch(dragoman, *words)
    assert running.wait_until(lambda: "\nstep 1:" in running.said(), 0.02)
    ranks = [replace(running, pid=int(child)) for child in children_of(running.pid)]
    assert len(ranks) == 2
    open_to = [listeners(str(each.pid)) for each in (running, *ranks)]
    running.end(signal.SIGKILL)
    for rank in ranks:
        rank.wait_until(rank.has_ended, 0.02)
    assert open_to == [{"127.0.0.1"}] * 3


TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("number", "variables", "sentence"),
    [
        ("0", {}, "--nproc 0 is not a number of processes"),
        ("-3", {}, "--nproc -3 is not a number of processes"),
        ("5000", {}, "--nproc 5000 is not a number of processes"),
        ("two", {}, "--nproc must be a whole number, not two"),
        ("2", TORCHRUN, "leave it out"),
    ],
)
def test_a_number_that_makes_no_sense(
    dragoman: CommandLine, tmp_path: Path, number: str, variables: dict[str, str], sentence: str
) -> None:
    """One sentence, and nothing is begun; within torchrun any number contradicts it."""
    words = ("train", "demo", "--out", tmp_path / "run", "--nproc", number)
    ended = dragoman.start(words, environment=variables).end()
    ended.assert_refused(sentence)
    assert ended.said.count("\n") == 1
    assert not (tmp_path / "run").exists()
