"""What the demonstration says of its training."""

from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.train.made import make_console

from dragoman.cli import demo, train
from dragoman.train.loop import Progress
from dragoman.train.recipes.base import RunRecipe
from dragoman.train.run import TrainResult


@pytest.mark.parametrize(("step", "told"), [(253, "after 253 of 1,600 steps"), (1600, "")])
def test_a_machine_that_is_too_slow_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, told: str
) -> None:
    """Sentences that are wrong for want of time are no puzzle."""

    def run(recipe: RunRecipe, _: Console) -> TrainResult:
        progress = Progress(step=step)
        return TrainResult(
            folder=Path(recipe.out), reason="it is so", interrupted=False, progress=progress
        )

    monkeypatch.setattr(train, "run_recipe", run)
    console, shown = make_console(terminal=False)
    demo._train(tmp_path, tmp_path / "model", ["train.max_steps=1600"], console)
    assert told in shown.getvalue()
    assert ("The time was up" in shown.getvalue()) == bool(told)
