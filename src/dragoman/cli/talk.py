"""The console of a command: rich on a terminal, plain unwrapped lines elsewhere."""

import sys
from typing import TextIO, cast

from rich.console import Console

from dragoman.cli.pipes import Talk, open_stdout


def talk(*, stderr: bool = True) -> Console:
    """Make the console that a command talks on; data goes to stdout by itself.

    Nobody need listen: what cannot be written is dropped.
    """
    stream = Talk(sys.stderr if stderr else open_stdout())
    file = cast("TextIO", stream)  # as far as rich needs one
    return Console(file=file, highlight=False, soft_wrap=not stream.isatty())
