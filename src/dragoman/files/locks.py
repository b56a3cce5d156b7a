"""Who writes where: locks that the kernel lets go of when a process ends, however it does."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["locked"]

if sys.platform != "win32":
    import fcntl


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a file or folder, so that no other process can hold it.

    Gives False where nothing can be held: on Windows and on some network disks. Raises
    BlockingIOError while another process holds it, unless told to ``wait``, and for what is gone or
    another file by the time that it is held.
    """
    if sys.platform == "win32":
        yield False
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise BlockingIOError(error.errno, error.strerror) from error
    try:
        yield _took(descriptor, path, wait=wait)
    finally:
        os.close(descriptor)


def _took(descriptor: int, path: Path, *, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # a disk without locks
        return False
    with suppress(FileNotFoundError):  # asked once: between two questions it may go
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return True
    raise BlockingIOError(0, "another process has just put it away")
