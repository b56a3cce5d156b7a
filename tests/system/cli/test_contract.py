"""The command line is a contract: verbs, options, exit codes, what goes to which stream."""

import resource

import pytest
import typer
from tests.system.cli.command import Run, in_own_process

import dragoman
from dragoman.cli.main import make_app

VERBS = {
    "demo": None,
    "train": None,
    "translate": {
        "--beam-size",
        "--n-best",
        "--length-penalty",
        "--max-batch-tokens",
        "--json",
        "--device",
        "--output",
    },
    "generate": {
        "--file",
        "--max-tokens",
        "--temperature",
        "--top-k",
        "--top-p",
        "--min-p",
        "--seed",
        "--stop",
        "--samples",
        "--beam-size",
        "--repetition-penalty",
        "--no-repeat-ngrams",
        "--json",
        "--device",
    },
    "classify": {"--max-batch-tokens", "--json", "--device", "--output"},
    "tag": {"--input", "--max-batch-tokens", "--json", "--device", "--output"},
    "evaluate": {
        "--src",
        "--ref",
        "--hyp",
        "--tokenize",
        "--beam-size",
        "--length-penalty",
        "--max-batch-tokens",
        "--text",
        "--split",
        "--data",
        "--layout",
        "--json",
        "--device",
    },
    "score": {"--src", "--tgt", "--json", "--device"},
    "inspect": {
        "--beam-size",
        "--max-tokens",
        "--temperature",
        "--seed",
        "--layers",
        "--heads",
        "--png",
        "--html",
        "--json",
    },
    "cost": {
        "--device",
        "--devices",
        "--length",
        "--tokens-per-month",
        "--price",
        "--kwh-price",
        "--measure",
        "--fit",
        "--predict",
        "--flops",
        "--minutes",
        "--money",
        "--png",
        "--json",
    },
}
"""Other tools call these: a name that goes or changes breaks them."""


def test_the_verbs_and_their_options_are_these() -> None:
    """Every verb has an example in its help; nobody adds or drops an option by accident."""
    commands = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]
    assert list(commands) == list(VERBS)
    for name, options in VERBS.items():
        assert f"dragoman {name}" in (commands[name].help or "")
        if options is not None:
            found = {
                option
                for parameter in commands[name].params
                for option in parameter.opts
                if option.startswith("--")
            }
            assert found == options | ({"--help"} & found)


def test_help_answers_at_once() -> None:
    """In under half a second of the processor's time (the best of three), on standard output."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = in_own_process("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.code == 0
        assert "translate" in done.out
    assert 0 < min(seconds) < 0.5


def test_the_version_is_told(run: Run) -> None:
    """On standard output, alone."""
    done = run("--version")
    assert (done.code, done.out) == (0, f"dragoman {dragoman.__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["translat"], ["translate"], ["translate", "m", "--beam", "3"], ["--nothing"]]
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: list[str]) -> None:
    """The complaint goes to standard error."""
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err
