"""One run in a folder at a time."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import InputError

if sys.platform != "win32":
    import fcntl


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a file locked: InputError while another process does.

    The kernel lets go of it when the process ends, however it does, so a killed run is in nobody's
    way. Where a system or a file system has no such locks, nothing is held.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _take(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"another process is training in {path.parent.parent}; wait for its end, or give "
            "another --out"
        ) from error
    except OSError:  # a network disk without locks
        return
