"""A check refuses a run while there are no weights yet."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.train.hand import TASKS
from tests.unit.train.made import make_console
from torch import nn

from dragoman.data.batches import Stream
from dragoman.errors import InputError
from dragoman.models import ModelConfig
from dragoman.tasks.task import train


@pytest.mark.parametrize("task", TASKS)
def test_a_check_comes_before_the_weights(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once about the model's real vocabulary and all batches; nothing is drawn yet.

    Drawing the weights of a model that fills the memory takes longer than anybody waits for a no.
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
