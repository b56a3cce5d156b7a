"""Corpora of several layouts joined: which columns they have, and what their files can hold."""

from pathlib import Path

import pytest

from dragoman.corpus.config import PairFiles
from dragoman.corpus.merging import corpora_of, write_merged
from dragoman.data.corpus import KEYS
from dragoman.errors import InputError

FILES = PairFiles(src_key="t.en", tgt_key="t.de")


def written(folder: Path, **files: bytes) -> list[str]:
    """The names of files with these contents, whose endings come after "_"."""
    paths = [folder / name.replace("_", ".") for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    return [*map(str, paths)]


def test_keys_are_those_of_the_corpora_that_have_them(tmp_path: Path) -> None:
    """A table of two columns without these names has a source and a target."""
    json, plain, wider = written(
        tmp_path, a_jsonl=b"{}", b_tsv=b"one\teins\n", c_csv=b"t.en,id,t.de\n"
    )
    keys = [(each.src_key, each.tgt_key) for each in corpora_of([json, plain, wider], FILES)]
    assert keys == [("t.en", "t.de"), KEYS, ("t.en", "t.de")]
    with pytest.raises(InputError, match=r"No corpus has 't\.en' and 't\.de'; correct --src-key"):
        corpora_of([plain, "a.en,a.de"], FILES)


def test_json_has_no_damaged_bytes(tmp_path: Path) -> None:
    """Other layouts take them as they are."""
    data = b"one\teins\ntwo \xff\tzwei\nthree\tdrei\n"
    json, plain = written(tmp_path, a_jsonl=b'{"src": "a", "tgt": "b"}\n', b_tsv=data)
    one, other = corpora_of([json, plain], PairFiles())
    out = tmp_path / "out"
    assert write_merged([other, one], [[1] * 3, [1]], [out]) == 4
    assert out.read_bytes() == data + b"a\tb\n"
    with pytest.raises(InputError, match=r"b\.tsv has a pair that is not UTF-8, as JSON must be"):
        write_merged([one, other], [[1], [1] * 3], [tmp_path / "new"])
    assert not (tmp_path / "new").exists()
