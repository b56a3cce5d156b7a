"""Several processes share one model in parts, and a run whose process is killed starts again."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from tests.system.conftest import CommandLine
from tests.system.corpora import reversed_digits
from tests.system.ranks import command, kill_rank_1, launch, run, start
from tests.system.test_resume import assert_same_runs, figures

SHARDED = ("train.shard=on", "model.layer_drop=0", "train.ema=0.9", "train.max_steps=8")


def words_of(folder: Path, out: Path) -> list[object]:
    """A sharded run in which all else is random that can be."""
    return [*command(folder, out), *SHARDED]


def test_killed_with_shards(dragoman: CommandLine, tmp_path: Path) -> None:
    """Killed within a step or a save, a run goes on with every bit of an unbroken one."""
    reversed_digits(tmp_path, 120)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(dragoman, 2, *words_of(tmp_path, whole)).succeeded()
    saves, metrics = (killed / "training" / name for name in ("checkpoints", "metrics.jsonl"))

    def stepped() -> bool:
        return metrics.exists() and metrics.read_bytes().count(b"\n") > 3

    def saving() -> bool:
        return any(saves.glob(".step-*"))

    for victim, moment in ((1, stepped), (0, saving)):
        ranks = start(dragoman, 2, words_of(tmp_path, killed))
        assert ranks[0].wait_until(moment)
        os.kill(ranks[victim].pid, signal.SIGKILL)
        assert all(running.end().code for running in ranks)
    said = run(dragoman, 2, *words_of(tmp_path, killed)).succeeded()
    assert "Resuming from step" in said
    assert "this machine has" not in said
    assert_same_runs(killed, whole)


@pytest.mark.parametrize(("before", "was"), [("on", "2 (sharded)"), ("off", "2")])
def test_a_run_goes_on_with_another_number(
    before: str, was: str, dragoman: CommandLine, tmp_path: Path
) -> None:
    """What two have saved four go on with, and one; with shares or whole models; that is said."""
    reversed_digits(tmp_path, 120)
    out = tmp_path / "run"
    exact = ("model.dropout=0", "batch.subword_sampling=0", "train.schedule=constant")
    words = (*exact, "train.learning_rate=1e-3", f"train.shard={before}", "train.max_steps=2")
    assert run(dragoman, 2, *words_of(tmp_path, out), *words).code == 0
    losses = {}
    for size, shard in ((4, before), (1, "auto"), (2, "off"), (2, "on")):
        other = tmp_path / f"of-{size}-{shard}"
        shutil.copytree(out, other)
        each = ("train.max_steps=3", f"train.shard={shard}")
        said = run(dragoman, size, *words_of(tmp_path, other), *words, *each).succeeded()
        assert "Resuming from step 2." in said
        assert (f" (was {was})" in said) == ((size, shard) != (2, before))
        steps = [line for line in figures(other) if "loss" in line]
        assert [line["step"] for line in steps] == [1, 2, 3]
        losses[size, shard] = [line["loss"] for line in steps]
    assert losses[2, "off"] == pytest.approx(losses[2, "on"], rel=1e-6)


def test_a_killed_process_starts_all_again(dragoman: CommandLine, tmp_path: Path) -> None:
    """Once for each restart that is allowed; then the launcher says which one was killed."""
    reversed_digits(tmp_path, 120)
    words = [*command(tmp_path, tmp_path / "run"), "train.max_steps=100", "--max-restarts", "1"]
    running = launch(dragoman, *words)
    assert running.wait_until(lambda: "\nstep 1:" in running.said(), 0.02)
    kill_rank_1(running.pid)
    again = "process 1 of 2 was killed (SIGKILL); all start again"
    assert running.wait_until(lambda: "\nstep " in running.said().partition(again)[2], 0.02)
    kill_rank_1(running.pid)
    ended = running.end()
    assert ended.code == 1, ended.said
    _, _, after = ended.said.partition(again)
    assert "(1/1)" in after
    assert "process 1 of 2 was killed (SIGKILL)" in after
    assert "Traceback" not in ended.said
