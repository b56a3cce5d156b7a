"""Atomic writes: a file appears complete or not at all, even after a power failure.

A rename can reach the disk before the content of the file does, and neither is durable before the
folder is synced. So a new file is written next to the one it replaces, synced and renamed, and then
its folder is synced. Locks prevent two processes from writing the same file; the kernel releases
them when a process ends for any reason.
"""

import bz2
import errno
import gzip
import lzma
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

import zstandard

from dragoman.errors import DragomanError, InputError

if sys.platform != "win32":
    import fcntl

UNSYNCED = {errno.EACCES, errno.EINVAL}
"""Errors of syncing a folder that may be written but not read, or one on some network disks."""
FOREIGN = {errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.EACCES}
"""Errors of opening a link, a pipe, a folder or another user's file."""
COMPUTING = "This happened while a result was computed, not while it was written."
"""The note of an error that is not of writing."""
_REFUSALS = PermissionError, FileExistsError, NotADirectoryError, BlockingIOError
PRIVATE, USUAL = 0o600, 0o666
"""The mode of a new file: for its user only, or according to the umask."""


def sync(path: Path) -> None:
    """Wait until a file, or a folder and everything in it, is on the disk."""
    if path.is_dir():
        for inner in path.iterdir():
            sync(inner)
        _sync_entries(path)
    else:
        _sync(path, os.O_WRONLY)  # Windows requires a file open for writing


def rename_durably(part: Path, target: Path) -> None:
    """Sync a file or a folder, rename it, and sync the folder that contains it.

    A file replaces an older one of that name; for a folder, the name must be free.
    """
    sync(part)
    part.replace(target)
    _sync_entries(target.parent)


def write_durably(target: Path, text: str) -> None:
    """Write a text atomically: whatever happens, the old or the new file is complete.

    Bytes that were read with "surrogateescape" are written unchanged. Raises OSError if writing
    fails, and InputError as `own` does; then no temporary file remains.
    """
    part = target.with_name(f".{target.name}.part")
    opener = partial(own, mode=USUAL)
    stream = open(part, "w", encoding="utf-8", errors="surrogateescape", opener=opener)  # noqa: SIM115
    try:
        with stream:
            stream.write(text)
        rename_durably(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def user_folder(variable: str, default: str) -> Path:
    """Return this package's folder in the user's folder that an XDG variable names.

    `default` is the folder in the home folder to use without it. Raises InputError if there is
    neither.
    """
    try:
        return Path(os.environ.get(variable) or Path.home() / default) / "dragoman"
    except RuntimeError as error:
        raise InputError(f"This user has no home folder; set HOME or {variable}.") from error


def _sync_entries(folder: Path) -> None:
    """Sync the names in a folder to the disk, if the system can open folders."""
    if sys.platform == "win32":
        return
    try:
        _sync(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def own(path: str | os.PathLike[str], flags: int, mode: int = PRIVATE) -> int:
    """Open a file that only this user may write; an opener for temporary files.

    Others may have put something of that name there. Raises InputError for a link, for anything
    that is not a regular file (without waiting for it), and for a file with another owner or
    several names, which stays unchanged.
    """
    safe = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # which Windows lacks
    refused = (
        f"{path} is a link, not a regular file, or owned by another user; choose another path, or "
        "remove it if nobody is writing it"
    )
    try:
        descriptor = os.open(path, (flags & ~os.O_TRUNC) | safe, mode)
    except OSError as error:
        if error.errno in FOREIGN and os.path.lexists(path):
            raise InputError(refused) from error
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or not _is_ours(found, path):
            raise InputError(refused)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_own_folder(part: Path) -> None:
    """Raise InputError if a folder to fill exists but is a link, a file, or another user's."""
    with suppress(FileNotFoundError):
        found = part.lstat()
        if not stat.S_ISDIR(found.st_mode) or not _is_ours(found, part):
            raise InputError(
                f"{part} is a link, not a folder, or owned by another user; remove it."
            )


def _is_ours(found: os.stat_result, path: str | os.PathLike[str]) -> bool:
    """Return whether it belongs to this user, or to the owner that the disk gives new files."""
    if sys.platform == "win32" or found.st_uid == os.geteuid():
        return True
    try:
        return found.st_uid == _as_new(Path(path).parent).st_uid
    except OSError:
        return False


def _as_new(folder: Path) -> os.stat_result:
    """Return the status of a new file in a folder: its owner, and its mode by umask or folder."""
    path = folder / f".{token_hex(8)}.part"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, USUAL)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
        path.unlink()


def _set_mode(descriptor: int, mode: int) -> None:
    """Set the mode if it differs; some disks do not store modes."""
    if sys.platform != "win32" and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        with suppress(OSError):
            os.fchmod(descriptor, mode)


@contextmanager
def packing(part: Path, name: Path) -> Iterator[BinaryIO]:
    """Open what `replacing` gives for `name`, compressed according to its suffix.

    The result contains neither a time nor a name.
    """
    with opened_part(part, name) as file, _PACKING.get(name.suffix, nullcontext)(file) as stream:
        yield stream


_PACKING: dict[str, Callable[[BinaryIO], Any]] = {
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115 -- it is closed by who opens it
    ".zst": lambda file: zstandard.ZstdCompressor().stream_writer(file),
}

PATIENCE = 10.0
"""Seconds to wait for another process to finish the same file: enough for a picture or a page."""


@contextmanager
def replacing(target: Path, what: str) -> Iterator[Path]:
    """Yield a path next to the target to write to; rename it to the target at the end.

    Missing folders are created. Until then, and if writing fails, a reader finds the old file or
    none, and nobody else may read the new one. Leftovers of a killed process are overwritten by the
    next one; what others may have put there is refused, as `own` does. A link stays a link.
    Anything that is not a file, such as a pipe or `/dev/stdout`, is written to directly; so is a
    file that cannot be replaced: in a folder of another user, another user's file in `/tmp`, or one
    that is mounted by itself into a container.
    `what` names the output in messages. Raises InputError if nothing can be written there or
    another process is writing it, and DragomanError if writing fails, for example on a full disk. A
    reader that has gone away is a BrokenPipeError.
    """
    with failure_told(what, target):
        if target.is_dir():
            raise FileExistsError(0, "it is a folder")
        if is_written_to(target):
            yield target
            return
        with _part_of(Path(os.path.realpath(target))) as part:
            yield part


@contextmanager
def creating(folder: Path, what: str) -> Iterator[Path]:
    """Yield a new folder next to `folder` to fill; rename it to `folder` at the end.

    Missing parent folders are created. If filling fails, nothing remains; leftovers of a killed
    process are removed by the next one. Raises InputError if the name exists already, nothing can
    be written there or another process is filling it, and DragomanError if writing fails.
    """
    part = folder.with_name(f".{folder.name}.part")
    with failure_told(what, folder), ExitStack() as held:
        if folder.exists() or folder.is_symlink():
            raise FileExistsError(0, "it exists")
        part.mkdir(parents=True, exist_ok=True)
        check_own_folder(part)
        try:
            held.enter_context(locked(part, wait=False))
        except BlockingIOError as error:
            raise BlockingIOError(0, "another process is writing it") from error
        try:
            for left in part.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield part
            rename_durably(part, folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


@contextmanager
def failure_told(what: str, target: Path) -> Iterator[None]:
    """Turn an error of writing, without the note `COMPUTING`, into a sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) or COMPUTING in getattr(error, "__notes__", ()):
            raise
        if isinstance(error, _REFUSALS):
            message = f"Cannot write the {what} {target}: {error.strerror}; choose another path"
            raise InputError(message) from error
        reason = error.strerror or f"not all of it was taken ({error})"  # NumPy's
        message = f"writing the {what} {target} failed: {reason}"
        raise DragomanError(message) from error


@contextmanager
def _part_of(file: Path) -> Iterator[Path]:
    """Yield the temporary path next to a file; rename it when complete, otherwise remove it."""
    part = file.with_name(f".{file.name}.part")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        raise FileExistsError(0, "it is a circular link")
    if file.exists() and not os.access(file, os.W_OK):
        raise PermissionError(0, "it is read-only")
    with ExitStack() as held:
        hold(part, held, PATIENCE, own)
        try:
            yield part
            with open(part, "rb", opener=own) as stream:
                like = file.stat() if file.exists() else _as_new(file.parent)
                _set_mode(stream.fileno(), stat.S_IMODE(like.st_mode))
            _rename(part, file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _rename(part: Path, file: Path) -> None:
    try:
        rename_durably(part, file)
    except OSError as error:
        if error.errno not in {errno.EBUSY, errno.EPERM}:
            raise
        # mounted by itself, or another user's where all may write: Linux opens that only without
        # creating it, if fs.protected_regular is set
        with part.open("rb") as source, file.open("r+b") as stream:
            shutil.copyfileobj(source, stream)
            stream.truncate()
        part.unlink()


def opened_part(part: Path, target: Path) -> BinaryIO:
    """Open what `replacing` gives for a target, to write it from the start."""
    return part.open("wb") if part == target else open(part, "wb", opener=own)


def hold(
    file: Path,
    held: ExitStack,
    patience: float,
    opener: Callable[[str, int], int] | None = None,
) -> None:
    """Create a file, and lock it until `held` ends.

    Raises BlockingIOError if another process still holds it after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        open(file, "ab", opener=opener).close()
        try:
            held.enter_context(locked(file, wait=False))
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise BlockingIOError(0, "another process is writing it") from error
            time.sleep(0.02)
        else:
            return


def is_written_to(target: Path) -> bool:
    """Return whether it is not a file, names an open one, or is in a read-only folder."""
    if names_device(target):
        return True
    if not target.is_file():
        return target.exists()
    return os.access(target, os.W_OK) and not os.access(target.resolve().parent, os.W_OK)


def names_device(target: Path) -> bool:
    """Return whether a name is that of a device, or of an open file, such as `/dev/stdout`."""
    folder = Path(os.path.realpath(target.parent))
    return folder in {Path("/dev"), Path("/dev/fd")} or folder.is_relative_to("/proc")


def opened_device(file: Path) -> BinaryIO:
    """Open a device to append to it; standard output continues at its current position.

    If standard output is a file, opening it again would give another file position, and the next
    program of a shell would overwrite what was written.
    """
    return open(1, "wb", closefd=False) if file == Path("/dev/stdout") else file.open("ab")


# ---------------------------------------------------------------- one process at a time


@contextmanager
def locked(path: Path, *, wait: bool, shared: bool = False) -> Iterator[bool]:
    """Lock a file or folder, so that no other process can lock it, unless both are `shared`.

    Yields False if there are no locks: on Windows and on some network disks. Raises BlockingIOError
    if another process holds the lock, unless told to `wait`, and if the file is gone or has been
    replaced by the time it is locked.
    """
    if sys.platform == "win32":
        yield False
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise BlockingIOError(error.errno, error.strerror) from error
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        yield _took(descriptor, path, kind if wait else kind | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def _took(descriptor: int, path: Path, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        raise
    except OSError:  # a disk without locks
        return False
    with suppress(FileNotFoundError):  # a single call: between two, it may go
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return True
    raise BlockingIOError(0, "the lock file was just replaced")
