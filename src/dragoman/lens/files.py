"""A picture's or a page's way into a file: it appears whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import DragomanError, InputError

__all__ = ["replacing"]


@contextmanager
def replacing(target: Path, what: str) -> Iterator[Path]:
    """Give a path beside the target to write to, which afterwards gets the target's name.

    Missing folders are made. Whoever looks meanwhile finds the old file or none, and so it stays if
    writing fails. A link stays a link; what is no file at all, such as a pipe or ``/dev/null``, is
    written to and stays what it is. ``what`` names what is written, for the messages: raises
    InputError if nothing can be written there, DragomanError when writing fails, for example on a
    full disk.
    """
    try:
        if target.is_dir():
            message = f"cannot write the {what} {target}: it is a folder; choose another path"
            raise InputError(message)
        if target.exists() and not target.is_file():
            yield target
            return
        file = target.resolve()
        part = file.with_name(f".{file.name}.part")
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        message = f"cannot write the {what} {target}: {error.strerror}; choose another path"
        raise InputError(message) from error
    except OSError as error:
        message = f"writing the {what} {target} failed: {error.strerror or error}"
        raise DragomanError(message) from error
