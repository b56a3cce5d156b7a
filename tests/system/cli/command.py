"""Calling the command, in this process or in its own."""

import io
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest
import typer
from tests.unit.tasks.tiny import random_lines

from dragoman.cli import app
from dragoman.cli.app import make_app
from dragoman.cli.main import main

LINES = [*random_lines(3), "", "   ", "😀", "我喜欢学习"]


def whole_command() -> Any:  # noqa: ANN401 -- typer's own
    """The command line; typer takes longer to put it together than to refuse a call."""
    return _put_together(app.VERBS)


@cache
def _put_together(_verbs: tuple[object, ...]) -> Any:  # noqa: ANN401 -- typer's own
    return typer.main.get_command(make_app())


def command_of(name: str) -> Any:  # noqa: ANN401 -- typer's own
    """What typer has made of a verb, or of one of a group such as `data check`."""
    command = whole_command()
    for word in name.split():
        command = command.commands[word]
    return command


class Done:
    """What a call of the command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.split("\n")[:-1]

    def succeeded(self) -> Self:
        """The same, of a call that is to do what it is asked."""
        assert self.code == 0, self.err
        return self


class Run:
    """`run("translate", folder, file)`; it reads `stdin`, where that is given, as from a pipe."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: str | Path, stdin: bytes | None = None) -> Done:
        """Run to the end."""
        code = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app, "make_app", whole_command)
            if stdin is not None:
                patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as exit_:
                code = int(exit_.code or 0)
        out, err = self._capfd.readouterr()
        return Done(code, out, err)


def in_own_process(*arguments: str | Path, stdin: bytes = b"") -> Done:
    """Run the command as a user does."""
    command = [sys.executable, "-m", "dragoman", *(str(argument) for argument in arguments)]
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run(
        command, input=stdin, capture_output=True, check=False, timeout=120, env=environment
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def program(code: str, *arguments: object) -> Done:
    """Run a program of Python's in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return Done(done.returncode, done.stdout, done.stderr)


def write(path: Path, lines: list[str]) -> Path:
    """The lines in a file; a lone surrogate is a byte that is not UTF-8."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
    return path
