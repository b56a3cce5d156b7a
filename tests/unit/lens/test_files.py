"""The way of a page or a picture into a file."""

import os
from pathlib import Path

from dragoman.lens.files import replacing


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
    with replacing(file, "picture") as part:
        part.write_text("new", encoding="utf-8")
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
