"""All text is translated, or the report says that it is not."""

import re
from typing import SupportsIndex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.word_translator import WordTranslator, translated

from dragoman.documents import markdown
from dragoman.documents.formats import read_document


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.html", '<html class=a lang="<en-GB>"><p lang=en>{}'),
        ("a.html", "<HTML LANG=<en>>{}"),
        ("a.html", "<!--<html lang=en>--><html lang='<en>'>{}<html lang=en>"),
        ("a.html", "<html lang=fr data-lang=en>{}"),
        ("a.html", "<html class='lang=en' id=lang=en lang=<en-x>>{}"),
        ("a.html", '<html data-a="b lang=en > c" lang=english>{}'),
        ("a.xhtml", '<html xml:lang="<en>" lang="<en>">{}</html>'),
        ("a.arb", '{{"@@locale": "<en_US>", "a": "{}"}}'),
        ("a.arb", '{{"@@locale": "sv", "a": "{}"}}'),
    ],
)
def test_a_document_names_the_language_that_it_is_in(name: str, source: str) -> None:
    """If it named the other, here as <en>, a text of it changes, and the languages are known."""
    named = re.compile("<(en[-_A-Za-z]*)>")
    before = named.sub(r"\1", source)
    after = named.sub("pt_BR" if name == "a.arb" else "pt-BR", source)

    def made(text: str, into: str | None) -> str:
        return translated(before.format(text), name, languages=("eng_Latn", into))[0]

    assert made("two", "pt_BR") == after.format("TWO")
    assert made("TWO", "pt_BR") == before.format("TWO")
    assert made("two", None) == before.format("TWO")


@pytest.mark.parametrize(
    ("into", "before", "after"),
    [
        ("ar", "<html>", '<html dir="rtl">'),
        ("he", "<HTML lang=en>", '<HTML dir="rtl" lang=he>'),
        ("fa", '<html dir="ltr" lang="en">', '<html dir="rtl" lang="fa">'),
        ("ur", "<html dir = auto>", "<html dir = auto>"),
        ("de", "<html DIR=RTL>", "<html DIR=ltr>"),
        ("de", "<html id=dir=rtl>", "<html id=dir=rtl>"),
        ("ar", '<html lang="fr">', '<html lang="fr">'),
        ("de", "<html lang=ar dir=rtl>", "<html lang=ar dir=rtl>"),
        ("ar", '<html lang="en"dir="ltr">', '<html lang="ar"dir="rtl">'),
        ("ar", "<html-x>", "<html-x>"),
    ],
)
def test_a_page_is_read_in_the_direction_of_its_language(
    into: str, before: str, after: str
) -> None:
    """Its root says so, unless it leaves that to the text."""
    languages = ("en", into)
    assert translated(f"{before}<p dir=ltr>a b", "a.html", languages=languages)[0] == (
        f"{after}<p dir=ltr>A B"
    )
    assert translated(f"{before}A B", "a.html", languages=languages)[0] == f"{before}A B"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a: >\n  one two \n  three\n", "a: >\n  ONE TWO\n  THREE\n"),
        ("a: >-\r\n  one two\t\r\n  three \r\n", "a: >-\r\n  ONE TWO\r\n  THREE \r\n"),
        ("a: >\r  one\r  two\r", "a: >\r  ONE\r  TWO\r"),
        ("a: !!str one\nb: ! two\n", "a: !!str ONE\nb: ! TWO\n"),
        ("a: !!str yes\nb: yes\n", 'a: !!str "YES"\nb: yes\n'),
        ("a: &x # b\n  one\n", "a: &x # b\n  ONE\n"),
        ("a: &x # \"b\"\n  'one'\n", "a: &x # \"b\"\n  'ONE'\n"),
        ("a: &x\n  |\n   one\n", "a: &x\n  |\n   ONE\n"),
    ],
)
def test_all_forms_of_yaml_values(source: str, expected: str) -> None:
    """Spaces at the ends of lines, bare CR, the type of strings, comments before a value."""
    data, _, report = translated(source, "a.yaml")
    assert (data, report.left) == (expected, ())


def test_yaml_that_is_left_alone() -> None:
    """A value of another type, and one whose lines are ended by NEL."""
    source = "a: !Ref one\nb: |\n  one\x85  two\nc: 12\nd: no\n"
    data, _, report = translated(source, "a.yaml")
    assert data == source
    assert report.left == (
        "values with a type of their own: line 1, a",
        "values in an unsupported style: line 2, b",
    )


@pytest.mark.parametrize(
    "source",
    [
        "a text\n\t# c\n",
        "--- a text \n\n\t\n",
        "- one\n- a text\n \t \n- b\n",
        "k:\n  a text\n \t# c",
    ],
)
def test_a_tab_after_a_plain_yaml_value(source: str) -> None:
    """Behind quotes, which the translation needs, the parser takes none in a line without text."""
    data, *_ = translated(source, "a.yaml", WordTranslator(lambda word: f"{word}: x"))
    assert "a: x text: x" in str(yaml.load(data, yaml.CSafeLoader))
    before, after = source.split("a text")
    assert data.startswith(before.replace("one", '"one: x"') + '"a: x text: x"')
    assert data.endswith(after.replace("\t", " ").replace("b", '"b: x"'))


def test_cells_that_go_on_behind_their_quotes() -> None:
    """They are read in several ways."""
    data, _, report = translated('a\n"b c"\n"d" e\n', "a.csv")
    assert data == 'a\n"B C"\n"d" e\n'
    assert report.left[1] == "cells with text after the closing quote: row 3, a"


def test_html_that_is_left_alone() -> None:
    """With its lines, the first twenty of them; what has no text is not said."""
    source = "<p>a<pre>b</pre>\n<pre>c</pre><svg><g/></svg><style>d</style><textarea>e</textarea>\n"
    data, _, report = translated(
        source + "<pre>f</pre>\n" * 23 + "<script>f</script>\n\ng", "a.html"
    )
    where = "; ".join(f"line {n}" for n in range(1, 21))
    assert report.left == (
        f"<pre>, text whose spaces and line ends count, such as code: {where}; 5 more",
        "<textarea>, a page or a text of its own: line 2",
    )
    assert data.endswith("G")


def test_the_line_of_a_text_in_html() -> None:
    """Where its first word is."""
    document = read_document(b"<p>\n\n one\n<p>two", "a.html")
    assert [each.where for each in document.segments] == ["line 3", "line 4"]


BLOCKS = [
    *("", "w{0}", "> w{0}", 'w{0} <b title="w{1}">a</b>', "w{0} [b](u 'w{1}')"),
    "[c{0}]: u 'w{1}'",
]


@given(blocks=st.lists(st.sampled_from(BLOCKS), max_size=30), end=st.sampled_from(["\n", "\r\n"]))
def test_the_line_of_a_text_in_markdown(blocks: list[str], end: str) -> None:
    """Where its first word is, in whatever order paragraphs, titles and definitions are read."""
    source = end.join(block.format(f"{n}a", f"{n}b") for n, block in enumerate(blocks))
    for segment in read_document(source.encode(), "a.md").segments:
        [line] = re.findall(r"^line (\d+)", segment.where)
        before = source[: source.index(segment.source.text.split()[0])]
        assert int(line) == before.count("\n") + 1


@pytest.mark.parametrize("line", ["[a]: u 't'\n", "a [b](u 't')\n", "a <b title='t'>c</b>\n"])
def test_lines_are_numbered_in_linear_time(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """No line end is counted again for each title."""

    class Text(str):
        """A string that counts the characters searched for a sign."""

        __slots__ = ()
        searched = 0

        def count(
            self, sign: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /
        ) -> int:
            Text.searched += len(self[start:end])
            return str.count(self, sign, start, end)

    data = line.encode() * 1000
    monkeypatch.setattr(markdown, "decoded", lambda *_: (Text(data.decode()), str.encode))
    assert len([*markdown.read(data, "a.md").parts[-1].segments]) == 1000
    assert Text.searched <= 2 * len(data)
