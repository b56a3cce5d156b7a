"""A task from outside the package is costed by its own batches and its own loss."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dragoman.cost.devices import device_named, device_table
from dragoman.cost.machine import rates_of
from dragoman.cost.recipes import work_of
from dragoman.cost.report import cost_of
from dragoman.models import DecoderOnlyConfig
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.task import find_task

MODULE = '''
from dataclasses import dataclass, replace

from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.generate.task import TASK as GENERATE


@dataclass(frozen=True, slots=True, kw_only=True)
class TwiceRecipe(GenerateRecipe):
    """Reads each batch twice."""

    task: str = "read_twice"


def loss(model, batch, smoothing):
    """Sum the losses of both times."""
    once = GENERATE.workload.loss
    return once(model, batch, smoothing) + once(model, batch, smoothing)


TASK = replace(GENERATE, recipe=TwiceRecipe, workload=replace(GENERATE.workload, loss=loss))
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
        work = work_of(make(task=name, model=model, batch=PackConfig(rows=2, length=32)))
        costs.append(cost_of(name, work, rates))
    once, twice = costs
    assert twice.flops_per_token.training == pytest.approx(2 * once.flops_per_token.training)
    assert twice.memory.training.activations > once.memory.training.activations
    assert twice.to_dict().keys() == once.to_dict().keys()
