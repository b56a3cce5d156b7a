"""Reading pairs: layouts, compression and errors."""

import bz2
import gzip
import lzma
import os
import re
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from dragoman.data.corpus import CorpusConfig, CorpusTexts, read_pairs
from dragoman.errors import InputError
from dragoman.files.reading import LONGEST_LINE, read_lines
from dragoman.languages import LangCodes

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
packed = pytest.mark.parametrize("ending", PACK)


def parallel(folder: Path, src: bytes, tgt: bytes) -> CorpusConfig:
    """Write two files with this content."""
    (folder / "a.en").write_bytes(src)
    (folder / "a.de").write_bytes(tgt)
    return CorpusConfig(src=str(folder / "a.en"), tgt=str(folder / "a.de"))


@packed
def test_lines_are_read_through_compression(ending: str, tmp_path: Path) -> None:
    """Compressed files give the same lines, also if they are large or concatenated."""
    lines = [f"line {i} äöü 我" for i in range(50_000)]
    path = tmp_path / f"a.en{ending}"
    path.write_bytes(PACK[ending]("\n".join(lines).encode()))
    assert list(read_lines(path)) == lines
    path.write_bytes(PACK[ending](b"one\ntwo\n") + PACK[ending](b"three\n"))  # cat a.gz b.gz
    assert list(read_lines(path)) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\u2028b\x0bc\x85d\re\r\n\n  f\x1c", ["a\u2028b\x0bc\x85d\re", "", "  f\x1c"]),
        ("\ufeffone\n\ufefftwo\n", ["one", "\ufefftwo"]),
    ],
)
def test_only_a_line_feed_ends_a_line(content: str, lines: list[str], tmp_path: Path) -> None:
    """Other Unicode separators are kept; a carriage return before it and a leading byte order mark
    are removed.
    """
    path = tmp_path / "a.en"
    path.write_bytes(content.encode())
    assert list(read_lines(path)) == lines


@packed
def test_an_empty_file_is_refused(ending: str, tmp_path: Path) -> None:
    """A file without lines is refused by name; an empty line is a line."""
    path = tmp_path / f"a.en{ending}"
    path.write_bytes(PACK[ending](b""))
    with pytest.raises(InputError, match=r"a\.en.* is empty"):
        list(read_lines(path))
    path.write_bytes(PACK[ending](b"\n"))
    assert list(read_lines(path)) == [""]


def test_a_pipe_that_has_been_read_is_told(tmp_path: Path) -> None:
    """A pipe such as `<(...)` can be read only once and looks empty the second time."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    lines = read_lines(pipe)
    os.write(writer, b"one\n")
    assert next(lines) == "one"
    os.close(writer)
    assert list(lines) == []
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(list, read_lines(pipe))
        os.close(os.open(pipe, os.O_WRONLY))
        with pytest.raises(InputError, match="is empty, or it is a pipe that has been read"):
            again.result()


@packed
def test_undecodable_bytes_are_named_with_their_line(ending: str, tmp_path: Path) -> None:
    """The error names the file, the line, the byte and its position."""
    path = tmp_path / f"a.en{ending}"
    path.write_bytes(PACK[ending]("eins\nzwei\nMä".encode() + b"dchen\n" + b"Stra\xdfe\n"))
    with pytest.raises(
        InputError,
        match=r"line 4 is not UTF-8: byte 0xdf at position 5.*iconv -f.*; but line 3 is UTF-8",
    ):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("content", "told", "untold"),
    [
        (b"\xe1\xf4\xfc\xf2a\xdf\xe0b\xe7\xff\xe1c\n", "iconv -f ENCODING -t UTF-8", "-f CP"),
        (b"caf\xff\x81\x00\n", "correct the line", "iconv"),
    ],
)
def test_no_encoding_is_named_that_cannot_be(
    content: bytes, told: str, untold: str, tmp_path: Path
) -> None:
    """A wrong encoding would produce garbage; bytes that fit no encoding must be corrected."""
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=told) as caught:
        list(read_lines(path))
    assert untold not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is a document (doc, xls)"),
        (
            b"PK\x03\x04\x14\x00",
            "is a document (docx, xlsx, odt) or another zip archive, not plain text; save it as "
            "text in UTF-8, a table as CSV or TSV, or unzip it.",
        ),
        (b"%PDF-1.7\n", "is a PDF"),
        (rb"{\rtf1\ansi hello\par}", "is a document (rtf)"),
        ("一\n".encode("utf-16"), "or convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW"),
        (b"\xfe\xff" + "一\n".encode("utf-16-be"), "iconv -f UTF-16 -t"),
        ("one\n".encode("utf-16-le"), "iconv -f UTF-16LE"),
        ("one\n".encode("utf-16-be"), "iconv -f UTF-16BE"),
        (
            "one\n".encode("utf-32"),
            "is UTF-32; save it as UTF-8 in an editor, or convert it: iconv -f UTF-32 ",
        ),
        (b"\0\0\xfe\xff" + "one\n".encode("utf-32-be"), "iconv -f UTF-32 "),
        (b"PAR1\x15\x04", "datasets.Dataset.from_parquet(OLD).to_json(NEW)"),
        (b"\xff\xff\xff\xff\x88\0", "a table of Arrow"),
        *(
            (pack(b"x\n"), f"; decompress it, or give it a name that ends in {ending}.")
            for ending, pack in PACK.items()
            if ending
        ),
    ],
)
def test_other_kinds_of_files_are_recognised(content: bytes, words: str, tmp_path: Path) -> None:
    """Documents, UTF-16 and UTF-32 are identified, whether or not their bytes are valid UTF-8."""
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(read_lines(path))
    assert str(caught.value).startswith(f"{path} is ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"\x09\0\x04\x01\0\0", b"MMIDIDX\0\0\x01\0", b"\xd2\x04\x12\0"]
)
def test_a_corpus_of_numbers_is_no_text(content: bytes, tmp_path: Path) -> None:
    """Files of fairseq-preprocess are recognised by their names; a text may have any name."""
    path = tmp_path / "train.en-de.en.bin"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"en\.bin holds numbers, .*fairseq-preprocess.* was made of"
    ):
        list(read_lines(path))
    path.write_text("one\n")
    assert list(read_lines(path)) == ["one"]


def test_a_text_may_begin_as_a_table_does(tmp_path: Path) -> None:
    """A table of Parquet has a byte after its name that no text has."""
    path = tmp_path / "a.txt"
    path.write_text("PAR1 and PAR2\n")
    assert list(read_lines(path)) == ["PAR1 and PAR2"]


@packed
def test_a_line_has_a_bound(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is too long is reported and never held in memory, even if it compresses well."""
    path = tmp_path / f"a.en{ending}"
    path.write_bytes(PACK[ending](b"one\n" + b"a" * (32 << 20)))
    monkeypatch.setenv("DRAGOMAN_MAX_LINE_BYTES", str(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"a\.en.* line 2 is longer than 1,048,576 b"):
            list(read_lines(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


def test_the_bound_of_a_line_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line ending counts; values that are not positive integers are refused."""
    path = tmp_path / "a.en"
    path.write_bytes(b"four\nfive\n")
    for most in (LONGEST_LINE, 5):
        monkeypatch.setenv("DRAGOMAN_MAX_LINE_BYTES", str(most))
        assert list(read_lines(path)) == ["four", "five"]
    monkeypatch.setenv("DRAGOMAN_MAX_LINE_BYTES", "4")
    with pytest.raises(InputError, match="line 1 is longer than 4 bytes"):
        list(read_lines(path))
    for wrong in ("", "0", "many"):
        monkeypatch.setenv("DRAGOMAN_MAX_LINE_BYTES", wrong)
        with pytest.raises(InputError, match="must be an integer, at least 1"):
            list(read_lines(path))


@pytest.mark.parametrize("ending", [*PACK][1:])
def test_a_damaged_compressed_file_is_noticed(ending: str, tmp_path: Path) -> None:
    """A truncated file is reported as such, and so is a plain text with a compressed name."""
    whole = PACK[ending]("\n".join(map(str, range(20_000))).encode())
    path = tmp_path / f"a.en{ending}"
    plain = b"plain text that is long enough to be read as a header\n"
    for content, told in (
        (whole[: len(whole) // 2], "cut short"),
        (whole[:-1], "cut short"),
        (plain, "damaged or not compressed"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=told):
            list(read_lines(path))


def test_unequal_files_are_refused_with_both_counts(tmp_path: Path) -> None:
    """Both counts are reported, whichever file is longer."""
    for src, tgt, words in [
        (b"1\n2\n3\n4\n", b"1\n2\n", r"a\.en has 4 lines but .*a\.de has 2"),
        (b"1\n2\n", b"1\n2\n3\n", r"a\.en has 2 lines but .*a\.de has 3"),
    ]:
        with pytest.raises(InputError, match=words):
            list(read_pairs(parallel(tmp_path, src, tgt)))


@pytest.mark.parametrize(
    ("first", "languages", "pair"),
    [
        ("en-GB,id", (None, None), ("a", "b")),
        ("en,de", ("en", "de"), ("a", "b")),
        ("Ziel,Quelle", (None, None), ("b", "a")),
        ("中文,英语", ("en", "zh"), ("b", "a")),
        ("German,English,Quelle", ("en", "de"), ("b", "a")),
        ("English,German", (None, None), ("a", "b")),
        ("en-US,de", ("de", "en"), ("b", "a")),
        ("id,eng,fr,ger", ("en", "de"), ("b", "d")),
        ("ID,German,note,English", (None, None), ("b", "d")),
        ("Target,Source", (None, None), ("b", "a")),
        ("tgt,note,src", (None, None), ("c", "a")),
    ],
)
def test_a_first_row_that_names_columns_is_no_pair(
    first: str, languages: LangCodes, pair: tuple[str, str], tmp_path: Path
) -> None:
    """Columns may be named by side or by language, in a translation memory too."""
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n{','.join('abcd'[: first.count(',') + 1])}\n")
    given = CorpusConfig(tsv=str(path), src_lang=languages[0], tgt_lang=languages[1])
    assert [*read_pairs(given)] == [pair]
    assert [*read_pairs(replace(given, tsv=None, tm=str(path)))] == [pair]


@pytest.mark.parametrize("first", ["no,nein", "He,El", "de,de", "en", "en,de,fr", 'He,5",El'])
def test_a_first_row_of_other_words_is_read_as_any_row(first: str, tmp_path: Path) -> None:
    """Two columns are a pair; any other number is refused."""
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n")
    with pytest.raises(InputError, match=r"bers\.$") if first.count(",") != 1 else nullcontext():
        assert [*read_pairs(CorpusConfig(tsv=str(path)))] == [tuple(first.split(","))]


def test_a_first_row_that_may_name_columns_is_told(tmp_path: Path) -> None:
    """An unknown language is read as a pair, a code that may be a word as a name; both warn."""
    path = tmp_path / "a.csv"
    for corpus in (CorpusConfig(tsv=str(path)), CorpusConfig(tm=str(path))):
        path.write_text("English,Upper Sorbian\na,b\n")
        with pytest.warns(match="'English' with 'Upper Sorbian', is read as a pair; if it names"):
            assert len([*read_pairs(corpus)]) == 2
        path.write_text("he,el\na,b\n")
        with pytest.warns(match="'he' with 'el', is read as the names of the columns; if it is a"):
            assert len([*read_pairs(corpus)]) == 1


def test_tsv(tmp_path: Path) -> None:
    """Each line has two columns; any other number is reported with its line."""
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"one\teins\ntwo\tzwei\n")
    corpus = CorpusConfig(tsv=str(path))
    assert list(read_pairs(corpus)) == [("one", "eins"), ("two", "zwei")]
    for line, words in [
        (b'a\t"b"\tc', "line 3 has 3 columns; .* target.$"),
        (b"", "line 3 has 1 column;"),
        (b'"Two\nlines"\tzwei', "line 3 has 1 column; .* If a cell in quotes has several lines"),
    ]:
        path.write_bytes(b"one\teins\ntwo\tzwei\n" + line + b"\n")
        with pytest.raises(InputError, match=words):
            list(read_pairs(corpus))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"src": "a", ', "line 2 is not JSON: .* at column"),
        ("", r"line 2 is empty\."),
        ('{"src": "a"}', "line 2 has no key 'tgt' .*'src'"),
        ('["a", "b"]', r"line 2 has no key 'src' .*no object but a list, from which jq -c '.\[\]'"),
        ("[", r"line 2 is not JSON: .*; write one object per line: jq -c '.\[\]' OLD > NEW"),
        ('{"src": "a", "tgt": 3}', "line 2: the value of 'tgt' is not a string"),
        ('{"src": "a", "tgt": "\\ud800"}', "line 2: 'tgt' has an unpaired surrogate"),
        ("[" * 200_000, "line 2 is nested too deeply, or has too long a number"),
        (f'{{"n": {"9" * 5000}}}', "too long a number; .*such a number as a string"),
    ],
)
def test_bad_json_lines_are_named(line: str, words: str, tmp_path: Path) -> None:
    """The error names the line and the fault."""
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"src": "one", "tgt": "eins"}\n' + line + "\n")
    with pytest.raises(InputError, match=words):
        list(read_pairs(CorpusConfig(jsonl=str(path))))


def test_texts_of_corpora_can_be_read_again(tmp_path: Path) -> None:
    """All texts of one side come before those of the other, and can be read repeatedly."""
    corpus = parallel(tmp_path, b"one\ntwo\n", b"eins\nzwei\n")
    texts = CorpusTexts([corpus, corpus], ["src", "tgt"])
    expected = ["one", "two", "one", "two", "eins", "zwei", "eins", "zwei"]
    assert list(texts) == expected
    assert list(texts) == expected
    assert list(CorpusTexts([corpus], ["tgt"])) == ["eins", "zwei"]


def test_a_table_without_names_has_columns_by_number(tmp_path: Path) -> None:
    """Such as address, source, target and score; a column named by a number goes first."""
    path = tmp_path / "a.tsv"
    path.write_text("http://a\tone\teins\t0.9\nhttp://b\ttwo\tzwei\t0.8\n")
    third = CorpusConfig(tsv=str(path), src_key="2", tgt_key="3")
    assert list(read_pairs(third)) == [("one", "eins"), ("two", "zwei")]
    for keys in (("src", "tgt"), ("2", "de")):
        with pytest.raises(InputError, match=r"src_key|names no column"):
            list(read_pairs(replace(third, src_key=keys[0], tgt_key=keys[1])))
    path.write_text("3\t2\tid\none\teins\t7\n")
    assert list(read_pairs(third)) == [("eins", "one")]
    path.write_text("a\tone\teins\nb\ttwo\n")
    with pytest.raises(InputError, match="line 2 has 2 columns; the first has 3"):
        list(read_pairs(third))


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        (("3", "9"), "9"),
        (("0", "1"), "0"),
        (("1", "-1"), "-1"),
        (("3", "03"), "03"),
        (("\uff13", "1"), "\uff13"),
        (("9" * 5000, "1"), "9" * 60),
    ],
)
def test_a_number_of_no_column_is_told(keys: tuple[str, str], wrong: str, tmp_path: Path) -> None:
    """The error has the number of columns; only plain decimal numbers are valid."""
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\tone\teins\t0.9\n")
    corpus = CorpusConfig(tsv=str(path), src_key=keys[0], tgt_key=keys[1])
    sentence = f"{path} has 5 columns, counted from 1 (1, 2, ...), and no column {wrong}."
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        list(read_pairs(corpus))
