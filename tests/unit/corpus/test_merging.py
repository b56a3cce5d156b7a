"""Merging corpora of several layouts: their columns, and what their files can contain."""

from pathlib import Path

import pytest

from dragoman.corpus.config import PairFiles
from dragoman.corpus.merging import corpora_of, corpus_of, layout_of, texts_of, write_merged
from dragoman.data.corpus import KEYS
from dragoman.errors import InputError

FILES = PairFiles(src_key="t.en", tgt_key="t.de")


def written(folder: Path, **files: bytes) -> list[str]:
    """Write files with these contents and return their names; extensions come after "_"."""
    paths = [folder / name.replace("_", ".") for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    return [*map(str, paths)]


def test_keys_are_those_of_the_corpora_that_have_them(tmp_path: Path) -> None:
    """Keys apply to the corpora that have them; other two-column tables are source and target."""
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
    """The output keeps the separator of the first table, whatever the others have."""
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
    """Bytes that are not UTF-8 are refused in JSON and kept in other layouts."""
    data = b"one\teins\ntwo \xff\tzwei\nthree\tdrei\n"
    json, plain = written(tmp_path, a_jsonl=b'{"src": "a", "tgt": "b"}\n', b_tsv=data)
    one, other = corpora_of([json, plain], PairFiles())
    out = tmp_path / "out"
    assert write_merged([other, one], [[1] * 3, [1]], [out]) == 4
    assert out.read_bytes() == data + b"a\tb\n"
    with pytest.raises(InputError, match=r"b\.tsv has a pair that is not UTF-8, as JSON must be"):
        write_merged([one, other], [[1], [1] * 3], [tmp_path / "new"])
    assert not (tmp_path / "new").exists()


def test_numbers_are_columns_of_narrow_tables_too(tmp_path: Path) -> None:
    """Column numbers apply to two-column tables that have them; others are source and target.

    Only the two columns are written, since other pairs have nothing for the rest.
    """
    wide, narrow = written(tmp_path, a_tsv=b"one\teins\tuna\t0.9\n", b_tsv=b"two\tzwei\n")
    out = tmp_path / "out"
    for given, keys, expected in (
        ([wide, narrow], ("2", "1"), b"eins\tone\nzwei\ttwo\n"),
        ([narrow], ("2", "1"), b"zwei\ttwo\n"),
        ([wide, narrow], ("1", "3"), b"one\tuna\ntwo\tzwei\n"),
    ):
        corpora = corpora_of(given, PairFiles(src_key=keys[0], tgt_key=keys[1]))
        assert layout_of(corpora[0]).src_key == KEYS[0]
        write_merged(corpora, [[1]] * len(given), [out])
        assert out.read_bytes() == expected
        out.unlink()


def test_columns_named_by_languages_are_filled(tmp_path: Path) -> None:
    """Columns that languages name are filled in the order of the header."""
    table, other = written(tmp_path, a_csv=b"de,note,en\neins,x,one\n", b_tsv=b"two\tzwei\n")
    files = PairFiles(src_lang="en", tgt_lang="de")
    write_merged(corpora_of([table, other], files), [[1], [1]], [tmp_path / "out.csv"])
    assert (tmp_path / "out.csv").read_bytes() == b"de,note,en\neins,x,one\nzwei,,two\n"


def test_texts_are_those_of_any_layout(tmp_path: Path) -> None:
    """Texts are lines, cells or both sides of pairs; a corpus's own keys follow its name."""
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
    """An existing file goes first; otherwise at most two keys, or a file, follow the comma."""
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
    """Documents are refused by the extension of their own name, not of their folder's."""
    (tmp_path / name).write_bytes(b"one\n")
    with pytest.raises(InputError, match=rf"{name} is {kind}, whose markup would be held out"):
        texts_of(tmp_path / name, PairFiles())
    folder = tmp_path / f"d.{name}"
    folder.mkdir()
    (folder / "h.en").write_bytes(b"one\n")
    assert [*texts_of(folder / "h.en", PairFiles())] == ["one"]
