"""A run that is killed, at any moment, ends with the bits of one that was not."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.system.conftest import CommandLine, Ended, Running
from tests.system.corpora import SMALL, reversed_digits

STEPS = 20
SETTINGS = (
    *SMALL,
    "model.dropout=0.3",
    "batch.subword_sampling=0.2",
    "batch.token_dropout=0.1",
    "batch.max_tokens=300",
    f"train.max_steps={STEPS}",
    "train.accumulate=2",
    "train.save_every=2",
    "train.average_last=3",
    "train.validate_every=7",
    "train.validate_limit=3",
    "train.log_every=1",
)


def command(folder: Path, out: Path, precision: str) -> list[object]:
    """The command of a run."""
    texts = ["--src", folder / "a.src", "--tgt", folder / "a.tgt", "--out", out]
    return ["train", *texts, *SETTINGS, f"train.precision={precision}"]


def figures(out: Path) -> list[dict[str, Any]]:
    """What metrics.jsonl holds, without times and ends."""
    text = (out / "training" / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    timed = ("seconds", "tokens_per_second")
    return [
        {key: value for key, value in line.items() if key not in timed}
        for line in lines
        if "stopped" not in line
    ]


def bits(out: Path) -> dict[str, bytes]:
    """The tensors of a run: its model, its checkpoints, its optimizer, its random state."""
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.safetensors")}


def a_moment(out: Path, draw: random.Random) -> Callable[[], bool]:
    """Draw a moment for a kill: after some steps, while a checkpoint or the model is written."""
    training = out / "training"
    metrics = training / "metrics.jsonl"
    enough = draw.randint(1, 9)

    def lines() -> int:
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    before = lines()

    def stepped() -> bool:
        return lines() >= before + enough

    def saving() -> bool:
        return stepped() and any((training / "checkpoints").glob(".step-*"))

    def exporting() -> bool:
        return (out / ".saving").exists()

    return draw.choice([stepped, saving, saving, exporting])


def kill(running: Running, out: Path, draw: random.Random) -> Ended:
    """Kill a run at a random moment, unless it ends before."""
    if running.wait_until(a_moment(out, draw)):
        time.sleep(draw.uniform(0, 0.004))
    return running.end(signal.SIGKILL)


def assert_same_runs(killed: Path, whole: Path) -> None:
    """Both have the same end, the same tensors to the bit and the same figures."""
    end, expected = (run / "training" / "finished.json" for run in (killed, whole))
    assert end.read_bytes() == expected.read_bytes()
    ours, theirs = bits(killed), bits(whole)
    assert sorted(ours) == sorted(theirs)
    assert [name for name in theirs if ours[name] != theirs[name]] == []
    assert figures(killed) == figures(whole)


def test_killed_again_and_again(dragoman: CommandLine, tmp_path: Path) -> None:
    """Killed thrice, at random moments as long as it runs, a run has every bit of a whole one."""
    reversed_digits(tmp_path, 120)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    dragoman.run(*command(tmp_path, whole, "bf16")).succeeded()
    words, draw = command(tmp_path, killed, "bf16"), random.Random(random.random())
    ended = dragoman.start(words, moment=draw.randrange(30)).end()
    assert ended.code == -signal.SIGKILL, ended.said
    for _ in range(2):
        ended = kill(dragoman.start(words), killed, draw)
        if ended.code != -signal.SIGKILL:
            break
    else:
        ended = dragoman.run(*words)
    assert ended.code == 0 or "is finished" in ended.said, ended.said  # as it marked its end
    assert_same_runs(killed, whole)


def test_ctrl_c(dragoman: CommandLine, tmp_path: Path) -> None:
    """It saves, says how to resume and exits with 130.

    Going on works. Where there is a model already, it is said how to use it.
    """
    reversed_digits(tmp_path, 120)
    out = tmp_path / "run"
    ended = dragoman.start(
        command(tmp_path, out, "fp32"), random.randint(40, 60), signal.SIGINT
    ).end()
    assert ended.code == 130, ended.said
    assert "interrupted" in ended.said
    assert "The same command resumes from there." in ended.said
    use = f"can be used already:\ndragoman translate {out} < FILE\n"
    assert (use in ended.said) == (out / "config.json").exists()
    assert "Traceback" not in ended.said
    said = dragoman.run(*command(tmp_path, out, "fp32")).succeeded()
    assert "Resuming from step" in said
    steps = [line["step"] for line in figures(out) if "loss" in line]
    assert steps == list(range(1, STEPS + 1))
    dragoman.run(*command(tmp_path, out, "fp32")).assert_refused("is finished")


DEAF = """
import os, torch
torch.set_num_threads(2)
if pipe := os.environ.get("PIPE"):
    os.dup2(os.open(pipe, os.O_WRONLY), 2)
"""
"""Two threads, and standard error into a pipe."""


def test_ctrl_c_while_nobody_listens(dragoman: CommandLine, tmp_path: Path) -> None:
    """Ctrl-C saves also where standard error takes no more, as when it ends `| tee log` first.

    Going on ends with the bits of a run that was heard, with two threads too.
    """
    reversed_digits(tmp_path, 400)
    wide = ("model.d_model=64", "batch.max_tokens=1500", "train.validate_every=1")
    whole, cut, pipe, patch = (tmp_path / name for name in ("whole", "cut", "pipe", "patch.py"))
    os.mkfifo(pipe)
    patch.write_text(DEAF, encoding="utf-8")

    def start(out: Path, **more: str) -> Running:
        words = [*command(tmp_path, out, "fp32"), *wide, "train.max_steps=6"]
        return dragoman.start(words, environment={"PATCH": str(patch), **more})

    start(whole).end().succeeded()
    running = start(cut, PIPE=str(pipe))
    with pipe.open(encoding="utf-8") as stderr:
        next(line for line in stderr if line.startswith("step 1:"))
    metrics = cut / "training" / "metrics.jsonl"
    assert running.wait_until(  # each is said
        lambda: metrics.exists() and metrics.read_bytes().count(b'"valid"') > 1
    )
    assert running.end(signal.SIGINT).code == 130
    assert '"stopped": "interrupted"' in metrics.read_text(encoding="utf-8")
    start(cut).end().succeeded()
    assert_same_runs(cut, whole)
