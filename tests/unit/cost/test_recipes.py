"""The work of a recipe: of each task, shipped or from outside, with sentences as asked for."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dragoman.cost.devices import device_named, device_table
from dragoman.cost.machine import rates_of
from dragoman.cost.recipes import find_recipe
from dragoman.cost.report import cost_of
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.folder.format import GenerationDefaults
from dragoman.models import DecoderOnlyConfig
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.task import find_task
from dragoman.train.recipe import LENGTH

ROOM = [
    ("tinyshakespeare", "batch.length"),
    ("multi30k-en-de", "batch.max_length"),
    ("sst2", "batch.max_length"),
    ("conll2003", "batch.max_length"),
    ("pretrain-en", "batch.max_length"),
]


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_sentence_is_as_long_as_asked_for_or_refused(name: str, key: str) -> None:
    """In every task: up to the recipe's own limit, never silently shorter."""
    recipe = find_recipe(name, [f"{key}=50"])
    for length in (1, 49, 50):
        assert recipe.work(length).length == length
    said = rf"length = 51 is over the recipe's {key} = 50: ask for 50 or less, or add {key}=51"
    with pytest.raises(InputError, match=said):
        recipe.work(51)


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_length_that_nobody_asked_for_fits(name: str, key: str) -> None:
    """Thirty tokens, or all that the recipe has room for."""
    assert find_recipe(name).work().length == LENGTH
    assert find_recipe(name, [f"{key}=16"]).work().length == 16


@pytest.mark.parametrize(
    ("name", "unset"),
    [
        ("tinyshakespeare", {"generation": GenerationDefaults()}),
        ("multi30k-en-de", {"decoding": Decoding()}),
    ],
)
def test_options_that_nobody_set_are_those_of_the_task(name: str, unset: dict[str, Any]) -> None:
    """As a recipe has them that is built in Python, or that takes over a folder's."""
    recipe = find_recipe(name)
    work = replace(recipe, **unset).work()
    assert (work.answer, work.beam_size) == (recipe.work().answer, recipe.work().beam_size)


MODULE = '''
from dataclasses import dataclass, replace

from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.generate.task import TASK as GENERATE


@dataclass(frozen=True, slots=True, kw_only=True)
class TwiceRecipe(GenerateRecipe):
    """Reads each batch twice."""

    task: str = "read_twice"

    @staticmethod
    def loss(model, batch, smoothing):
        """Sum the losses of both times."""
        once = GenerateRecipe.loss
        return once(model, batch, smoothing) + once(model, batch, smoothing)


TASK = replace(GENERATE, recipe=TwiceRecipe)
'''


def test_a_task_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All figures are there, and a loss that runs the model twice costs twice."""
    (tmp_path / "read_twice.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("read_twice")
    table = device_table()
    rates = rates_of(device_named("t4", table), table, "fp32")
    costs = []
    for name in ("generate", "read_twice"):
        make: Any = find_task(name).recipe
        model = DecoderOnlyConfig(d_model=32, num_heads=2, d_ff=64, num_layers=2, vocab_size=300)
        work = make(task=name, model=model, batch=PackConfig(rows=2, length=32)).work()
        costs.append(cost_of(name, work, rates))
    once, twice = costs
    assert twice.flops_per_token.training == pytest.approx(2 * once.flops_per_token.training)
    assert twice.memory.training.activations > once.memory.training.activations
    assert twice.to_dict().keys() == once.to_dict().keys()
