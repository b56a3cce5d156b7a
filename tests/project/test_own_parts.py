"""A position scheme, an attention pattern and a decoding strategy from outside the package.

Each is one file in a folder that the package does not know. What CONTRIBUTING and docs/attention.md
promise of them is done: train a few steps, save, load, decode, cost, inspect.
"""

import json
from pathlib import Path

import pytest
from tests.system.conftest import CommandLine

SCHEMES = {
    "table": """
class Ramp(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(d_model))

    def forward(self, x_BLD, positions):
        if isinstance(positions, range):
            positions = torch.arange(positions.start, positions.stop, device=x_BLD.device)
        return x_BLD + positions[..., None] * self.slope / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramped(Scheme):
    kind: Literal["own"] = "own"
    factor: float = 1.0

    def make_table(self, d_model):
        return Ramp(d_model)
""",
    "rotation": """
@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(Scheme):
    kind: Literal["own"] = "own"
    factor: float = 1.0

    def make_rotation(self, head_dim):
        return Rotary(base=100.0 * self.factor).make_rotation(head_dim)
""",
    "bias": """
class Fading(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.slopes = nn.Parameter(torch.ones(num_heads))

    def forward(self, distance_TS):
        return -self.slopes[:, None, None] * distance_TS.abs().log1p()


@dataclass(frozen=True, slots=True, kw_only=True)
class Faded(Scheme):
    kind: Literal["own"] = "own"
    factor: float = 1.0

    def make_bias(self, num_heads, *, bidirectional):
        return Fading(num_heads)
""",
}
SCHEME_HEAD = """
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from dragoman.nn import Rotary, Scheme

"""
PATTERN = """
from dataclasses import dataclass
from typing import Literal

from dragoman.nn import Pattern, distances


@dataclass(frozen=True, slots=True, kw_only=True)
class Dilated(Pattern):
    kind: Literal["dilated"] = "dilated"
    step: int = 2
    is_causal = True

    def mask(self, num_queries, num_keys, device):
        distance_TS = distances(num_queries, num_keys, device)
        return (distance_TS <= 0) & (distance_TS % self.step == 0)
"""
STRATEGY = """
from dataclasses import dataclass

from dragoman.decode import SingleFrontier


class SecondChoice:
    def choose(self, log_probs_NV):
        return log_probs_NV.topk(2, dim=1).indices[:, 1]

    def keep(self, sentences_K):
        pass


@dataclass(frozen=True)
class SecondBest:
    beam_size = 1
    n_best = 1

    def begin(self, max_B, eos_id):
        return SingleFrontier(max_B, eos_id, 0.0, SecondChoice())
"""
MINE = """
import dragoman

dragoman.prepare_process()

import json
import sys

import {module}
from dragoman.cli.main import main

for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as ended:
        if ended.code:
            raise
"""
DECODE = """
import sys
from pathlib import Path

import torch

from dragoman.decode import Greedy, Limits, search
from dragoman.folder.opening import open_folder
from dragoman.nn import inference
import strategy

opened = open_folder(Path(sys.argv[1]))
model, config = opened.model, opened.config
prompts = torch.tensor([[5], [9]])
limits = Limits(bos_id=config.model.bos_id, eos_id=-1, max_B=torch.tensor([6, 4]))
with inference(model):
    second = search(model, prompts, strategy.SecondBest(), limits=limits)
    best = search(model, prompts, Greedy(), limits=limits)
assert [len(found[0].ids) for found in second] == [6, 4], second
assert all(s[0].token_log_probs[0] < b[0].token_log_probs[0] for s, b in zip(second, best))
"""
RECIPE = """
task = "generate"

[data]
train = ["text.txt"]
hold_out = {{share = 0.2}}

[tokenizer]
model = "characters"

[model]
d_model = 16
num_heads = 2
d_ff = 32
num_layers = 1
{model}

[batch]
length = 16
rows = 4

[train]
max_steps = 4
device = "cpu"
precision = "fp32"
"""


def run(dragoman: CommandLine, folder: Path, *words: str, **more: str) -> str:
    """Run a program of the folder, which must succeed; `printed` there has its standard output."""
    places = {"cwd": folder, "stdout": folder / "printed"}
    environment = {"COLUMNS": "200", **more}
    running = dragoman.start(words, environment=environment, places=places, program="python")
    return running.end().succeeded()


TRAIN = ["train", "own.toml", "out=run"]
GENERATE = ["generate", "run", "row ", "--max-tokens", "4", "--temperature", "0"]
REST = [["cost", "own.toml"], ["cost", "run"], ["inspect", "run", "row row", "--max-tokens", "3"]]


def use(
    dragoman: CommandLine, module: str, model: str, owned: str, commands: list[list[str]]
) -> object:
    """Run commands by a script of the user's that imports the module; the model that was saved.

    Training says that a script is needed, and names the classes.
    """
    folder = dragoman.folder
    (folder / "text.txt").write_text("row row row your boat gently down the stream\n" * 40)
    (folder / "own.toml").write_text(RECIPE.format(model=model))
    (folder / "mine.py").write_text(MINE.format(module=module))
    assert f"of your own ({owned})" in run(dragoman, folder, "mine.py", json.dumps(commands))
    return json.loads((folder / "run" / "config.json").read_text())["model"]


@pytest.mark.parametrize(("makes", "name"), [("table", "Ramped"), ("rotation", "Slow")])
def test_a_position_scheme_is_one_file(
    dragoman: CommandLine, tmp_path: Path, makes: str, name: str
) -> None:
    """Whichever of the three it makes, it trains, is saved with its weights, and decodes."""
    (tmp_path / "scheme.py").write_text(SCHEME_HEAD + SCHEMES[makes])
    own = 'positions = {kind = "own", factor = 2.0}'
    model = use(dragoman, "scheme", own, name, [TRAIN, GENERATE])
    assert isinstance(model, dict)
    assert model["positions"] == {"kind": "own", "factor": 2.0}


def test_a_pattern_and_a_strategy_are_a_file_each(dragoman: CommandLine, tmp_path: Path) -> None:
    """Beside a scheme of its own a pattern trains, is costed, decodes and is inspected."""
    (tmp_path / "scheme.py").write_text(SCHEME_HEAD + SCHEMES["bias"])
    (tmp_path / "pattern.py").write_text("import scheme\n" + PATTERN)
    own = 'positions = "own"\npatterns = [{kind = "dilated", step = 3}]'
    model = use(dragoman, "pattern", own, "Dilated, Faded", [TRAIN, GENERATE, *REST])
    assert isinstance(model, dict)
    assert model["patterns"] == [{"kind": "dilated", "step": 3}]
    (tmp_path / "strategy.py").write_text(STRATEGY)
    (tmp_path / "decode.py").write_text("import pattern\n" + DECODE)
    assert run(dragoman, tmp_path, "decode.py", "run") == ""
