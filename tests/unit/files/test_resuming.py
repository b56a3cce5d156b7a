"""A file of results that an interrupted command continues."""

import errno
import json
import os
import resource
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError, InputError
from dragoman.files.resuming import ResumableFile, Starts

COMMAND = {"model": "a", "--json": False}


def find(
    file: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    starts: Starts | None = None,
    command: dict[str, object] = COMMAND,
) -> ResumableFile:
    """Find what there is of a file."""
    found = ResumableFile(file, command)
    found.find(overwrite=overwrite, resume=resume, starts=starts)
    return found


def interrupt(
    file: Path, results: Sequence[str], *, resume: bool = False, overwrite: bool = False
) -> Path:
    """Write these results and press Ctrl-C; where they are kept."""
    out = find(file, resume=resume, overwrite=overwrite)
    with suppress(KeyboardInterrupt), out.writing() as write:
        for result in results:
            write(result)
        raise KeyboardInterrupt
    assert out.results >= len(results)
    return out.partial


def follows_blank(before: bytes, _line: bytes) -> bool:
    """Whether a result begins: each ends in a blank line."""
    return before == b"\n"


@given(
    st.lists(st.text("ab日", min_size=1, max_size=3), min_size=1, max_size=6),
    st.booleans(),
    st.data(),
)
def test_wherever_it_was_cut_it_becomes_the_whole_file(
    words: list[str],
    blocks: bool,  # noqa: FBT001 -- a case
    data: st.DataObject,
) -> None:
    """Of single lines and of blocks; only the last result that was kept is computed again."""
    results = [f"{word}\nx\n" if blocks else word for word in words]
    whole = "".join(f"{result}\n" for result in results).encode()
    ends = [len("".join(f"{each}\n" for each in results[:n]).encode()) for n in range(len(words))]
    cut = data.draw(st.integers(0, len(whole)))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "out"
        find(file)
        Path(f"{file}.partial").write_bytes(whole[:cut])
        out = find(file, resume=True, starts=follows_blank if blocks else None)
        assert out.results == max(n for n, end in enumerate(ends) if end < max(1, cut))
        with out.writing() as write:
            for result in out.skip(iter(results)):
                write(result)
        assert file.read_bytes() == whole
        assert [*file.parent.iterdir()] == [file]


def test_a_file_is_complete_or_as_it_was(tmp_path: Path) -> None:
    """Each result is kept at once; nothing is left of a command that had none. A link stays one."""
    file, link = tmp_path / "out", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)
    out = find(link, overwrite=True)
    assert out.partial == tmp_path / "out.partial"
    with pytest.raises(KeyboardInterrupt), out.writing():
        raise KeyboardInterrupt
    assert {*tmp_path.iterdir()} == {file, link}
    with out.writing() as write:
        for number in range(3):
            assert out.partial.read_bytes().count(b"\n") == number
            write("new")
            assert file.read_text() == "old"
    assert (file.read_text(), link.is_symlink()) == ("new\n" * 3, True)
    assert {*tmp_path.iterdir()} == {file, link}


def test_in_a_closed_folder_a_file_is_replaced_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is written at once, and by what is made at the end; nothing is put beside it."""
    file, allowed = tmp_path / "out", os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path and allowed(path, mode))
    file.write_text("old and longer")
    with find(file, overwrite=True).writing() as write:
        write("new")
    assert file.read_text() == "new\n"
    out = find(file, overwrite=True)
    with out.keeping() as write:
        write("kept")
        assert [*tmp_path.iterdir()] == [file]
    out.finish([b"made"])
    assert file.read_text() == "made"


def test_what_is_kept_is_not_lost(tmp_path: Path) -> None:
    """Neither to a command that does not continue nor to one of another input or other options."""
    file = tmp_path / "out"
    partial = interrupt(file, "abc")
    assert interrupt(file, "c", resume=True) == partial
    before = partial.read_bytes()
    with pytest.raises(InputError, match=r"out\.partial has results of .*; add --resume"):
        find(file)
    for name in COMMAND:
        with pytest.raises(
            InputError, match=f"another {name}; give the same model, input and options"
        ):
            find(file, resume=True, command=COMMAND | {name: "other"})
    out = find(file, resume=True)
    with pytest.raises(InputError, match="more results than the input has lines"):
        out.skip(iter("a"))
    assert (partial.read_bytes(), file.exists()) == (before, False)


def test_an_earlier_record_is_compared_by_what_it_has(tmp_path: Path) -> None:
    """It may be missing; an option that was added since is one that was not given."""
    file = tmp_path / "out"
    record = Path(f"{interrupt(file, 'abc')}.json")
    assert json.loads(record.read_bytes()) == COMMAND
    assert find(file, resume=True, command=COMMAND | {"--new": None}).results == 2
    record.unlink()
    assert find(file, resume=True, command={"model": "other"}).results == 2


def test_a_record_is_continued_in_its_place(tmp_path: Path) -> None:
    """A full disk does not take what it tells of results that are kept."""
    file, texts = tmp_path / "out", ["one", "two", "three", "four"]

    def begin(count: int) -> None:
        out = find(file, resume=True)
        with suppress(KeyboardInterrupt), out.writing() as write:
            for text in out.continued(iter(texts[:count])):
                write(text)
            raise KeyboardInterrupt

    begin(3)
    record = Path(f"{file}.partial.json")
    first = record.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_bytes", None)  # nothing is written anew
        begin(4)
    assert record.read_bytes().startswith(first)
    assert len(record.read_bytes().splitlines()) == 5
    with pytest.raises(InputError, match=r"Result 2 of .*is of another text; give the input"):
        find(file, resume=True).continued(iter(["one", "other"]))


def test_one_command_writes_at_a_time(tmp_path: Path) -> None:
    """Another one is refused, and so is one whose file has changed since it looked."""
    file = tmp_path / "out"
    late = find(file)
    with find(file).writing() as write:
        write("a")
        for resume in (False, True):
            with pytest.raises(InputError, match="Another dragoman is writing"):
                find(file, resume=resume)
    assert file.read_text() == "a\n"
    partial = interrupt(tmp_path / "out", "ab", overwrite=True)
    with pytest.raises(InputError, match="in the meantime"), late.writing():
        pass
    assert (partial.read_text(), file.read_text()) == ("a\nb\n", "a\n")


def test_commands_that_begin_together_are_not_mixed(tmp_path: Path) -> None:
    """The later one is refused while the other writes and afterwards, and takes nothing away."""
    file = tmp_path / "out"
    first, second = find(file), find(file)
    with first.keeping() as write:
        with pytest.raises(InputError, match="Another dragoman is writing"), second.keeping():
            pass
        write("a")
    first.finish(f"{result}\n".encode() for result in first.partial.read_text().splitlines())
    with pytest.raises(InputError, match="exists already"), second.keeping():
        pass
    assert (file.read_text(), [*tmp_path.iterdir()]) == ("a\n", [file])
    interrupt(file, "ab", overwrite=True)
    first, second = (find(file, resume=True, overwrite=True) for _ in range(2))
    with first.writing() as write:
        write("b")
    with pytest.raises(InputError, match="in the meantime"), second.keeping():
        pass
    assert (file.read_text(), [*tmp_path.iterdir()]) == ("a\nb\n", [file])


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    """Here a limit on the size of files."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = pytest.raises(DragomanError, match=r"writing the results .*out.partial failed: File too")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with told, find(tmp_path / "out").keeping() as write:
            write("a" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [*tmp_path.iterdir()] == []


def test_an_error_between_results_is_not_one_of_writing_them(tmp_path: Path) -> None:
    """Such as of a folder for temporary files."""
    out = find(tmp_path / "out")
    for writing in (out.writing, out.keeping):
        with pytest.raises(FileNotFoundError, match="missing"), writing():
            (tmp_path / "missing").read_bytes()
    assert [*tmp_path.iterdir()] == []


def test_results_outlive_a_disk_that_is_full_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some disks report it only when the file is synced."""

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def both(out: ResumableFile) -> None:
        with out.writing() as write:
            for result in ["a", "b"][out.results :]:
                write(result)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(DragomanError, match="No space left"):
            both(find(tmp_path / "out"))
    again = find(tmp_path / "out", resume=True)
    assert again.results == 1
    both(again)
    assert (tmp_path / "out").read_text() == "a\nb\n"


def test_a_file_with_content_is_replaced_only_when_asked(tmp_path: Path) -> None:
    """An empty file and a device hold nothing that could be lost."""
    file = tmp_path / "out"
    file.touch()
    find(file)
    file.write_text("old")
    with pytest.raises(InputError, match="out exists already; add --overwrite"):
        find(file)
    find(file, overwrite=True)
    with find(Path("/dev/null")).writing() as write:
        write("a")
    assert Path("/dev/null").is_char_device()


def plant_pipe(place: Path, _victim: Path) -> None:
    """A pipe that nobody reads."""
    os.mkfifo(place)


@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to, plant_pipe])
@pytest.mark.parametrize("name", [".out.part", "out.partial", "out.partial.json"])
def test_what_others_put_beside_a_file_is_refused(
    tmp_path: Path, plant: Callable[[Path, Path], None], name: str
) -> None:
    """At once, and nothing of this user is overwritten by way of it."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plant(tmp_path / name, victim)
    with (
        pytest.raises(
            InputError, match=rf"/{name} is a link, not a regular file, or owned.*, or remove it"
        ),
        find(tmp_path / "out", overwrite=True, resume=True).writing(),
    ):
        pass
    assert victim.read_text() == "precious"
    assert {*tmp_path.iterdir()} == {victim, tmp_path / name}


@pytest.mark.parametrize("all_are_theirs", [False, True])
def test_what_another_user_has_kept_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    all_are_theirs: bool,  # noqa: FBT001 -- a case
) -> None:
    """They could change it later; some disks give all files one owner, and there it is ours."""
    partial = interrupt(tmp_path / "out", "abc")
    known, number = os.fstat, partial.stat().st_ino

    def of_another(descriptor: int) -> os.stat_result:
        found = known(descriptor)
        is_theirs = all_are_theirs or found.st_ino == number
        return os.stat_result((*found[:4], found.st_uid + is_theirs, *found[5:]))

    monkeypatch.setattr(os, "fstat", of_another)
    if all_are_theirs:
        assert find(tmp_path / "out", resume=True).results == 2
    else:
        with pytest.raises(InputError, match=r"out\.partial is .* owned by another user"):
            find(tmp_path / "out", resume=True)


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    """Neither the results nor what identifies them; the file is as the umask."""
    file, usual = tmp_path / "out", tmp_path / "usual"
    usual.touch()
    kept = [interrupt(file, "abc"), Path(f"{file}.partial.json")]
    with find(file, resume=True).writing() as write:
        write("c")
        assert [stat.S_IMODE(each.stat().st_mode) for each in kept] == [0o600, 0o600]
    assert file.read_text() == "a\nb\nc\n"
    assert file.stat().st_mode == usual.stat().st_mode


def test_results_start_where_the_caller_says(tmp_path: Path) -> None:
    """By two neighbouring lines."""
    file, lines = tmp_path / "out", [b"1 a\n", b"1 b\n", b"2 a\n", b"3 a\n"]
    Path(f"{file}.partial").write_bytes(b"".join(lines))
    asked = list[tuple[bytes, bytes]]()

    def starts(before: bytes, line: bytes) -> bool:
        asked.append((before, line))
        return before[:1] != line[:1]

    assert find(file, resume=True, starts=starts).results == 2
    assert asked == [*pairwise(lines)]
