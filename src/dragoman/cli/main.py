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


def entry() -> None:
    """Run the command line as a process: `main`, then an end at once.

    Python would first dismantle every module of PyTorch, for half a second. Exit handlers are
    called, and threads that are still at work are waited for as usual.
    """
    code: str | int = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    import atexit
    import threading

    working = any(not thread.daemon for thread in threading.enumerate()[1:])
    if working or not isinstance(code, int):
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 -- there is no public name
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # what was printed is not all there
            code = code or 1
    os._exit(code)


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
    except SystemExit as ended:
        if pressed and not ended.code:  # in a finaliser, whose exceptions Python drops
            sys.exit(INTERRUPTED)
        raise
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
