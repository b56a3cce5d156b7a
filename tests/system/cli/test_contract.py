"""The command line is a contract: exit codes, what goes to which stream, what else it tells."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.system.cli.command import LINES, Run, program, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.test_runs import log, make_run

import dragoman
from dragoman.cli import app
from dragoman.engine.products import translations_are_independent
from dragoman.nn.cpu.products import has_bf16_units, rows_are_independent

HELP_AND_LIST = """
import sys
from dragoman.cli.main import main
try:
    main(["--help"])
finally:
    print(*sys.modules, file=sys.stderr)
"""


def test_help_answers_at_once() -> None:
    """On standard output, and without the libraries that take seconds to load."""
    done = program(HELP_AND_LIST)
    assert "translate" in done.out
    loaded = set(done.err.split())
    assert "typer" in loaded
    assert not loaded & {"torch", "numpy", "matplotlib", "sacrebleu", "tokenizers"}


@pytest.mark.parametrize("place", [0, 1, 3])
def test_quiet_commands_say_nothing_but_errors(
    run: Run, model: Path, tmp_path: Path, place: int
) -> None:
    """Wherever the option stands, except behind `--`; lines and exit code are the same."""
    file = write(tmp_path / "in", LINES)
    call: list[str | Path] = ["translate", model, file]
    told = run(*call)
    call.insert(place, "--quiet")
    done = run(*call)
    assert (done.code, done.out, done.err) == (0, told.out, "")
    assert told.err
    file.unlink()
    assert_refused(run(*call), "There is no file")
    assert_refused(run("translate", model, "--", "--quiet"), "There is no file '--quiet'")


def test_the_shell_completes_verbs() -> None:
    """By what `--install-completion` installs."""
    asked = {"_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": "dragoman tr", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "dragoman"]
    done = subprocess.run(
        command, env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["train", "translate"]


def test_the_version_tells_of_the_machine(run: Run) -> None:
    """What the processor does is said as it was found by trying, as lines and as one object."""
    assert run("--version").succeeded().out == f"dragoman {dragoman.__version__}\n"
    done = run("--version", "--json").succeeded()
    found = json.loads(done.out)
    assert (
        found
        | {
            "dragoman": dragoman.__version__,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "cpu_bf16": has_bf16_units(),
            "independent_rows_fp32": rows_are_independent("fp32"),
            "independent_rows_bf16": rows_are_independent("bf16"),
            "independent_translations_fp32": translations_are_independent("fp32"),
        }
        == found
    )
    words = {"True": "yes", "False": "no"}
    plain = run("--version", "--verbose").out.splitlines()
    for (name, value), line in zip(found.items(), plain, strict=True):
        assert name.isidentifier()
        assert "_" not in line.split()[0]
        assert line.endswith(f" {words.get(str(value), value)}")


def test_what_goes_with_the_version_is_not_ignored(run: Run) -> None:
    """Before a command it means nothing, and is refused."""
    for option in ("--verbose", "--json"):
        assert_refused(run(option, "translate"), "need --version")


def test_a_second_argument_is_a_run_or_a_text(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is an existing folder with training/ in it; runs have no options but `--json`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "the cat").mkdir()
    text = run("inspect", model, "the cat", "--json")
    assert (text.code, json.loads(text.out)["src"]["text"]) == (0, "the cat")
    one, two = make_run(tmp_path / "a", log()), make_run(tmp_path / "the cat", log()[:2])
    done = run("inspect", one, "the cat")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].endswith(f"the cat ends at step 10, {one} at step 30.")
    found = json.loads(run("inspect", one, two, "--json").out)
    assert (found["first_step"], found["beside"]["last step"]) == (None, [30, 10])
    assert_refused(run("inspect", model, "the cat"), "is not the folder of a run")
    assert_refused(run("inspect", one, "the cat", "--beam-size", "2"), "--beam-size needs a TEXT")


def test_runs_are_listed(run: Run, tmp_path: Path) -> None:
    """A row each under a head; one object with all of it."""
    folder = make_run(tmp_path / "a", log())
    done = run("runs", tmp_path)
    assert (done.code, done.err) == (0, "")
    assert [line.split("\t")[0] for line in done.lines] == ["run", "a"]
    (found,) = json.loads(run("runs", folder, "--json").out)["runs"]
    assert (found["best"], found["best_step"], found["state"]) == (45.0, 30, "stopped")
    assert_refused(run("runs", tmp_path, "--price", "0"), "--price is 0.0; it must be above 0")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "No space left on device."),
        (PermissionError(13, "Permission denied", "/.bashrc"), "/.bashrc: Permission denied."),
    ],
)
def test_what_the_system_refuses_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: OSError, told: str
) -> None:
    """Whatever the verb, as in a container whose disk is read-only."""

    def evaluate() -> None:
        """Meet it."""
        raise error

    monkeypatch.setattr(app, "VERBS", (evaluate,))
    done = run("evaluate")
    assert (done.code, done.out, done.err) == (1, "", f"dragoman: Cannot continue: {told}\n")


def test_a_lack_of_memory_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the verb; it says what to change. Any other error of torch is a bug and is shown."""

    def translate() -> None:
        """Ask for more than any processor can address."""
        torch.empty(1 << 55)

    def score() -> None:
        """Go wrong."""
        torch.zeros(2, 3) @ torch.zeros(2, 3)

    monkeypatch.setattr(app, "VERBS", (translate, score))
    done = run("translate")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("dragoman: Out of memory: ")
    assert "--max-batch-tokens" in done.err
    with pytest.raises(RuntimeError, match="shapes"):
        run("score")
