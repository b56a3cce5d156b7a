"""Laws of runs of any task: resuming after a kill, checks of the data, and the best model."""

import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from tests.unit.train.encoder_recipes import classify_recipe
from tests.unit.train.hand import TASKS
from tests.unit.train.made import make_console, make_job
from torch import nn

from dragoman.data.batches import Stream
from dragoman.errors import InputError
from dragoman.models import ModelConfig
from dragoman.tasks.task import train
from dragoman.train.job import is_better
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
    """Other validation texts would choose another best model."""
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
    with pytest.raises(InputError, match="validation data have changed"):
        make_job(recipe)[0].batches.load_state_dict(state)


ONE, TWO = ({"loss": x, "bleu": x, "chrf": x} for x in (1.0, 2.0))
FAILED, POOR = {"loss": math.nan, "bleu": math.nan}, {"loss": 99.0, "bleu": 0.0}


@pytest.mark.parametrize(
    ("better", "worse", "metric"),
    [
        (ONE, TWO, "loss"),
        (TWO, ONE, "bleu"),
        (TWO, ONE, "chrf"),
        (TWO, {"loss": 1.0, "bleu": math.nan}, "bleu"),
        (POOR, FAILED, "loss"),
        (POOR, FAILED, "bleu"),
        ({"loss": 6.0, "bleu": 20.0}, {"loss": 6.5, "bleu": 20.0}, "bleu"),
        ({"loss": 6.0, "bleu": 0.0}, {"loss": 6.5, "bleu": 0.4}, "bleu"),
        ({"loss": 7.0, "bleu": 1.1}, {"loss": 6.0, "bleu": 0.9}, "bleu"),
        ({"loss": 9.0, "bleu": 3.0}, {"loss": math.inf, "bleu": 50.0}, "bleu"),
        ({"loss": 9.0, "bleu": 3.0}, {"loss": math.nan, "bleu": 50.0}, "bleu"),
    ],
)
def test_which_is_better(
    better: Mapping[str, float], worse: Mapping[str, float], metric: str
) -> None:
    """A smaller loss or a larger score is better; ties go to the smaller loss, and NaN loses.

    Scores below 1 are ties: the loss is more informative than a BLEU of 0.4. No score makes up for
    a loss that is not finite, since such a model is never exported. Equal results are not better,
    and any result is better than none.
    """
    assert is_better(better, worse, metric)
    assert not is_better(worse, better, metric)
    for found in (better, worse):
        assert not is_better(found, found, metric)
        assert is_better(found, None, metric)
