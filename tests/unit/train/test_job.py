"""Laws of runs of any task: resuming after a kill, and the task's own metric."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.unit.train.encoder_recipes import classify_recipe
from tests.unit.train.made import make_console

from dragoman.errors import InputError
from dragoman.tasks.classify.task import ClassifyRecipe
from dragoman.tasks.task import train
from dragoman.train.config import TrainConfig
from dragoman.train.recipe import RunRecipe

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return the contents of a folder, with None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@contextmanager
def copied_at_every_change(folder: Path, copies: list[Path]) -> Iterator[None]:
    """Copy a changed folder whenever this process is about to modify a file."""
    looking, last = True, dict[str, bytes | None]()

    def hook(event: str, arguments: tuple[int, ...]) -> None:
        nonlocal looking, last
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if looking and (writes or event in CHANGES):
            looking = False
            now = contents(folder)
            if now != last:
                copies.append(folder.with_name(f"killed-{len(copies)}"))
                shutil.copytree(folder, copies[-1])
            looking, last = True, now

    sys.addaudithook(hook)  # audit hooks stay for the life of the process
    yield
    looking = False


def go_on(recipe: RunRecipe) -> None:
    """Run a recipe to its end, unless it has ended."""
    try:
        train(recipe, console=make_console(terminal=False)[0])
    except InputError as error:
        assert "is finished" in str(error)  # noqa: PT017 (it may also end well)


def test_killed_at_every_change_of_a_file(tmp_path: Path) -> None:
    """A run that is killed at any point and resumed leaves the same files and bits.

    This includes dropout, token dropout, subword sampling and averages.
    """
    recipe = classify_recipe(tmp_path)
    steps = replace(
        recipe.train,
        max_steps=3,
        save_every=1,
        average_last=2,
        ema=0.5,
        validate_every=2,
        log_every=1,
    )
    model = replace(recipe.model, dropout=0.3)
    batch = replace(recipe.batch, subword_sampling=0.2, token_dropout=0.2)
    recipe = replace(recipe, train=steps, model=model, batch=batch)
    copies: list[Path] = []
    with copied_at_every_change(tmp_path / "run", copies):
        go_on(recipe)
    whole = contents(tmp_path / "run")
    assert len(copies) > 30
    for copy in copies:
        go_on(replace(recipe, out=str(copy)))
        found = contents(copy)
        assert (copy, sorted(found)) == (copy, sorted(whole))
        tensors = [name for name in whole if name.endswith(".safetensors")]
        assert [name for name in tensors if found[name] != whole[name]] == []


def test_the_metric_is_the_tasks_own() -> None:
    """By default the best model is chosen by the task's own metric."""
    assert ClassifyRecipe().metric == ClassifyRecipe.metrics[0]
    assert ClassifyRecipe(train=TrainConfig(max_steps=1, metric="loss")).metric == "loss"
