"""A task is one folder: one that lives outside the package is trained, loaded and measured too."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.project.test_own_parts import MINE, run
from tests.system.conftest import CommandLine

from dragoman import Classifier, load
from dragoman.errors import InputError
from dragoman.tasks.recipes import load_recipe
from dragoman.tasks.task import find_task

RECIPE = """
task = "mine.own_task"
[data]
train = "lines.txt"
[tokenizer]
vocab_size = 300
[batch]
max_tokens = 200
[model]
d_model = 32
num_heads = 2
d_ff = 48
num_layers = 1
norm_position = "pre"
dropout = 0.0
[train]
max_steps = 40
warmup_steps = 4
learning_rate = 1e-2
validate_every = 20
save_every = 20
average_last = 1
device = "cpu"
precision = "fp32"
"""

COMMANDS = [
    ["train", "odd.toml", "--out", "run"],
    ["train", "odd.toml", "--out", "run", "train.max_steps=60"],
    ["evaluate", "run", "--data", "lines.txt", "--json"],
    ["cost", "odd.toml", "--json"],
    ["inspect", "run"],
]

ESTIMATED = "import dragoman.cost.forecast, importlib; importlib.reload(dragoman.cost.forecast)"
"""Lets a fork of the system tests' process, which estimates nothing, do so."""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `mine`, texts and a recipe."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").touch()
    source = Path(__file__).with_name("own_task.py").read_text(encoding="utf-8")
    (folder / "mine" / "own_task.py").write_text(source, encoding="utf-8")
    lines = [" ".join(["so"] * (1 + number % 2)) for number in range(80)]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "odd.toml").write_text(RECIPE, encoding="utf-8")
    (folder / "program.py").write_text(MINE.format(module="mine.own_task"), encoding="utf-8")
    return folder


def test_a_task_from_outside_goes_all_the_way(
    outside: Path, dragoman: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It trains, goes on where it ended, is loaded by what its folder says, and is measured."""
    patch = outside / "patch.py"
    patch.write_text(ESTIMATED, encoding="utf-8")
    said = run(dragoman, outside, "program.py", json.dumps(COMMANDS), PATCH=str(patch))
    assert "odd run" in said.splitlines()
    assert "Estimate for the whole run" in said
    assert "Resuming from step 40." in said
    config = json.loads((outside / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["task"] == "mine.own_task"
    measured, costs, *inspected = (outside / "printed").read_text(encoding="utf-8").splitlines()
    assert json.loads(measured) == {"accuracy": 100.0}
    assert json.loads(costs)["parameters"]
    assert "even" in "".join(inspected)
    with pytest.raises(InputError, match=r"no task \"mine.own_task\".*imported"):
        load(outside / "run", device="cpu")
    with pytest.raises(InputError, match=r"holds a model of the task \"mine.own_task\""):
        Classifier.load(outside / "run", device="cpu")
    monkeypatch.syspath_prepend(outside)
    import_module("mine.own_task")
    oddness = load(outside / "run", device="cpu")
    assert type(oddness).__module__ == "mine.own_task"
    assert oddness.is_odd(["so", "so so"]) == [True, False]


@pytest.mark.parametrize("name", ["antigravity", "a/b", ".x", "", "dragoman.wording"])
def test_naming_a_task_imports_nothing(name: str) -> None:
    """A recipe or a model folder that names a module of no task is refused, and runs no code."""
    before = set(sys.modules)
    with pytest.raises(InputError, match=r"there is no task .* must have been imported"):
        find_task(name)
    assert set(sys.modules) == before


def test_a_module_of_one_name_is_a_task_too(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe names a task by a module that is in no package."""
    source = (outside / "mine" / "own_task.py").read_text(encoding="utf-8")
    (outside / "oddity.py").write_text(source.replace("mine.own_task", "oddity"), encoding="utf-8")
    recipe = RECIPE.replace("mine.own_task", "oddity")
    (outside / "alone.toml").write_text(recipe, encoding="utf-8")
    monkeypatch.chdir(outside)
    monkeypatch.syspath_prepend(outside)
    with pytest.raises(InputError, match="oddity"):
        load_recipe("alone.toml")
    import_module("oddity")
    assert load_recipe("alone.toml").task == "oddity"
