"""A sweep from the outside: it is interrupted and goes on."""

import signal
from pathlib import Path

from tests.system.conftest import CommandLine
from tests.system.test_generate import write_recipe

SWEEP = """
[[sweep]]
size.d8 = {model.d_model = 8}
steps.4 = {train.max_steps = 4}
steps.8 = {train.max_steps = 8}
steps.many = {train.max_steps = 900000}
"""


def test_a_sweep_goes_on(dragoman: CommandLine, tmp_path: Path) -> None:
    """Interrupted in its third run, a sweep goes on there and leaves finished ones alone."""
    recipe, out = write_recipe(tmp_path, SWEEP), tmp_path / "runs"
    settings = ("model.num_layers=1", "batch.rows=2", "train.average_last=1")
    command = ("train", recipe, f"data.root={tmp_path}", f"out={out}", *settings)
    running = dragoman.start(command)
    assert running.wait_until((out / "d8-many" / "training" / "metrics.jsonl").exists)
    interrupted = running.end(signal.SIGINT)
    assert interrupted.code == 130, interrupted.said
    before = (out / "d8-4" / "training" / "metrics.jsonl").read_bytes()
    again = dragoman.start(command)
    assert again.wait_until(lambda: "Resuming from step" in again.said())
    ended = again.end(signal.SIGINT)
    assert ended.code == 130, ended.said
    assert ended.said.count("It is finished.") == 2
    assert (out / "d8-4" / "training" / "metrics.jsonl").read_bytes() == before
