"""The way of a text, a page or a picture into a file: it appears whole or not at all."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dragoman.data.locks import locked
from dragoman.errors import DragomanError, InputError
from dragoman.files.durable import rename_durably

__all__ = ["replacing"]

PATIENCE = 10.0
"""Seconds that another process has to finish the same file: enough for a picture or a page."""


@contextmanager
def replacing(target: Path, what: str) -> Iterator[Path]:
    """Give a path beside the target to write to, which afterwards gets the target's name.

    Missing folders are made. Whoever looks meanwhile finds the old file or none, and so it stays if
    writing fails; what a killed process has left beside it, the next one writes over. A link stays
    a link. What is no file at all, such as a pipe or ``/dev/stdout``, is written to and stays what
    it is; so is a file that cannot be replaced: in a folder of somebody else's, or mounted by
    itself into a container. ``what`` names what is written, for the messages: raises InputError if
    nothing can be written there or another process does so just now, DragomanError when writing
    fails, for example on a full disk. A reader that has gone away is a BrokenPipeError.
    """
    try:
        if target.is_dir():
            message = f"cannot write the {what} {target}: it is a folder; choose another path"
            raise InputError(message)
        if _is_written_to(target):
            yield target
            return
        with _part_of(Path(os.path.realpath(target))) as part:
            yield part
    except (PermissionError, FileExistsError, NotADirectoryError, BlockingIOError) as error:
        message = f"cannot write the {what} {target}: {error.strerror}; choose another path"
        raise InputError(message) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"writing the {what} {target} failed: {error.strerror or error}"
        raise DragomanError(message) from error


@contextmanager
def _part_of(file: Path) -> Iterator[Path]:
    """The path beside a file that takes its name when all is written, and else goes."""
    part = file.with_name(f".{file.name}.part")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        raise FileExistsError(0, "it is a link that leads round in a circle")
    if file.exists() and not os.access(file, os.W_OK):
        raise PermissionError(0, "it is read-only")
    with ExitStack() as held:
        _hold(part, held)
        try:
            yield part
            if file.exists():
                shutil.copymode(file, part)
            _rename(part, file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _rename(part: Path, file: Path) -> None:
    try:
        rename_durably(part, file)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        shutil.copyfile(part, file)  # it is mounted by itself
        part.unlink()


def _hold(part: Path, held: ExitStack) -> None:
    """Make the file, and keep others from it until ``held`` ends."""
    deadline = time.monotonic() + PATIENCE
    while True:
        part.open("ab").close()
        try:
            held.enter_context(locked(part, wait=False))
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise BlockingIOError(0, "another process is writing it") from error
            time.sleep(0.02)
        else:
            return


def _is_written_to(target: Path) -> bool:
    """Whether it is no file, or a name for one that is open, or one whose folder is closed."""
    folder = Path(os.path.realpath(target.parent))
    if folder in {Path("/dev"), Path("/dev/fd")} or folder.is_relative_to("/proc"):
        return True
    if not target.is_file():
        return target.exists()
    return os.access(target, os.W_OK) and not os.access(target.resolve().parent, os.W_OK)
