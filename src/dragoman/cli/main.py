"""The command `dragoman`: what runs first, and Ctrl-C or SIGTERM at any moment from then on.

Importing the verbs takes a tenth of a second, so it happens inside `main`; what is imported before,
this file and the package's `__init__`, imports almost nothing.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from dragoman.process import INTERRUPTED, prepare_process

Handler = Callable[[int, FrameType | None], object] | signal.Handlers | int | None


def entry() -> None:
    """Run the command line as a process: `main`, then exit at once.

    Python would first tear down every module of PyTorch, which takes half a second. Exit handlers
    are called, and running threads are waited for as usual.
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
        except (OSError, ValueError):  # not everything that was printed is there
            code = code or 1
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: as `cli.app.run` says, or with 130 when interrupted.

    SIGTERM is handled like Ctrl-C, with exit code 143.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    # other handlers stay: a shell ignores the signal in its background, or a program handles it
    ours = {number: does for number, does in usual.items() if signal.getsignal(number) is does}
    pressed = 0  # the signal's number

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = number
        if _imports(frame):
            _end(number, frame)
        signal.default_int_handler(number, frame)

    try:
        _handle(dict.fromkeys(ours, _end))
        prepare_process()
        from dragoman.cli.app import run

        _handle(dict.fromkeys(ours, interrupt))
        run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        sys.exit(128 + (pressed or signal.SIGINT))
    except SystemExit as ended:
        if pressed and ended.code in {None, 0, INTERRUPTED}:  # typer converts it to these,
            sys.exit(128 + pressed)  # and Python drops it in a finaliser
        raise
    except Exception:
        if pressed:  # while a verb imports a library that converts it: NumPy to ImportError
            sys.exit(128 + pressed)
        raise
    finally:
        _handle(ours)


def _handle(handlers: Mapping[signal.Signals, Handler]) -> None:
    """Set these handlers; do nothing outside the main thread, where Python allows none."""
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    except ValueError:
        pass


def _imports(frame: FrameType | None) -> bool:
    """Return whether a verb is importing: an exception may lock the import system forever."""
    while frame and frame.f_code is not main.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end(number: int, _frame: FrameType | None) -> None:
    """End the process at once while it imports.

    An exception would surface in the middle of some class or callback, as another one or as a note
    that it was ignored; and there is nothing to clean up yet.
    """
    os._exit(128 + number)
