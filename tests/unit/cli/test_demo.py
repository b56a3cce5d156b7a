"""Output of the demo: training, translations and next steps."""

import shutil
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.tasks.tiny import make_translator, random_lines
from tests.unit.train.made import make_console

from dragoman.cli import demo
from dragoman.data.made import Pair
from dragoman.tasks import task
from dragoman.train.progress import Progress
from dragoman.train.recipe import RunRecipe
from dragoman.train.trainer import TrainResult


@pytest.mark.parametrize(("step", "told"), [(253, "after 253 of 1,600 steps"), (1600, "")])
def test_a_machine_that_is_too_slow_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, told: str
) -> None:
    """If time ran out before the last step, the output says so."""

    def run(recipe: RunRecipe, *, console: Console) -> TrainResult:  # noqa: ARG001
        progress = Progress(step=step)
        return TrainResult(
            folder=Path(recipe.out), reason="it is so", interrupted=False, progress=progress
        )

    monkeypatch.setattr(task, "train", run)
    console, shown = make_console(terminal=False)
    recipe = demo._recipe(tmp_path, tmp_path / "model", ["train.max_steps=1600"])
    demo._train(recipe, console)
    assert told in shown.getvalue()
    assert ("The time was up" in shown.getvalue()) == bool(told)


def test_a_demo_whose_time_was_up_continues(tmp_path: Path) -> None:
    """With the minutes spent added; one that is finished or has no checkpoints is left alone."""
    lines = "".join(f"w{number} x\n" for number in range(20))
    for name in ("train.en", "train.zh", "valid.en", "valid.zh"):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    tiny = ("d_model=16", "num_heads=2", "d_ff=16", "num_encoder_layers=1", "num_decoder_layers=1")
    settings = [*(f"model.{each}" for each in tiny), "tokenizer.vocab_size=300", "train.device=cpu"]
    model = tmp_path / "model"
    fresh, more = (
        demo._recipe(tmp_path, model, [*settings, f"train.max_steps={steps}"]) for steps in (1, 2)
    )
    assert demo._with_more_time(fresh, model) == fresh
    console, _ = make_console(terminal=False)
    task.train(fresh, console=console)
    assert demo._with_more_time(fresh, model) is None
    continued = demo._with_more_time(more, model)
    assert continued is not None
    assert continued.train.max_minutes is not None
    assert continued.train.max_minutes > 5
    assert task.train(continued, console=console).progress.step == 2
    shutil.rmtree(model / "training" / "checkpoints")
    assert demo._with_more_time(more, model) is None


def test_a_translation_that_is_not_as_expected_is_marked() -> None:
    """A wrong translation is shown with the expected one; a correct one has no mark."""
    translator = make_translator()
    texts = random_lines(2)
    right = translator.translate(texts[0]).text
    console, shown = make_console(terminal=False)
    demo._translate(translator, [Pair(texts[0], right), Pair(texts[1], "another")], console)
    _, first, _, second = shown.getvalue().splitlines()
    assert "differs" not in first
    assert second.endswith(" (differs; expected: another)")


@pytest.mark.parametrize(
    ("on_path", "started", "expected"),
    [
        (True, ".venv/bin/dragoman", "dragoman"),
        (False, ".venv/bin/dragoman", ".venv/bin/dragoman"),
        (False, "/my files/dragoman", "'/my files/dragoman'"),
        (False, "/src/dragoman/__main__.py", f"{sys.executable} -m dragoman"),
    ],
)
def test_the_next_command_works_as_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, on_path: bool, started: str, expected: str
) -> None:
    """The next command has the bare name only if the shell finds it, else the original start."""
    if on_path:
        (tmp_path / "dragoman").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started, "demo"])
    assert demo._command() == expected
