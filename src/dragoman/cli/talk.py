"""The console of a command: rich on a terminal, plain unwrapped lines elsewhere."""

import sys

from rich.console import Console

from dragoman.cli.pipes import open_stdout


def talk(*, stderr: bool = True) -> Console:
    """Make the console that a command talks on; data goes to stdout by itself.

    Nobody need listen to standard error: where it is closed, nothing is said.
    """
    stream = sys.stderr if stderr else open_stdout()
    wraps = stream is not None and stream.isatty()
    return Console(stderr=stderr, highlight=False, soft_wrap=not wraps)
