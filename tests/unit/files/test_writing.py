"""The way of a text, a page or a picture into a file, which survives a power failure."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import pytest
from tests.disk import Disk
from tests.unit.data.killing import moments

from dragoman.errors import DragomanError, InputError
from dragoman.files import writing as output
from dragoman.files.writing import (
    creating,
    locked,
    opened_device,
    rename_durably,
    replacing,
    user_folder,
    write_durably,
)


def write(file: Path, text: str) -> None:
    """Write a text in the way that is tested."""
    with replacing(file, "text") as part:
        part.write_text(text, encoding="utf-8")


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, disk: Disk) -> None:
    """A power failure leaves the old file or the whole new one."""
    write(tmp_path / "file", "new")
    disk.assert_renamed("file")


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """What is no file is written to, and never replaced by one: think of /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        with replacing(pipe, "page") as part:
            part.write_text("whole", encoding="utf-8")
        assert pipe.is_fifo()
        assert os.read(reader, 99) == b"whole"
    finally:
        os.close(reader)


def test_missing_folders_are_made(tmp_path: Path) -> None:
    """A picture is written where a run or a model would be: its folders need not be there."""
    file = tmp_path / "a" / "b" / "picture"
    write(file, "new")
    assert file.read_text(encoding="utf-8") == "new"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it leads to is replaced, and nothing is left beside either."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old", encoding="utf-8")
    link.symlink_to(file)
    with replacing(link, "page") as part:
        part.write_text("new", encoding="utf-8")
        assert file.read_text(encoding="utf-8") == "old"
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "new"
    assert sorted(tmp_path.iterdir()) == [file, link]


@pytest.mark.parametrize("name", ["", "file/inner"])
def test_what_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    """A folder in its place, or a file in the place of its folder; both are as they were."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"Cannot write the text .*; choose another path"):
        write(tmp_path / name, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    """It leads to no file, and stays."""
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(InputError, match="circular link"):
        write(link, "new")
    assert link.is_symlink()


def test_a_name_for_an_open_file_is_written_to(tmp_path: Path) -> None:
    """`/dev/stdout` in `> file` is that file: another in its place would lose what follows."""
    file = tmp_path / "file"
    with file.open("w", encoding="utf-8") as stream:
        write(Path(f"/dev/fd/{stream.fileno()}"), "first ")
        stream.seek(0, os.SEEK_END)
        stream.write("second")
    assert file.read_text(encoding="utf-8") == "first second"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), DragomanError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, error: BaseException, told: type[BaseException]
) -> None:
    """On a full disk and after Ctrl-C: the old file or none, and nothing beside it."""

    def fail(file: Path) -> None:
        with replacing(file, "text") as part:
            part.write_text("half", encoding="utf-8")
            raise error

    old = tmp_path / "old"
    old.write_text("old", encoding="utf-8")
    for file in (old, tmp_path / "new"):
        with pytest.raises(told):
            fail(file)
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("old", [None, 0o600, 0o644, 0o755])
def test_a_private_file_stays_private(tmp_path: Path, old: int | None) -> None:
    """The new file may be read by those who might read the old one, and by nobody before."""
    file, usual = tmp_path / "file", tmp_path / "usual"
    usual.touch()
    if old is not None:
        file.touch()
        file.chmod(old)
    with replacing(file, "text") as part:
        part.write_text("new", encoding="utf-8")
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == (old or stat.S_IMODE(usual.stat().st_mode))
    assert {*tmp_path.iterdir()} == {file, usual}


def test_what_is_put_there_meanwhile_is_refused(tmp_path: Path) -> None:
    """Where others may rename in the folder, no link gets the name of the file."""
    file, victim = tmp_path / "file", tmp_path / "victim"
    victim.touch(mode=0o600)

    def write_while_it_is_put() -> None:
        with replacing(file, "text") as part:
            part.unlink()
            part.symlink_to(victim)

    with pytest.raises(InputError, match="is a link"):
        write_while_it_is_put()
    assert [*tmp_path.iterdir()] == [victim]
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600


def test_a_protected_file_is_refused(tmp_path: Path) -> None:
    """A file that may not be written to is not replaced either."""
    file = tmp_path / "file"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o400)
    if os.access(file, os.W_OK):
        pytest.skip("the superuser may write to any file")
    with pytest.raises(InputError, match="read-only"):
        write(file, "new")
    assert file.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM])
def test_a_file_that_cannot_be_replaced_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One mounted by itself into a container is busy; another user's in `/tmp` is not removed."""
    file = tmp_path / "file"
    file.write_text("old and longer", encoding="utf-8")

    def refuse(path: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(path), None, str(target))

    def protected(name: Path, mode: str, *options: object, **named: object) -> IO[Any]:
        if name == file and "w" in mode:  # as fs.protected_regular does
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(name))
        return usual(name, mode, *options, **named)

    usual: Callable[..., IO[Any]] = open
    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr("builtins.open", protected)
    monkeypatch.setattr("io.open", protected)
    write(file, "new")
    assert file.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_in_a_closed_folder_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be put beside it, and it may be written all the same; a link to it as well."""
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder / "file")
    (folder / "file").write_text("old and longer", encoding="utf-8")
    allowed, number = os.access, (folder / "file").stat().st_ino
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and allowed(path, mode))
    write(link, "new")
    assert (folder / "file").read_text(encoding="utf-8") == "new"
    assert (folder / "file").stat().st_ino == number


def test_some_at_once_write_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text is whole while it is there, and the last one stays."""
    monkeypatch.setattr(output, "PATIENCE", 120.0)  # as a disk or a machine may be busy
    file = tmp_path / "file"
    texts = [letter * 200_000 for letter in "abcdef"]
    with ThreadPoolExecutor(len(texts)) as pool:
        for text in texts:
            pool.submit(write, file, text)
        results = [pool.submit(write, file, text) for text in texts]
        for result in results:
            result.result()
            assert file.read_text(encoding="utf-8") in texts
    assert list(tmp_path.iterdir()) == [file]


def test_who_takes_long_is_not_disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer of the same file is refused, in a sentence, and what it would spoil stays."""
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    file, part = tmp_path / "file", tmp_path / ".file.part"
    part.write_text("half", encoding="utf-8")
    with (
        locked(part, wait=False),
        pytest.raises(InputError, match=r"file: another process is writing it; choose another"),
    ):
        write(file, "new")
    assert part.read_text(encoding="utf-8") == "half"
    write(file, "new")  # what was left there is in nobody's way
    assert list(tmp_path.iterdir()) == [file]


WRITES = """
from pathlib import Path
from dragoman.files.writing import replacing
file = Path(sys.argv[1])
before = lambda: file.write_text("old" * 9)
def write():
    with replacing(file, "text") as part:
        part.write_text("new")
def check():
    assert file.read_text() in ("old" * 9, "new")
    write()
    assert file.read_text() == "new"
    assert list(file.parent.iterdir()) == [file]
"""


def test_killed_at_every_change_of_a_file(tmp_path: Path) -> None:
    """Whoever looks finds the old text or the new one, and the next writer clears up."""
    assert moments("import sys" + WRITES, tmp_path / "file") == 6


def test_standard_output_goes_on_where_it_stands(tmp_path: Path) -> None:
    """As a file of a shell, in which programs write one behind the other."""
    usual = os.dup(1)
    try:
        with (tmp_path / "log").open("wb") as log:
            os.dup2(log.fileno(), 1)
        os.write(1, b"one ")
        with opened_device(Path("/dev/stdout")) as stream:
            stream.write(b"two ")
        os.write(1, b"three")
    finally:
        os.dup2(usual, 1)
        os.close(usual)
    assert (tmp_path / "log").read_text() == "one two three"


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


def test_two_do_not_fill_one_folder(tmp_path: Path) -> None:
    """The later one is refused and takes nothing away; what a killed one has left is removed."""
    folder, part = tmp_path / "model", tmp_path / ".model.part"
    (part / "left").mkdir(parents=True)
    with creating(folder, "model") as filled:
        (filled / "a").touch()
        refused = pytest.raises(InputError, match="another process is writing it")
        with refused, creating(folder, "model"):
            pass
    assert [*folder.iterdir()] == [folder / "a"]
    assert [*tmp_path.iterdir()] == [folder]


def test_an_error_of_numpy_on_a_full_disk_is_told(tmp_path: Path) -> None:
    """It has a number of bytes, but no reason."""
    told = pytest.raises(DragomanError, match=r"failed: not all of it was taken \(2 requested")
    with told, replacing(tmp_path / "a.npy", "vectors"):
        raise OSError("2 requested and 1 written")


def test_a_folder_that_may_not_be_looked_into_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that may not be written to."""

    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(InputError, match="Permission denied"), creating(tmp_path / "a", "model"):
        pass
