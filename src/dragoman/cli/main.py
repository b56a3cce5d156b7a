"""The command `dragoman`: what runs first, and Ctrl-C at any moment from then on, or SIGTERM.

Importing the verbs takes a tenth of a second, so it happens inside `main`; what is imported before,
this file and the package's `__init__`, imports almost nothing.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from dragoman.process import prepare_process

INTERRUPTED = 130
Handler = Callable[[int, FrameType | None], object] | signal.Handlers | int | None


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
    """Run the command line and exit: as `cli.app.run` says, or with 130 when interrupted.

    With 143 by SIGTERM, which is answered as Ctrl-C is.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    # else it is ignored, as in a shell's background, or another program's affair
    ours = {number: does for number, does in usual.items() if signal.getsignal(number) is does}
    pressed = 0  # the number of the signal

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
        if pressed and ended.code in {None, 0, INTERRUPTED}:  # typer makes that of the exception,
            sys.exit(128 + pressed)  # and Python drops it in a finaliser
        raise
    except Exception:
        if pressed:  # while a verb loads a library, which made this of it: NumPy an ImportError
            sys.exit(128 + pressed)
        raise
    finally:
        _handle(ours)


def _handle(handlers: Mapping[signal.Signals, Handler]) -> None:
    """Answer signals so; outside the main thread, where Python allows no handlers, nothing."""
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    except ValueError:
        pass


def _imports(frame: FrameType | None) -> bool:
    """Whether a verb imports: an exception may leave the import system locked for ever."""
    while frame and frame.f_code is not main.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end(number: int, _frame: FrameType | None) -> None:
    """End the process while it imports, at once.

    An exception would come out of the midst of somebody's class or callback, as another one or as
    a note that it was ignored; and there is nothing yet to put away.
    """
    os._exit(128 + number)
