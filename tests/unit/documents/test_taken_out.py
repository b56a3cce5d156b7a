"""Content that is removed from a sentence, so that the model does not read it."""

import csv
import io
import json
import re

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from tests.archives import packed
from tests.unit.documents.test_office import xlsx_of
from tests.unit.documents.test_runs import document_of, run
from tests.unit.documents.test_runs import in_capitals as docx_in_capitals
from tests.word_translator import WordTranslator, translated

from dragoman.documents import fragments


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
    "mark", ["①", "⑳", "㉑", "❶", "[1]", "［１］", "〔1〕", "*", "†", "‡", "¶"]
)
@pytest.mark.parametrize("source", [
    "买了书<a href='#n'><sup>{}</sup></a>。", "买了书。<a href='#n'>{}</a>",
    "word<sup>{}</sup> on", "word<a href='#n'>{}</a>, on",
])  # fmt: skip
def test_marks_of_notes_are_not_in_the_sentence(source: str, mark: str) -> None:
    """Raised or in a link; before letters of a script without spaces too."""
    page = f"<p>a b {source.format(mark)}</p>"
    data, lines, report = translated(page, "a.html")
    assert lines == [re.sub(r"<.*>", "", f"a b {source}")]
    assert (data.lower(), report.flagged) == (page.lower(), ())
    for note in (f"<sup>{mark}</sup>", f"<a href=n>{mark}</a>"):
        assert translated(f"<p>a b 买了书{note}的人</p>", "a.html")[1] == ["a b 买了书的人"]


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
        "word<sup><code>1</code></sup> of", "如图<b>①</b>所示", "请按<b>[1]</b>键",
        "平方<sup>2</sup>的",
        "Figure<b>❶</b> of", "word<sup>①</sup>st",
        "word<sup>1<i>, 2</i></sup> of", "word<b><i></i></b> of", "word<b></b>",
    ],
)  # fmt: skip
def test_other_numbers_are_read(source: str) -> None:
    """Of an amount, a unit, a formula, a year, a list, or a key to press."""
    assert translated(f"<p>a b {source}</p>", "a.html")[1] == [re.sub("<.*?>", "", f"a b {source}")]


RAISED = {
    "docx": '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>',
    "pptx": '<w:rPr baseline="30000"/>',
    "xlsx": '<w:rPr><w:b/><w:vertAlign val="superscript"/></w:rPr>',
}
LOW = '<w:rPr><w:vertAlign w:val="subscript"/></w:rPr>', '<w:rPr baseline="-25000"/>'


def raised(properties: str, text: str) -> str:
    """A run with properties."""
    return run(text).replace("<w:r>", f"<w:r>{properties}")


@pytest.mark.parametrize("properties", RAISED.values(), ids=RAISED)
@pytest.mark.parametrize("mark", ["1", "[1]", "*", "†", "①"])
@pytest.mark.parametrize(
    "around",
    ["{}", "<w:hyperlink>{}</w:hyperlink>", "<w:ins><w:hyperlink>{}</w:hyperlink></w:ins>"],
)
def test_raised_runs_are_marks_of_notes(properties: str, mark: str, around: str) -> None:
    """As `<sup>` is, also in a link; the run comes back whole, behind its word."""
    source = run("a word") + around.format(raised(properties, mark)) + run(" and on.")
    _, lines, report = translated(document_of(source), "a.docx")
    assert (lines[0], report.flagged) == ("a word and on.", ())
    expected = re.sub("(?<=>)[a-z. ]+(?=<)", lambda text: text[0].upper(), source)
    assert docx_in_capitals(source) == expected
    short = document_of(run("Wool") + raised(properties, "[12]"))
    assert translated(short, "a.docx")[1][0] == "Wool"


@pytest.mark.parametrize("properties", [*LOW, *RAISED.values()])
@pytest.mark.parametrize("word", ["CO", "9 km", "cos", "in 2"])
def test_other_raised_or_lowered_runs_are_read(properties: str, word: str) -> None:
    """Of a unit or a formula."""
    document = document_of(run(word) + raised(properties, "2") + run(" of"))
    assert translated(document, "a.docx")[1][0] == f"{word}2 of"


def test_a_raised_part_of_a_cell_is_the_mark_of_a_note() -> None:
    """As a run of a paragraph is."""
    cell = CellRichText("a word", TextBlock(InlineFont(vertAlign="superscript"), "1"), " and on")
    data, lines, _ = translated(xlsx_of([cell]), "a.xlsx")
    made = openpyxl.load_workbook(io.BytesIO(data), rich_text=True).active["A1"].value
    assert (lines, [*map(str, made)]) == (["a word and on"], ["A WORD", "1", " AND ON"])


def style(name: str, position: str) -> str:
    """A style of ODF."""
    properties = f'<style:text-properties style:text-position="{position}"/>'
    return f'<style:style style:family="text" style:name="{name}">{properties}</style:style>'


ROOT = (
    '<office:document xmlns:office="o" xmlns:text="t" xmlns:style="s" xmlns:xlink="x">{}'
    "</office:document>"
)
COMMON = f"<office:styles>{style('Up', 'super 58%')}</office:styles>"
OWN = style("T1", "33% 58%") + style("T2", "sub 58%") + '<style:style style:name="T3"/>'
HEADERS = style("T3", "super 58%")
"""A style that has the name of another one of the text."""


@pytest.mark.parametrize(
    ("name", "is_note"), [("Up", True), ("T1", True), ("T2", False), ("T3", False)]
)
@pytest.mark.parametrize("around", ["{}", '<text:a xlink:href="n">{}</text:a>'])
def test_raised_spans_of_odf_are_marks_of_notes(name: str, around: str, *, is_note: bool) -> None:
    """By their style, which may be one of another member; other spans are read."""
    span = around.format(f'<text:span text:style-name="{name}">1</text:span>')
    text = f"<text:p>a word{span} and on.</text:p>"
    archive = packed(
        {
            "content.xml": ROOT.format(OWN + text),
            "styles.xml": ROOT.format(COMMON + HEADERS),
            "META-INF/manifest.xml": "<m/>",
        }
    )
    flat = ROOT.format(COMMON + OWN + text)
    expected = ["a word and on."] if is_note else ["a word1 and on."]
    data, lines, _ = translated(flat, "a.fodt")
    assert translated(archive, "a.odt")[1] == lines == expected
    assert (f"A WORD{span} AND ON." in data) or not is_note


def test_numbers_in_elements_of_xliff_are_read() -> None:
    """What an element of it is cannot be seen from its tag."""
    text = '<file><trans-unit><source>CO<g id="1">2</g> of</source></trans-unit></file>'
    assert translated(text, "a.xlf")[1] == ["CO2 of"]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("A <ruby>Dog<rp>(</rp><rt>dawg</rt><rp>)</rp></ruby> Is", ["A Dog Is"]),
        ("A <ruby>Dog<rp>(<rt>dawg<rp>)</ruby> Is", ["A Dog Is"]),
        ("A <ruby>Dog<rt>d<b>aw</b>g<rt>dog</ruby>", ["A Dog"]),
        ("<ruby><rb>My</rb> <rb>Dog<rtc>me<rt>dawg</rtc></ruby> Is", ["My Dog Is"]),
        ("A <ruby>Dog<rtc>dawg</ruby> Is", ["A Dog Is"]),
        ("A <ruby>Dog<rt>dawg</p>And<p>It <rt>is<p>So", ["A Dog", "And", "It", "So"]),
    ],
)
def test_phonetic_guides_are_not_in_the_sentence(source: str, lines: list[str]) -> None:
    """They stay at the words below them, and end where those do if they have no close tag."""
    made, read, report = translated(f"<p>{source}</p>", "a.html", WordTranslator(str.lower))
    assert read == lines
    assert made == f"<p>{source}</p>".lower()
    assert any(line.startswith(("<rt>,", "<rtc>,")) for line in report.left)


NAMES = st.from_regex(r"[a-z][a-z0-9]*[_+-]?[a-z0-9]|[+-]1|100", fullmatch=True)


@given(name=NAMES, letter=st.characters(categories=["L", "Nd"]))
def test_the_name_of_an_emoji_touches_no_letter(name: str, letter: str) -> None:
    """Of any script: between letters, it is a word between two colons; so is a single letter."""
    texts = [f"a {letter}:{name}: b", f"a :{name}:{letter} b", f"a :{name[0]}: b"]
    source = "\n\n".join([f"a :{name}: (:{name}:) b", *texts])
    assert translated(source, "a.md")[1] == ["a () b", *texts]


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


PAGE = (
    '<h2>One</h2><p class="a">Two <b>is</b> & it</p>\nthree 😀\nthen<!-- no -->'
    '<ul><li>Four<li>"five"'
    "</ul><script>a('no')</script><p translate='no'>no</p><pre>no</pre>"
)
BLOCKS = ["One", "Two is & it", "three 😀", "then", "Four", '"five"']


def in_capitals(page: str) -> str:
    """A page with its words, all of which are in `BLOCKS`, in capitals."""
    for word in re.findall(r"\w+", " ".join(BLOCKS)):
        page = re.sub(rf"(?<![\w</])\b{word}\b", word.upper(), page)
    return page.replace("& IT", "&amp; IT")


@pytest.mark.parametrize(
    "escapes", [{}, {"<": r"\u003c"}, {"/": r"\/"}, {">": r"\u003E", "/": r"\u002f"}]
)
def test_blocks_in_strings_of_json_are_read_one_by_one(escapes: dict[str, str]) -> None:
    """As those of a page, however the string is written; all else in it stays."""
    source = json.dumps({"a": PAGE}, ensure_ascii=bool(escapes))
    for sign, escape in escapes.items():
        source = source.replace(sign, escape)
    made, lines, report = translated(source, "a.json")
    assert (lines, json.loads(made)) == (BLOCKS, {"a": in_capitals(PAGE)})
    assert [left.split(",")[0] for left in report.left] == ["<p>", "<pre>"]


def test_blocks_in_cells_in_quotes_are_read_one_by_one() -> None:
    """With quotes that are doubled."""
    rows = [["a", "b"], ["1", PAGE]]
    source = io.StringIO()
    csv.writer(source).writerows(rows)
    made, lines, _ = translated(source.getvalue(), "a.csv")
    assert lines == BLOCKS
    assert [*csv.reader(io.StringIO(made, newline=""))] == [rows[0], ["1", in_capitals(PAGE)]]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>Hello</p><p>World</p>", "Hello World"),
        ("<ul><li>Cotton</li><li>Machine wash</li></ul>", "Cotton Machine wash"),
        ("in<div><p>a b</p></div>on<hr>it", "in a b on it"),
        ("<b>a</b> b<i>, c</i>", "a b, c"),
        ("a <p>b</p> c", "a b c"),
        ("a<!-- no --> b<style>no</style> <b class='notranslate'>no</b>", "a b no"),
        ("<p>Hi <name></p><p>so <1>on</1></p>", "Hi <name> so on"),
        ('see <a href="x>y">it</a>', "see it"),
        ("word<sup><a href=n>1</a></sup> on", "word on"),  # a note
    ],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.yaml", "a.po"])
def test_blocks_in_other_strings_are_read_apart(name: str, page: str, text: str) -> None:
    """In a single text, as the string has a single place."""
    quoted = page.replace('"', r"\"")
    source = {
        "a.tsv": f"a\tb\n1\t{page}\n",
        "a.yaml": f'a: "{quoted}"\n',
        "a.po": f'msgid "{quoted}"\nmsgstr ""\n',
    }[name]
    made, lines, _ = translated(source, name)
    assert lines == [text]
    made = re.sub(r'\\"|""', '"', made.split("msgstr")[-1])
    assert re.findall(r"\bno\b", page) == re.findall(r"\bno\b", made)
    assert page.upper().replace(" ", "") in made.upper().replace(" ", "")


@pytest.mark.parametrize(
    "text", ["use <p> and <div>", "a <b>b</b>", "x</p> y", "Hi <p>a</p> <name>"]
)
def test_strings_that_are_no_page(text: str) -> None:
    """They have no block that begins and ends, or tags that HTML lacks."""
    assert not fragments.is_page(text)
    assert fragments.is_page("<p>a</p> <B>b</B><o:p/>")
