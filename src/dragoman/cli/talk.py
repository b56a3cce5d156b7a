"""The console of a command: rich on a terminal, plain unwrapped lines elsewhere."""

import sys

from rich.console import Console


def talk(*, stderr: bool = True) -> Console:
    """Make the console that a command talks on; data goes to stdout by itself."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, soft_wrap=not stream.isatty())
