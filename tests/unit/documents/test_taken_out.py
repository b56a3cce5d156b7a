"""What is taken out of a sentence, so that the model does not read it."""

import re

import pytest
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


@pytest.mark.parametrize(
    "source",
    [
        "word<sup>{}</sup> on", "war<sup><a href='#n'>{}</a></sup>.",
        "war<a href=n><sup>{}</sup></a>",
        "as<a epub:type='noteref' href=n>{}</a>, on", "end.<sup>{}</sup> On",
        'he said "so."<sup>{}</sup>',
        "词语。<sup>{}</sup>", "in 2019<b><a>[{}]</a></b> on", "x<i>*</i>",
    ],
)  # fmt: skip
def test_numbers_of_notes_are_not_in_the_sentence(source: str) -> None:
    """Raised ones, those in brackets and signs, right behind a word or what ends one."""
    page = f"<p>a b {source.format(12)}</p>"
    data, lines, report = translated(page, "a.html")
    assert lines == [re.sub(r"<.*>", "", f"a b {source}")]
    assert (data.lower(), report.flagged) == (page.lower(), ())


@pytest.mark.parametrize(
    "source",
    [
        "CO<sub>2</sub> of", "50 m<sup>2</sup> of", "9 km<sup>2</sup> of", "cos<sup>2</sup> of",
        "in 2<sup>10</sup> of",
        "word <sup>1</sup> of", "word<sub>1</sub> of", "a 20<b>19</b>.",
        "Pages <b>10</b>,<b>20</b>", "word,<b>20</b>", "word<a href=x>7</a>",
        'Press "<b>1</b>" to', 'Press "<sup>1</sup>" to', 'Press "<b>[1]</b>" to',
        "总计<b>25</b>。", "您有<b>3</b> 条消息", "word<sup>1</sup>st",
        "word<sup><a href=x>1</a></sup>2 of", "law <b>§</b> 5", "law<b>§</b> 5",
        "word<sup><code>1</code></sup> of",
    ],
)  # fmt: skip
def test_other_numbers_are_read(source: str) -> None:
    """Of an amount, a unit, a formula, a year, a list, or a key to press."""
    assert translated(f"<p>a b {source}</p>", "a.html")[1] == [re.sub("<.*?>", "", f"a b {source}")]


def test_numbers_in_elements_of_xliff_are_read() -> None:
    """What an element of it is cannot be seen from its tag."""
    unit = '<trans-unit id="1"><source>CO<g id="1">2</g> of</source></trans-unit>'
    text = f'<xliff version="1.2"><file source-language="en"><body>{unit}</body></file></xliff>'
    assert translated(text, "a.xlf")[1] == ["CO2 of"]


def test_attributes_and_names_of_emoji_are_not_in_the_sentence() -> None:
    """They are tags, which stay at the word before."""
    data, lines, _ = translated("a [b](c){.d} :e-f: g :h:i\n", "a.md")
    assert (data, lines) == ("A [B](c){.d} :e-f: G :H:I\n", ["a b g :h:i"])


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
