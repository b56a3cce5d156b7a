"""Files that are read at once: regular ones, of a bounded size."""

import os
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.files.reading import read_file


def test_bytes_of_a_file(tmp_path: Path) -> None:
    """A file comes back as it is, up to the limit, that of a link too."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_file(tmp_path / "file", 5) == read_file(tmp_path / "link") == b"12345"
    with pytest.raises(InputError, match=r"file is larger than 4 bytes"):
        read_file(tmp_path / "file", 4)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "missing", "unreadable link"])
def test_what_is_no_regular_file(tmp_path: Path, kind: str) -> None:
    """What is no file is refused at once, without waiting for a writer."""
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "unreadable link":
        path.symlink_to("x")
    with pytest.raises(InputError, match="x"):
        read_file(path)
