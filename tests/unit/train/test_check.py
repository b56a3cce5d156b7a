"""A run checks its training and validation data before there are weights."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from tests.unit.train.hand import TASKS
from tests.unit.train.made import make_console, make_job
from torch import nn

from dragoman.data.batches import Stream
from dragoman.errors import InputError
from dragoman.models import ModelConfig
from dragoman.tasks.task import train


@pytest.mark.parametrize("task", TASKS)
def test_a_check_comes_before_the_weights(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called once with the model's real vocabulary and all batches, before any random draw.

    Initializing a model that fills the memory would delay the error too long.
    """
    recipe = TASKS[task](tmp_path).recipe
    asked: list[tuple[ModelConfig, Stream[Any], int]] = []

    def refuse(config: ModelConfig, batches: Stream[Any], validation: Iterable[Any]) -> None:
        asked.append((config, batches, sum(batch.num_targets for batch in validation)))
        raise InputError("no")

    def too_early(self: nn.Module) -> None:
        pytest.fail(f"{type(self).__name__} was made")

    monkeypatch.setattr(nn.Linear, "reset_parameters", too_early)
    monkeypatch.setattr(nn.Embedding, "reset_parameters", too_early)
    console, _ = make_console(terminal=False)
    with pytest.raises(InputError, match="no"):
        train(recipe, console=console, estimate=lambda: refuse)
    [(config, batches, validated)] = asked
    assert config.kind == recipe.model.kind
    assert getattr(config, "vocab_size", 1) > 0
    assert batches.num_batches > 0
    assert validated > 0


@pytest.mark.parametrize("task", ["translate", "generate", "classify", "tag"])
def test_a_run_goes_on_with_the_texts_that_judged_it(task: str, tmp_path: Path) -> None:
    """Other validation texts would choose another best model; older runs do not record them."""
    recipe = TASKS[task](tmp_path).recipe
    given: dict[str, Any] = {}
    for side in ("src", "tgt") if task == "translate" else ("train",):
        found = getattr(recipe.data, side)
        path = copyfile(found if isinstance(found, str) else found[0], tmp_path / f"valid.{side}")
        name = "valid" if side == "train" else f"valid_{side}"
        given[name] = str(path) if isinstance(found, str) else (str(path),)
    recipe = replace(recipe, data=replace(recipe.data, **given))
    state = json.loads(json.dumps(make_job(recipe)[0].batches.state_dict()))
    make_job(recipe)[0].batches.load_state_dict(state)
    for path in tmp_path.glob("valid.*"):
        path.write_text(path.read_text("utf-8") * 2, "utf-8")
    changed = make_job(recipe)[0].batches
    with pytest.raises(InputError, match="validation data have changed"):
        changed.load_state_dict(state)
    changed.load_state_dict({k: v for k, v in state.items() if k != "validation"})
    assert changed.state_dict()["validation"] != state["validation"]
