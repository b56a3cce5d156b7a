"""Files that are whole after a power failure: synced, renamed, and the folder synced too.

A rename can reach the disk before the content of the file does, and neither is there before the
folder is synced. So a file that replaces another one is written beside it, synced, renamed, and
then its folder is synced.
"""

import errno
import os
import sys
from pathlib import Path

__all__ = ["rename_durably", "sync", "write_durably"]

UNSYNCED = {errno.EACCES, errno.EINVAL}
"""What a folder answers that may be written to but not read, and one of some network disks."""


def sync(path: Path) -> None:
    """Wait until a file, or a folder and everything in it, is on the disk."""
    if path.is_dir():
        for inner in path.iterdir():
            sync(inner)
        _sync_entries(path)
    else:
        _sync(path, os.O_WRONLY)  # Windows syncs only what is open for writing


def rename_durably(part: Path, target: Path) -> None:
    """Sync a file or a folder, give it its name, and sync the folder that holds it.

    A file replaces an older one of that name; a folder needs a name that is free.
    """
    sync(part)
    part.replace(target)
    _sync_entries(target.parent)


def write_durably(target: Path, text: str) -> None:
    """Write a text beside the file and rename it: whatever happens, the old or the new one stays.

    Bytes that were read with "surrogateescape" are written as they were. Raises OSError when
    writing fails; nothing is left beside the file then.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="surrogateescape")
        rename_durably(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync_entries(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can open folders."""
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
