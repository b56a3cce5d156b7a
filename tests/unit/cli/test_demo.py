"""What the demonstration says of its training, of its translations, and what comes next."""

import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.tasks.tiny import make_translator, random_lines
from tests.unit.train.made import make_console

from dragoman.cli import demo
from dragoman.data.made import Pair
from dragoman.tasks import task
from dragoman.train.loop import Progress
from dragoman.train.recipe import RunRecipe
from dragoman.train.run import TrainResult


@pytest.mark.parametrize(("step", "told"), [(253, "after 253 of 1,600 steps"), (1600, "")])
def test_a_machine_that_is_too_slow_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, told: str
) -> None:
    """Sentences that are wrong for want of time are no puzzle."""

    def run(recipe: RunRecipe, *, console: Console) -> TrainResult:  # noqa: ARG001
        progress = Progress(step=step)
        return TrainResult(
            folder=Path(recipe.out), reason="it is so", interrupted=False, progress=progress
        )

    monkeypatch.setattr(task, "train", run)
    console, shown = make_console(terminal=False)
    demo._train(tmp_path, tmp_path / "model", ["train.max_steps=1600"], console)
    assert told in shown.getvalue()
    assert ("The time was up" in shown.getvalue()) == bool(told)


def test_a_translation_that_is_not_as_expected_is_marked() -> None:
    """Beside it stands what was expected; nothing beside the others."""
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
    """By the name alone only where the shell finds it, else as the demonstration was started."""
    if on_path:
        (tmp_path / "dragoman").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started, "demo"])
    assert demo._command() == expected
