"""A test's view of the disk: which files were synced and renamed, in order."""

import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Sync(NamedTuple):
    """A call of `os.fsync`."""

    inode: int


class Rename(NamedTuple):
    """A call of `os.replace`."""

    holds: frozenset[int]
    """The inodes of a folder and of everything in it, or of a file."""
    folder: int
    """The inode of the folder that contains the new name."""
    target: Path


class Disk(list[Sync | Rename]):
    """The calls in order, and the law that they must obey."""

    def renamed(self) -> list[str]:
        """Return the new names, in order."""
        return [call.target.name for call in self if isinstance(call, Rename)]

    def assert_renamed(self, *names: str) -> None:
        """Assert that these are the new names, in order, and that the law holds."""
        assert self.renamed() == [*names]
        self.check()

    def check(self) -> None:
        """Assert that everything is synced before it is renamed, and its folder afterwards."""
        for place, call in enumerate(self):
            if isinstance(call, Rename):
                assert call.holds <= {c.inode for c in self[:place] if isinstance(c, Sync)}, call
                assert call.folder in {c.inode for c in self[place:] if isinstance(c, Sync)}, call


def listen(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Record the calls to the operating system from now on (the fixture `disk`)."""
    disk, fsync, replace = Disk(), os.fsync, os.replace

    def record_sync(descriptor: int) -> None:
        disk.append(Sync(os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def record_rename(src: Path, dst: Path) -> None:
        path, target = Path(src), Path(dst)
        holds = frozenset(p.stat().st_ino for p in (path, *path.rglob("*")))
        folder = target.parent.stat().st_ino
        disk.append(Rename(holds, folder, target))
        replace(src, dst)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_rename)
    return disk


def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """Count how often Python opens each file, to read or to write, from now on."""
    found, plain = Counter[Path](), open

    def counting(file: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 -- as open
        if not isinstance(file, int):
            found[Path(os.fsdecode(file))] += 1
        return plain(file, *args, **options)

    for module in ("builtins", "io"):
        monkeypatch.setattr(f"{module}.open", counting)
    return found
