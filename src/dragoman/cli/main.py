"""The command `dragoman`: what runs first, and Ctrl-C at any moment from then on.

Importing the verbs takes a tenth of a second, so it happens inside `main`; what is imported before,
this file and the package's `__init__`, imports almost nothing.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from dragoman.process import prepare_process

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: as `cli.app.run` says, or with 130 when interrupted."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    pressed = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.default_int_handler(number, frame)

    try:
        if raises:  # else it is ignored, as in a shell's background, or another program's affair
            _on_interrupt(_end)
        prepare_process()
        from dragoman.cli.app import run

        if raises:
            _on_interrupt(interrupt)
        run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception:
        if pressed:  # while a verb loads a library, which made this of it: NumPy an ImportError
            sys.exit(INTERRUPTED)
        raise
    finally:
        if raises:
            _on_interrupt(signal.default_int_handler)


def _on_interrupt(handler: Callable[[int, FrameType | None], object]) -> None:
    """Let Ctrl-C do this; outside the main thread, where Python allows no handlers, nothing."""
    try:  # noqa: SIM105 -- contextlib takes a while to import
        signal.signal(signal.SIGINT, handler)
    except ValueError:
        pass


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the process while it imports, at once.

    An exception would come out of the midst of somebody's class or callback, as another one or as
    a note that it was ignored; and there is nothing yet to put away.
    """
    os._exit(INTERRUPTED)
