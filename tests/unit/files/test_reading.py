"""Files, lines and rows that are read, and the encodings that are offered for them."""

import os
import re
from io import BytesIO
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.files.reading import decode_lines, read_file, read_lines
from dragoman.files.records import TAB, read_rows, separator_in, separator_of


def test_bytes_of_a_file(tmp_path: Path) -> None:
    """A file comes back as it is, up to the limit, that of a link too."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_file(tmp_path / "file", 5) == read_file(tmp_path / "link") == b"12345"
    with pytest.raises(InputError, match=r"file is larger than 4 bytes"):
        read_file(tmp_path / "file", 4)


def test_a_system_without_the_flag_reads_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has none that opens a pipe without waiting."""
    monkeypatch.delattr(os, "O_NONBLOCK")
    (tmp_path / "file").write_bytes(b"1\r\n2")
    assert read_file(tmp_path / "file") == b"1\r\n2"


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


def lenient(content: bytes) -> list[str]:
    """The lines of a file that is read for a verb."""
    return [*decode_lines(BytesIO(content), "file", strict=False)]


@pytest.mark.parametrize(
    "content",
    [
        b"one\n\xff\n",
        b"caf\xe9\n\none",
        b"caf\xe9\n" * 2 + "café\n".encode() * 62 + b"caf\xe9\n" * 90,
        b"one\n" * 64 + b"caf\xe9\n" * 3,
    ],
)
def test_lines_that_are_not_utf8_are_kept(content: bytes) -> None:
    """Each at its place, and recognisable; the others are as they were."""
    expected = content.removesuffix(b"\n").split(b"\n")
    found = lenient(content)
    assert [line.encode(errors="surrogateescape") for line in found] == expected
    for line, raw in zip(found, expected, strict=True):
        assert re.search("[\udc80-\udcff]", line) is not None or line == raw.decode()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"caf\xe9", 1),
        (b"caf\xe9\n\ncaf\xe9\n\n", 1),
        (b"one\n" * 20 + b"caf\xe9\ntwo\n" * 3, 21),
        ("我喜欢人工智能。\n".encode("gb18030") * 99, 1),
        ("Straße\n".encode() + "Straße\n".encode("latin-1") * 3, 2),
    ],
)
def test_a_file_in_another_encoding_is_refused(content: bytes, line: int) -> None:
    """By its first lines, with the first that is not UTF-8, and how to convert it."""
    with pytest.raises(InputError, match=rf"^file line {line} is not UTF-8: .* iconv -f"):
        lenient(content)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Der Mann fährt über die Straße.", "cp1252"),
        ("It’s “5 €”.", "cp1252"),
        ("Er sagte ›ja‹ und ›nein‹.", "cp1252"),
        ("Für Mädchen: Größe, Straße, Füße.", "macintosh"),
        ("Le café d’été où l’élève a déjà mangé.", "macintosh"),
        ("Hdźe je šula?", "cp1250"),
        ("Maja mać čita, tři psy spí.", "cp1250"),
        ("Bērni lasa grāmatu.", "cp1257"),
        ("术语库,termbase", "gb18030"),
        ("茶,tea", "gb18030"),
        ("我喜欢学习人工智能。", "gb18030"),
        ("我喜歡學習人工智慧。", "big5"),
        ("私は人工知能を勉強します。", "shift_jis"),
        ("私は人工知能を勉強します。", "euc-jp"),
        ("나는 인공지능을 공부한다.", "euc-kr"),
        ("Я изучаю искусственный интеллект.", "koi8-r"),
        ("Я изучаю искусственный интеллект.", "cp1251"),
        ("Μου αρέσει το τσάι.", "cp1253"),
        ("Άνοιξε την πόρτα, παρακαλώ.", "iso-8859-7"),
        ("איפה התחנה המרכזית?", "cp1255"),
        ("ผมชอบดื่มชา", "cp874"),
    ],
)
def test_each_encoding_that_fits_is_offered_with_what_it_reads(
    text: str, encoding: str, tmp_path: Path
) -> None:
    """The right one first, with a part of the right text, whatever the others read."""
    path = tmp_path / "a.txt"
    path.write_bytes(f"x\n{text}\n".encode(encoding))
    with pytest.raises(InputError, match="line 2 is not UTF-8") as caught:
        list(read_lines(path))
    offered = re.findall(r"([-\w]+) reads '(.*?)'[,)]", str(caught.value))
    assert dict(offered)[encoding.upper()] in text
    assert offered[0][0] == encoding.upper()
    assert f"iconv -f {encoding.upper()} -t UTF-8" in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["a,b", "c;d,e"], ","),
        (["a;b", "Yes, well;Ja, doch"], ";"),
        (["Yes, well, then;Ja, doch", "one, two;eins, zwei, drei"], ";"),
        (["3,5 kg;3,5 Kilo"], ";"),
        (["1,5;2,5\n", "3,5;4,5\n"], ";"),
        (["Yes; well,Ja; doch", "one; two,eins; zwei"], ","),
        (['"a;b",c', '"d;e",f'], ","),
        (['"a, b\n', 'c";d', "e, f;g"], ";"),
        (["one; two,eins", "three;3,drei"], ","),
        (["sep=;\n", "a, b;c, d\n"], ";"),
        (["sep=,", "a;b,c"], ","),
        (["a\tb", "c, d\te"], TAB),
        (["a", "b"], ","),
        ([], ","),
    ],
)
def test_the_first_rows_tell_the_separator_of_a_csv(lines: list[str], separator: str) -> None:
    """Outside quotes, and whichever row comes first."""
    assert separator_in(lines) == separator


def test_a_name_tells_the_kind_of_a_table(tmp_path: Path) -> None:
    """A TSV has neither commas nor quotes between its cells."""
    for name, cells in (("a.tsv", ['"3,5";"3', '5"']), ("a.csv", ["3,5", "3\t5"])):
        (tmp_path / name).write_text('"3,5";"3\t5"\n', "utf-8")
        ((_, row, _),) = read_rows(tmp_path / name)
        assert row == cells
    assert separator_of(tmp_path / "a.tsv") == TAB


def test_the_line_that_names_the_separator_is_no_row(tmp_path: Path) -> None:
    """It is written as a part of the first row, and the rows after it have their own lines."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"sep=;\r\nEnglish;German\r\nYes.;Ja.\r\n")
    rows = [(number, cells) for number, cells, _ in read_rows(path)]
    assert rows == [(1, ["English", "German"]), (3, ["Yes.", "Ja."])]
    assert "".join(f"{raw}\n" for *_, raw in read_rows(path)).split() == path.read_text().split()
