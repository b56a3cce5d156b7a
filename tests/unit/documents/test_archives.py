"""Archives: everything except text is copied byte for byte, and EPUB's rules hold."""

import io
import struct
import zipfile

import pytest
from tests.archives import packed, replaced, unpacked
from tests.office import BODY, CHAPTER, SAMPLES, epub
from tests.unit.documents.test_office import docx_of
from tests.word_translator import WordTranslator, translated

from dragoman.documents import archive as archives
from dragoman.documents.archive import Archive
from dragoman.documents.formats import read_document
from dragoman.errors import InputError


def infos(data: bytes) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {info.filename: info for info in archive.infolist()}


def test_a_book_is_translated() -> None:
    """Chapters as XHTML, which name their language, both tables of contents, the title; no more."""
    contents = unpacked(translated(epub(), "a.epub")[0])
    assert contents["OPS/text/one a.xhtml"].decode() == (
        CHAPTER.replace('lang="en"><head><title>One', 'lang="de"><head><title>ONE')
        .replace("Chapter&#160;one", "CHAPTER\xa0ONE")
        .replace("It was a <i>dark</i> &amp; stormy", "IT WAS A <i>DARK</i> &amp; STORMY")
        .replace("night&nbsp;here", "NIGHT\xa0HERE")
        .replace("A <ruby>word<rt>read</rt></ruby> more", "A <ruby>WORD<rt>read</rt></ruby> MORE")
        .replace("A house", "A HOUSE")
    )
    assert b"<text>CHAPTER ONE</text>" in contents["OPS/toc.ncx"]
    assert b"<dc:title>THE BOOK</dc:title>" in contents["OPS/book.opf"]
    assert b"<dc:language>en" in contents["OPS/book.opf"]


def test_the_description_of_a_book_is_html_that_is_escaped() -> None:
    """As most programs write it; what a guide shows is translated, and nobody's name."""
    told = (
        "<dc:description>&lt;p>a &lt;b>b&lt;/b>&lt;/p></dc:description><dc:creator>c</dc:creator>"
    )
    guide = '<guide><reference type="toc" title="d &amp; e" href="f"/></guide></package>'
    old = unpacked(epub())["OPS/book.opf"].decode()
    new = old.replace("<dc:id", f"{told}<dc:id").replace("</package>", guide)
    made = translated(replaced(epub(), {"OPS/book.opf": new}), "a.epub")[0]
    written = told.replace("p>a &lt;b>b", "p&gt;A &lt;b&gt;B").replace(
        "/b>&lt;/p>", "/b&gt;&lt;/p&gt;"
    )
    expected = new.replace(told, written).replace("d &amp; e", "D &amp; E")
    assert unpacked(made)["OPS/book.opf"].decode() == expected.replace("The book", "THE BOOK")


@pytest.mark.parametrize("name", [n for n in SAMPLES if SAMPLES[n]()[:2] == b"PK"])
def test_members_keep_their_order_and_all_that_is_said_of_them(name: str) -> None:
    """Names, dates, how they are packed, extra fields, comments; and the bytes of the others."""
    data = SAMPLES[name]()
    made, *_ = translated(data, name)
    before, after = infos(data), infos(made)
    assert list(before) == list(after)
    for member, info in before.items():
        for fact in ("date_time", "compress_type", "extra", "comment", "external_attr"):
            assert getattr(after[member], fact) == getattr(info, fact)
    same = [m for m in before if after[m].CRC == before[m].CRC]
    assert same
    for member in same:
        start = before[member].header_offset
        record = data[start : start + 30 + len(member) + before[member].compress_size]
        assert made[after[member].header_offset :].startswith(record)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.comment == zipfile.ZipFile(io.BytesIO(data)).comment


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_an_archive_of_a_stream_is_read(method: int) -> None:
    """Whose sizes follow its members, behind other bytes, with names beyond ASCII and ZIP64."""

    class Stream(io.BytesIO):
        def tell(self) -> int:
            raise OSError

    stream = Stream()
    stream.write(b"#!/bin/sh\n")
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, content in (("ä.txt", "one"), ("b.txt", "two" * 100), ("c.txt", "three")):
            with file.open(name, "w", force_zip64=name == "b.txt") as member:
                member.write(content.encode())
    for data in (stream.getvalue(), stream.getvalue()[10:]):
        made = Archive.open(data, "x").replaced({"b.txt": b"other"})
        with zipfile.ZipFile(io.BytesIO(made)) as file:
            flags = {info.filename: info.flag_bits & 8 for info in file.infolist()}
            assert flags == {"ä.txt": 8, "b.txt": 0, "c.txt": 8}  # whose sizes follow them
        assert unpacked(made) == {"ä.txt": b"one", "b.txt": b"other", "c.txt": b"three"}


@pytest.mark.parametrize("method", [0, 8])
def test_members_are_packed_as_the_directory_says(method: int) -> None:
    """Readers go by that, whatever the records of the members say."""
    data = epub()
    start = infos(data)["OPS/text/one a.xhtml"].header_offset + 8
    data = data[:start] + struct.pack("<H", method) + data[start + 2 :]
    assert unpacked(translated(data, "a.epub")[0])


def duplicate() -> bytes:
    """Two members of one name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a", "x")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a", "y")
    return buffer.getvalue()


def changed(data: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """The archive with other bytes in the first record of a kind."""
    place = data.index(signature) + offset
    return data[:place] + value + data[place + len(value) :]


def far() -> bytes:
    """A member that begins at byte 2**63, as an extra field of 64 bits says."""
    buffer, info = io.BytesIO(), zipfile.ZipInfo("a")
    info.extra = struct.pack("<HHQ", 1, 8, 2**63)
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(info, "x")
    return changed(buffer.getvalue(), b"PK\1\2", 42, b"\xff" * 4)


ONE = packed({"a": "x" * 99})
RIGHTS = '<e><CipherReference URI="OPS/text/one%20a.xhtml"/></e>'
ENTITY = "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"
NOT_READ = zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA
NO_METHOD = r"META-INF/container\.xml is packed as no document is"
"""One whose memory a file chooses: the dictionary of LZMA has up to 4 GiB."""
PASSWORD = {"content.xml": "<a/>", "META-INF/manifest.xml": "<m:encryption-data/>"}
REFUSED = [
    (duplicate(), "a.docx", "two members of one name"),
    (changed(ONE, b"PK\1\2", 8, b"\1"), "a.docx", "is encrypted; save it without a password"),
    (packed({"a/../../b": ""}), "a.docx", "leads out of it"),
    (changed(ONE, b"PK\1\2", 20, struct.pack("<L", 1000)), "a.docx", "is damaged, or larger"),
    (changed(ONE, b"PK\1\2", 42, struct.pack("<L", 9999)), "a.docx", "is damaged"),
    (changed(ONE, b"PK\1\2", 32, b"\7"), "a.docx", "is damaged, or larger"),
    (far(), "a.docx", "is damaged, or no document"),
    (ONE[:-30], "a.docx", "is damaged, or no document"),
    (b"\xd0\xcf\x11\xe0 old", "a.xlsx", "has a password or is of an old format"),
    (packed({"x": "y"}), "a.docx", r"\[Content_Types\].xml is missing"),
    (packed({"x": "y"}), "a.odt", "is not an OpenDocument file: it has no content.xml"),
    (docx_of(BODY[:-9]), "a.docx", "document.xml is not well-formed"),
    (docx_of(ENTITY), "a.docx", "declares entities"),
    (docx_of("<a>" * 500), "a.docx", "more than 200 elements"),
    (docx_of(BODY.replace("UTF-8", "").encode("utf-32-le")), "a.docx", "not in the encoding"),
    (packed(PASSWORD), "a.odt", "is encrypted"),
    (replaced(epub(), {"META-INF/encryption.xml": RIGHTS}), "a.epub", "encrypted chapters"),
    (replaced(epub(), {"META-INF/container.xml": "<a/>"}), "a.epub", "names no package"),
    *((packed(unpacked(epub()), method), "a.epub", NO_METHOD) for method in NOT_READ),
]
IDS = [
    "twice", "encrypted", "outside", "longer", "place", "comment", "far", "cut", "old", "no types",
    "no content", "malformed", "entities", "deep", "encoding", "password", "chapters", "no package",
    "bzip2", "lzma",
]  # fmt: skip


@pytest.mark.parametrize(("data", "name", "sentence"), REFUSED, ids=IDS)
def test_what_cannot_be_read_is_refused(data: bytes, name: str, sentence: str) -> None:
    """Damage, passwords, entities, depth, and what no document needs: with a sentence."""
    with pytest.raises(InputError, match=sentence):
        read_document(data, name)


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many members, those that unpack to too much, alone or together, and a long name, which
    says where each text of its member is.
    """
    monkeypatch.setattr(archives, "MOST_MEMBERS", 1)
    with pytest.raises(InputError, match="has 2 members; at most 1 are read"):
        Archive.open(packed({"a": "", "b": ""}), "x")
    assert Archive.open(packed({"n" * 500: ""}), "x").members
    with pytest.raises(InputError, match="a member with a name of more than 500 characters"):
        Archive.open(packed({"n" * 501: ""}), "x")
    with pytest.raises(InputError, match="x: a is larger, unpacked"):
        Archive.open(packed({"a": "x" * (1 << 21)}), "x").read("a")
    monkeypatch.setattr(archives, "LARGEST_TEXT", 150)
    monkeypatch.setattr(archives, "MOST_MEMBERS", 9)
    archive = Archive.open(packed({"a": "x" * 99, "b": "x" * 99}), "x")
    assert archive.read("a")["a"] == b"x" * 99
    with pytest.raises(InputError, match="x: b is larger, unpacked"):
        archive.read("a", "b")


def test_a_chapter_that_a_book_lacks_is_told() -> None:
    """The others are translated."""
    rest = {name: content for name, content in unpacked(epub()).items() if "xhtml" not in name}
    assert read_document(packed(rest), "a.epub").left == (
        "OPS/text/one a.xhtml, which is not in the book.",
    )


def test_what_stays_of_a_book_has_its_place_and_reason() -> None:
    """Texts, and elements that are left alone, are said with their chapter."""
    code = CHAPTER.replace("<h1>", "<pre>a b</pre><p translate='no'>c</p><svg/><p>d</p><h1>")
    book = replaced(epub(), {"OPS/text/one a.xhtml": code})
    report = translated(book, "a.epub", WordTranslator(lambda _: ""))[2]
    assert {each.where.rpartition(".")[0] for each in report.untranslated} == {
        *("OPS/book", "OPS/text/one a", "OPS/toc")
    }
    assert all(each.what == ("the model wrote nothing",) for each in report.untranslated)
    place = "OPS/text/one a.xhtml, line 4"
    assert report.left == (
        f"<pre>, text whose spaces and line ends count, such as code: {place}",
        f"<p>, marked as not to be translated: {place}",
        "<rt>, what is read above or beside a word: OPS/text/one a.xhtml, line 5",
    )
