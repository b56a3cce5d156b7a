"""The decoding options of the command line are the fields of the options class."""

from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dragoman.cli.loading import decoding_options, flags_of
from dragoman.decoding import GENERATING, TRANSLATING, Decoding, merged
from dragoman.ranges import UNSET, Probability


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Wider(Decoding):
    """The decoding options and one more."""

    typical_mass: Probability = UNSET
    """Sample tokens of typical information only."""


TASK = Wider(**TRANSLATING.given(), typical_mass=1.0)


def run(*words: str, task: Decoding = TASK) -> Any:  # noqa: ANN401 -- what the runner returns
    """Run a command with the options of that task; it prints the options that it received."""
    app = typer.Typer()

    @app.command()
    @decoding_options(task)
    def verb(*, decoding: Decoding, loud: bool = False) -> None:
        typer.echo(repr((decoding, loud)))

    return CliRunner().invoke(app, list(words))


def test_an_option_of_another_package_is_on_the_command_line() -> None:
    """A subclass's option gets a flag, help text and priority over the task's default."""
    told = run("--help").output
    assert all(word in told for word in ("--typical-mass", "<float>", "typical", "information"))
    assert run("--typical-mass", "0.5", "--loud").output == "(Wider(typical_mass=0.5), True)\n"
    assert merged(Wider(typical_mass=0.5), TASK).given()["typical_mass"] == 0.5
    assert flags_of(TASK, Wider(typical_mass=0.5))["--typical-mass"] == 0.5


@pytest.mark.parametrize("task", [TRANSLATING, GENERATING], ids=["translating", "generating"])
def test_each_flag_sets_its_own_option(task: Decoding) -> None:
    """Each flag sets its own option to the given value, and no other."""
    for name, default in task.given().items():
        flag = f"--{name.replace('_', '-')}"
        if flag in flags_of(task, task) and not isinstance(default, bool):
            value = {None: 1, (): ("1",)}.get(default, default)
            word = "1" if default == () else str(value)
            given: dict[str, Any] = {name: value}
            assert run(flag, word, task=task).output == f"{(type(task)(**given), False)!r}\n"


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ([], {}),
        (["--no-retry", "--no-split"], {"retry": False, "split_sentences": False}),
        (["--shortlist"], {"shortlist": True}),
        (["--seed", "0", "--temperature", "0"], {"seed": 0, "temperature": 0.0}),
    ],
)
def test_what_is_not_given_is_unset(words: list[str], given: dict[str, object]) -> None:
    """A switch turns its option to what the default is not; 0 is a value."""
    assert run(*words).output == f"{(Wider(**given), False)!r}\n"  # type: ignore[arg-type]


def test_flags_tell_what_was_given() -> None:
    """Options map to their flags; a set switch is True, and unset ones are None."""
    found = flags_of(TRANSLATING, Decoding(beam_size=2, retry=False))
    assert {name: value for name, value in found.items() if value is not None} == {
        "--beam-size": 2,
        "--no-retry": True,
    }
    assert "--processors" not in found
