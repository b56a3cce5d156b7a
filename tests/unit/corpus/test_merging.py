"""Corpora of several layouts joined: which columns they have, and what their files can hold."""

from pathlib import Path

import pytest

from dragoman.corpus.config import PairFiles
from dragoman.corpus.merging import corpora_of, corpus_of, layout_of, texts_of, write_merged
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
    with pytest.raises(InputError, match=r"No corpus needs --src-key t\.en and --tgt-key t\.de;"):
        corpora_of([plain, "a.en,a.de"], FILES)
    with pytest.raises(InputError, match=r"No corpus needs --tgt-key de; leave it out"):
        corpora_of([plain], PairFiles(tgt_key="de"))
    with pytest.raises(InputError, match=r"a\.jsonl has source and target at the same key, 'en'"):
        corpora_of([f"{json},en,en"], PairFiles())


def test_tables_keep_their_separator(tmp_path: Path) -> None:
    """Rows of a table with semicolons stay, and others come to it with semicolons."""
    excel = b"\xef\xbb\xbfid;tgt;src\n1;eins, zwei;one\n"
    first, other, plain = written(
        tmp_path, a_csv=excel, b_csv=b"src,tgt\ntwo,zwei; drei\n", c_csv=b"three,drei\n"
    )
    corpora = corpora_of([first, other, plain], PairFiles())
    out = tmp_path / "out.csv"
    assert write_merged(corpora, [[2], [1], [1]], [out]) == 4
    row = "1;eins, zwei;one\n"
    assert out.read_text("utf-8") == f'id;tgt;src\n{row * 2};"zwei; drei";two\n;drei;three\n'
    assert write_merged([*reversed(corpora)], [[1], [1], [1]], [out]) == 3
    assert out.read_text("utf-8") == 'three,drei\ntwo,zwei; drei\none,"eins, zwei"\n'


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


def test_columns_by_number_are_merged_to_two(tmp_path: Path) -> None:
    """Nothing would fill the others of pairs that come from elsewhere."""
    data = b"a.org\tone\teins\nb.org\ttwo\tzwei\n"
    wide, plain = written(tmp_path, a_tsv=data, b_tsv=b"three\tdrei\n")
    corpora = corpora_of([f"{wide},2,3", plain], PairFiles())
    assert layout_of(corpora[0]).src_key == KEYS[0]
    out = tmp_path / "out"
    assert write_merged(corpora, [[1] * 2, [1]], [out]) == 3
    assert out.read_bytes() == b"one\teins\ntwo\tzwei\nthree\tdrei\n"


def test_numbers_are_columns_of_narrow_tables_too(tmp_path: Path) -> None:
    """They are taken where a table of two has them; where it has not, it is source and target."""
    wide, narrow = written(tmp_path, a_tsv=b"one\teins\tuna\t0.9\n", b_tsv=b"two\tzwei\n")
    out = tmp_path / "out"
    for given, keys, expected in (
        ([wide, narrow], ("2", "1"), b"eins\tone\nzwei\ttwo\n"),
        ([narrow], ("2", "1"), b"zwei\ttwo\n"),
        ([wide, narrow], ("1", "3"), b"one\tuna\ntwo\tzwei\n"),
    ):
        corpora = corpora_of(given, PairFiles(src_key=keys[0], tgt_key=keys[1]))
        write_merged(corpora, [[1]] * len(given), [out])
        assert out.read_bytes() == expected
        out.unlink()


def test_columns_named_by_languages_are_filled(tmp_path: Path) -> None:
    """In the order that the first row has."""
    table, other = written(tmp_path, a_csv=b"de,note,en\neins,x,one\n", b_tsv=b"two\tzwei\n")
    files = PairFiles(src_lang="en", tgt_lang="de")
    write_merged(corpora_of([table, other], files), [[1], [1]], [tmp_path / "out.csv"])
    assert (tmp_path / "out.csv").read_bytes() == b"de,note,en\neins,x,one\nzwei,,two\n"


def test_texts_are_those_of_any_layout(tmp_path: Path) -> None:
    """Lines, cells, and both sides of pairs; keys of their own follow the name."""
    files = PairFiles(src=Path("a.en"), tgt=Path("a.de"))
    contents = {"b_tsv": b"1\tone\teins\n", "b_txt": b"one\neins\n", "b_csv": b'"one",eins\n'}
    for path in written(tmp_path, **contents, b_po=b'msgid "one"\nmsgstr "eins"\n'):
        assert [*texts_of(Path(path), files)][-2:] == ["one", "eins"]
    (json,) = written(tmp_path, b_jsonl=b'{"translation": {"en": "one", "de": "eins"}}\n')
    own = Path(f"{json},translation.en,translation.de")
    assert [*texts_of(own, files)] == ["one", "eins"]
    with pytest.raises(InputError, match="has no key 'src'"):
        [*texts_of(Path(json), files)]


def test_names_with_commas_are_those_of_files(tmp_path: Path) -> None:
    """A file that is there is meant; of others at most two keys, or a file, follow the name."""
    folder = tmp_path / "c,d.tmx"
    folder.mkdir()
    po, table = written(
        folder, h_po=b'msgid "one"\nmsgstr "eins"\n', h_tsv=b"1\t2\tone\teins\t0.5\n"
    )
    (other := folder / "a,b.tsv").write_bytes(b"one\teins\n")
    for name in (po, f"{table},3,4", other):
        assert [*texts_of(Path(name), PairFiles(src_key="x", tgt_key="y"))] == ["one", "eins"]
    found = corpus_of(f"{table},3,4", PairFiles())
    assert (found.tsv, found.src_key, found.tgt_key) == (table, "3", "4")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("h.docx", "a document"), ("h.html.gz", "an HTML page"), ("h.json", "a JSON file")],
)
def test_no_markup_is_held_out(name: str, kind: str, tmp_path: Path) -> None:
    """A document is refused by its name, and only where it is one by the last part of it."""
    (tmp_path / name).write_bytes(b"one\n")
    with pytest.raises(InputError, match=rf"{name} is {kind}, whose markup would be held out"):
        texts_of(tmp_path / name, PairFiles())
    folder = tmp_path / f"d.{name}"
    folder.mkdir()
    (folder / "h.en").write_bytes(b"one\n")
    assert [*texts_of(folder / "h.en", PairFiles())] == ["one"]
