"""Files that survive a power failure: synced, renamed, and their folder synced."""

import errno
import fcntl
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.disk import Disk

from dragoman.errors import InputError
from dragoman.files.writing import rename_durably, user_folder, write_durably


def test_a_file_is_synced_before_it_is_renamed_and_its_folder_afterwards(
    tmp_path: Path, disk: Disk
) -> None:
    """Else a power failure leaves the new name with no content, or the old content."""
    write_durably(tmp_path / "a.json", "old")
    write_durably(tmp_path / "a.json", "new")
    disk.assert_renamed("a.json", "a.json")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.json": "new"}


def test_a_folder_is_synced_with_everything_in_it(tmp_path: Path, disk: Disk) -> None:
    """Its files, its own entries, and those of folders inside it."""
    (tmp_path / "part" / "inner").mkdir(parents=True)
    (tmp_path / "part" / "a").write_text("a")
    (tmp_path / "part" / "inner" / "b").write_text("b")
    rename_durably(tmp_path / "part", tmp_path / "whole")
    disk.assert_renamed("whole")
    assert (tmp_path / "whole" / "inner" / "b").read_text() == "b"


def test_files_are_synced_by_descriptors_that_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to sync a file that was opened for reading."""
    fsync, modes = os.fsync, []

    def note_mode(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            modes.append(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note_mode)
    write_durably(tmp_path / "a.json", "text")
    assert modes == [os.O_WRONLY]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A disk may say that it is full only when a file is synced."""
    write_durably(tmp_path / "a.json", "old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        write_durably(tmp_path / "a.json", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.json": "old"}


@pytest.mark.parametrize(
    ("code", "fails"), [(errno.EINVAL, False), (errno.EACCES, False), (errno.EIO, True)]
)
def test_a_folder_that_cannot_be_synced_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, fails: bool
) -> None:
    """Some network disks sync no folders, and some folders may not be read; a broken disk fails."""
    fsync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    with pytest.raises(OSError, match="Input/output") if fails else nullcontext():
        write_durably(tmp_path / "a.json", "text")
    assert (tmp_path / "a.json").read_text() == "text"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under an arbitrary uid in a container; with the variable all is well."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(InputError, match=r"no home folder; set HOME or XDG_CACHE_HOME\.$"):
        user_folder("XDG_CACHE_HOME", ".cache")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert user_folder("XDG_CACHE_HOME", ".cache") == Path("/cache/dragoman")
