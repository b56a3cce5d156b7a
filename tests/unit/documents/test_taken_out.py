"""What is taken out of a sentence, so that the model does not read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.word_translator import WordTranslator

from dragoman.documents.formats import read_document
from dragoman.documents.translate import DocumentReport, translate_document


def translated(
    source: str, name: str, translator: WordTranslator | None = None
) -> tuple[str, list[str], DocumentReport]:
    """A document in capitals, the texts that the model was given, and the report."""
    translator = translator or WordTranslator(str.upper)
    data, report = translate_document(read_document(source.encode(), name), translator)
    return data.decode(), translator.lines, report


def test_numbers_of_notes_are_not_in_the_sentence() -> None:
    """Right behind a word or a sign; other numbers, and those inside a word, are."""
    source = (
        "<p>a <b>b</b><sup><a href=c>[1]</a></sup> d.<a>2</a> e</p>"
        "<p>see <a>3</a>, (<a>4</a>) in <i>2016</i></p>"
    )
    data, lines, report = translated(source, "a.html")
    assert lines == ["a b d. e", "see 3, (4) in 2016"]
    assert translated("<p>a H<sub>2</sub>O x", "b.html")[1] == ["a H2O x"]
    assert (data.lower(), report.flagged) == (source.lower(), ())


def test_attributes_and_names_of_emoji_are_not_in_the_sentence() -> None:
    """They are tags, which stay at the word before."""
    data, lines, _ = translated("a [b](c){.d} :e-f: g :h:i\n", "a.md")
    assert (data, lines) == ("A [B](c){.d} :e-f: G :H:I\n", ["a b g :h:i"])


NAMES = st.from_regex(r"[a-z][a-z0-9]*[_+-]?[a-z0-9]|[+-]1|100", fullmatch=True)


@given(name=NAMES, letter=st.characters(categories=["L", "Nd"]))
def test_the_name_of_an_emoji_touches_no_letter(name: str, letter: str) -> None:
    """Of any script: between letters, it is a word between two colons; so is a single letter."""
    assert translated(f"a :{name}: (:{name}:) b", "a.md")[1] == ["a () b"]
    for text in (f"a {letter}:{name}: b", f"a :{name}:{letter} b", f"a :{name[0]}: b"):
        [line] = translated(text, "a.md")[1]
        assert line == text


def test_dashes_of_speakers_stay_behind_tags() -> None:
    """Of italics, of a colour, of a place on the screen."""
    source = "00:00:01,000 --> 00:00:02,000\n{\\an8}<i>- Who?</i>\n<i>- Me <b>too</b></i>\n"
    data, lines, _ = translated(source, "a.srt", WordTranslator(lambda word: word * (word != "-")))
    assert (data, lines) == (source, ["Who?", "Me too"])


@pytest.mark.parametrize(
    ("name", "before", "after", "end"),
    [
        ("a.json", '{"a": "', '"}', r"\""),
        ("a.yaml", 'a: "', '"\n', r"\""),
        ("a.yaml", "a: >\n  ", "\n", '"'),
        ("a.csv", 'a\n"', '"\n', '""'),
        ("a.po", 'msgid "', '"\n', r"\""),
    ],
)
def test_elements_of_html_in_strings(name: str, before: str, after: str, end: str) -> None:
    """They are tags, which go with their words; what has no partner, or is code, is copied."""
    source = f"One <b id={end}x{end}>two</b><br/>go <1>on</1> <code>ls</code>: &lt; <name> <i>"
    text = f"{before}{source}{after}" + 'msgstr ""\n' * (name == "a.po")
    made, lines, _ = translated(text, name)
    assert lines == ["One two go on ls: &lt; <name> <i>"]
    for word in ("One", "two", "go", ">on<", "&lt;", "<name>", "<i>"):
        source = source.replace(word, word.upper())
    assert source in made
