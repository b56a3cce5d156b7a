"""A sweep from the outside: it is interrupted and goes on."""

import signal
from pathlib import Path

from tests.system.conftest import CommandLine

RECIPE = """
task = "generate"
description = "A small sweep."
[data]
train = ["song.txt"]
[tokenizer]
model = "characters"
vocab_size = 300
[batch]
length = 16
rows = 2
[model]
d_model = 8
num_heads = 2
d_ff = 16
num_layers = 1
norm_position = "pre"
positions = {kind = "rotary"}
dropout = 0.0
[train]
max_steps = 6
device = "cpu"
label_smoothing = 0.0
learning_rate = 1e-2
warmup_steps = 1
log_every = 2
average_last = 1
[[sweep]]
size.d8 = {model.d_model = 8}
steps.4 = {train.max_steps = 4}
steps.8 = {train.max_steps = 8}
steps.many = {train.max_steps = 900000}
"""


def test_a_sweep_goes_on(dragoman: CommandLine, tmp_path: Path) -> None:
    """Interrupted in its third run, a sweep goes on there and leaves finished ones alone."""
    words = [f"line {i % 7} of {i % 11} and {i % 13}\n" for i in range(900)]
    (tmp_path / "song.txt").write_text("".join(words), encoding="utf-8")
    recipe, out = tmp_path / "small.toml", tmp_path / "runs"
    recipe.write_text(RECIPE, encoding="utf-8")
    command = ("train", recipe, f"data.root={tmp_path}", f"out={out}")
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
