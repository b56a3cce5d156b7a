"""What is written otherwise than it should be, and what is left alone."""

from time import perf_counter

import pytest
from tests.word_translator import WordTranslator

from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError


def capitals(source: str | bytes, name: str) -> str | bytes:
    """A document in capitals, of the same type."""
    data = source.encode() if isinstance(source, str) else source
    made, _ = translate_document(read_document(data, name), WordTranslator(str.upper))
    return made.decode() if isinstance(source, str) else made


def remarks(source: str, name: str) -> tuple[str, ...]:
    """What the reader says that it leaves alone."""
    return read_document(source.encode(), name).left


@pytest.mark.parametrize("name", ["a.html", "a.xhtml"])
@pytest.mark.parametrize("piece", ["<!DOCTYPE[>", "<!DOCTYPE a[", "<!DOCTYPE a[]", "<![CDATA["])
def test_declarations_are_read_in_linear_time(piece: str, name: str) -> None:
    """Those that do not end; if each were read to the end of the file, it would take minutes."""
    start = perf_counter()
    read_document(piece.encode() * 100_000, name)
    assert perf_counter() - start < 5


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<ul><li class=notranslate>a b<li>c</ul>d", "<ul><li class=notranslate>a b<li>C</ul>D"),
        ("<ul><li translate=no>a b</ul><p>c", "<ul><li translate=no>a b</ul><p>C"),
        (
            "<li translate=no>a<ul><li>b<li>c</ul><li>d",
            "<li translate=no>a<ul><li>b<li>c</ul><li>D",
        ),
        ("<tr><td translate=no>a<td>b<tr><td>c", "<tr><td translate=no>a<td>B<tr><td>C"),
        ("<tr translate=no><th>a<td>b<tr><td>c", "<tr translate=no><th>a<td>b<tr><td>C"),
        ("<div><p translate=no>a <b>b</div>c", "<div><p translate=no>a <b>b</div>C"),
        ("<p translate=no>a <x-y>b</x-y> c<h1>d", "<p translate=no>a <x-y>b</x-y> c<h1>D"),
        ("<dt translate=no>a<dd>b<dt>c", "<dt translate=no>a<dd>B<dt>C"),
        (
            "<select><option translate=no>a<option>b</select>",
            "<select><option translate=no>a<option>B</select>",
        ),
        ("<p data-x='a translate=no b'>a b</p>", "<p data-x='a translate=no b'>A B</p>"),
        ("<p class='x-notranslate-y'>a b</p>", "<p class='x-notranslate-y'>A B</p>"),
        ("<p class='x NOTRANSLATE y'>a b</p>", "<p class='x NOTRANSLATE y'>a b</p>"),
        ("<p translate = 'No' id=a>a b</p>", "<p translate = 'No' id=a>a b</p>"),
    ],
)
def test_what_is_not_to_be_translated_ends(source: str, expected: str) -> None:
    """At the next of its kind, or at the end of what is around it, if it has no close tag."""
    assert capitals(source, "a.html") == expected


def test_many_elements_without_close_tags_are_left() -> None:
    """One after another."""
    source = "<li translate=no>a b" * 5000
    assert capitals(source, "a.html") == source


def test_xhtml_is_read_as_xml() -> None:
    """In the encoding of its declaration, with sections and elements that close themselves."""
    source = '<?xml version="1.0" encoding="iso-8859-1"?><p><a id="x"/>é <![CDATA[<b>c d]]> e</p>'
    expected = source.replace("é", "É").replace(" e<", " E<")
    assert capitals(source.encode("latin-1"), "a.xhtml") == expected.encode("latin-1")
    with pytest.raises(InputError, match="is not in the encoding that it declares"):
        capitals("<p>é</p>".encode("latin-1"), "a.xhtml")


@pytest.mark.parametrize(
    ("source", "name"),
    [("a,b\ncafé,ça va\n", "a.csv"), ('{"a": "ça va"}', "a.json"), ("<p>ça va</p>", "a.html")],
)
def test_undeclared_windows_1252(source: str, name: str) -> None:
    """What is not UTF-8 is written in one encoding too, or refused."""
    made = capitals(source.encode("cp1252"), name)
    assert isinstance(made, bytes)
    assert "ÇA VA" in made.decode("cp1252").upper()
    assert made.decode("cp1252") == capitals(source, name)
    with pytest.raises(InputError, match=rf"{name} is neither UTF-8 nor Windows-1252; save it as"):
        capitals(source.encode("cp1252") + b"\x81", name)


def test_letters_that_windows_1252_lacks() -> None:
    """They are references in HTML; other files cannot have them."""
    chinese = WordTranslator(lambda _: "茶")
    page = read_document("<p>thé</p>".encode("cp1252"), "a.html")
    assert translate_document(page, chinese)[0] == b"<p>&#33590;</p>"
    with pytest.raises(InputError, match="which lacks letters of the translation; save it as UTF"):
        translate_document(read_document("a\nthé\n".encode("cp1252"), "a.csv"), chinese)


def test_damaged_utf8_stays_utf8() -> None:
    """If most of what is not ASCII is right."""
    source = "a\nça va\nüb\n".encode()
    assert capitals(source + b"x \xe9\n", "a.csv") == "a\nÇA VA\nÜB\n".encode() + b"x \xe9\n"
