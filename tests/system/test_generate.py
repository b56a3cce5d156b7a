"""A language model from the outside: it learns and generates."""

import json
import random
from pathlib import Path

from tests.system.conftest import CommandLine

RECIPE = """
task = "generate"
description = "A refrain."
[data]
train = ["song.txt"]
[tokenizer]
model = "characters"
vocab_size = 300
[batch]
length = 32
rows = 8
[model]
d_model = 48
num_heads = 2
d_ff = 96
num_layers = 2
norm_position = "pre"
positions = {kind = "rotary"}
dropout = 0.0
[train]
device = "cpu"
precision = "fp32"
label_smoothing = 0.0
learning_rate = 5e-3
warmup_steps = 5
"""
VERSES = [
    "row, row, row your boat",
    "gently down the stream",
    "merrily, merrily",
    "life is a dream",
]


def write_recipe(folder: Path, more: str = "") -> Path:
    """A recipe and its text."""
    (folder / "song.txt").write_text(("\n".join(VERSES) + "\n\n") * 60, encoding="utf-8")
    path = folder / "song.toml"
    path.write_text(RECIPE + more, encoding="utf-8")
    return path


def test_a_song_is_learnt_and_sung(dragoman: CommandLine, tmp_path: Path) -> None:
    """Seconds of training on a refrain: its perplexity is near 1, and a prompt is gone on from."""
    recipe, out = write_recipe(tmp_path), tmp_path / "run"
    settings = (f"data.root={tmp_path}", "train.max_steps=150", "train.validate_every=75")
    seed = f"train.seed={random.randrange(99)}"
    said = dragoman.run("train", recipe, *settings, seed, f"out={out}").succeeded()
    assert "characters" in said
    assert f"dragoman generate {out}" in said
    text = tmp_path / "text"
    text.write_text(("\n".join(VERSES) + "\n\n") * 5, encoding="utf-8")
    evaluated = dragoman.run("evaluate", out, "--text", text, "--json")
    assert json.loads(evaluated.said.splitlines()[0])["perplexity"] < 1.4
    sung = dragoman.run("generate", out, VERSES[0] + r"\n", "--temperature", "0", "--stop", r"\n\n")
    assert sung.said == "\n".join(VERSES) + "\n"
