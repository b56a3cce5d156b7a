"""Resuming from damaged files works or is refused in one sentence."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.damage import damage
from tests.unit.train.made import make_console
from tests.unit.train.runs import change, interrupt, saved

from dragoman.cost.forecast import rest_of
from dragoman.errors import InputError
from dragoman.tasks.task import find_task
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.job import Validation, is_better, unchecked
from dragoman.train.progress import Progress
from dragoman.train.report import ConsoleReport, MetricsFile
from dragoman.train.runfolder import RunFolder
from dragoman.train.trainer import Trainer

CASES = int(os.environ.get("DRAGOMAN_FUZZ", "100"))


@pytest.fixture
def resume(recipe: TranslateRecipe) -> Callable[[], None]:
    """Resume an interrupted run, reading the files of a finished one too."""
    interrupt(recipe, 3, [1, 2])
    shutil.rmtree(saved(recipe)[0])  # which would replace the damaged one
    with RunFolder.of(recipe).open(recipe) as folder:
        folder.mark_finished("3 steps", Progress(step=3, best={"loss": 1.0, "bleu": 2.0}))
        job = find_task("translate").assemble(recipe, folder, lambda _: None, unchecked)
    more = change(recipe, max_steps=8)

    def resumed() -> None:
        console, _ = make_console(terminal=False)
        rest_of(more)
        with RunFolder.of(more).open(more) as folder:
            progress = Trainer(job, more, folder, console).progress
            MetricsFile(folder.metrics, more.train, progress)
            next(job.batches)
            is_better({"loss": 1.0, "bleu": 2.0}, progress.best, "bleu")
            report = ConsoleReport(console, more.train)
            report.validated(progress, Validation(loss=1.0))
            report.stopped(progress, "the end")

    return resumed


def test_damaged_files_are_read_or_refused(
    recipe: TranslateRecipe, resume: Callable[[], None]
) -> None:
    """Any damage to a text file of a run causes at most a one-sentence error."""
    training = Path(recipe.out) / "training"
    (state,) = training.glob("checkpoints/step-00000003/state.json")
    files = [state, *(training / f"{name}.json" for name in ("recipe", "finished"))]
    whole = {file: file.read_bytes() for file in (*files, training / "metrics.jsonl")}
    refused = []
    for _ in range(CASES):
        for file, content in whole.items():
            file.write_bytes(content)
        (training / "finished.before.json").unlink(missing_ok=True)
        file = random.choice(list(whole))
        file.write_bytes(damage(whole[file], random.Random(random.random())))
        try:
            resume()
        except InputError as error:
            refused.append(str(error))
    assert CASES / 10 < len(refused) < CASES
    assert [said for said in refused if "\n" in said] == []


NEVER_SAVED: list[tuple[str, str, object]] = [
    ("progress", "step", 4),
    ("progress", "tokens", -1),
    ("progress", "seconds", float("nan")),
    ("progress", "seconds", "1"),
    ("progress", "step", None),
    ("batches", "epoch", -1),
    ("batches", "position", "5"),
]


def test_states_that_no_run_has_saved(recipe: TranslateRecipe) -> None:
    """Invalid states are refused at once, not when the run first uses them."""
    interrupt(recipe, 3, [1, 2])
    shutil.rmtree(saved(recipe)[0])  # which would replace the damaged one
    (file,) = Path(recipe.out).rglob("step-00000003/state.json")
    whole = file.read_bytes()
    for section, key, value in NEVER_SAVED:
        state = json.loads(whole)
        state[section][key] = value
        file.write_text(json.dumps(state), encoding="utf-8")
        with pytest.raises(InputError, match=r"the checkpoint .*step-00000003 cannot be read"):
            interrupt(recipe, 1, [2])


def test_an_emptied_recipe_is_that_of_the_checkpoint(recipe: TranslateRecipe) -> None:
    """If a power failure empties `recipe.json`, it is restored, and two runs are never mixed."""
    interrupt(recipe, 3, [1, 2])
    file = Path(recipe.out) / "training" / "recipe.json"
    whole = file.read_bytes()
    file.write_bytes(b"")
    with pytest.raises(InputError, match=r"\(train.seed; train.seed was 1, is 2\); .* --from"):
        interrupt(change(recipe, seed=2), 1, [2])
    assert interrupt(recipe, 1, [2]).progress.step == 4
    assert file.read_bytes() == whole
