"""Office and OpenDocument files: all text is translated, and their own readers open the results."""

import io
import re
from collections.abc import Callable, Iterator, Sequence

import odfdo
import openpyxl
import pytest
from docx import Document as Docx
from openpyxl.cell.rich_text import CellRichText
from pptx import Presentation
from tests.archives import replaced, unpacked
from tests.office import SAMPLES, W, docx, docx_with_everything, xlsx
from tests.word_translator import WordTranslator, backwards, translated

from dragoman.documents.attributes import headers_of_sheets
from dragoman.documents.document import Asides
from dragoman.documents.formats import read_document
from dragoman.errors import InputError
from dragoman.files.xml import find_elements
from dragoman.text.marked import Marked, Tag


def sources(data: bytes, name: str) -> list[str]:
    """The texts of a document."""
    return [segment.source.text for segment in read_document(data, name).segments]


def members(data: bytes) -> dict[str, str]:
    """What is in an archive."""
    return {name: content.decode("latin-1") for name, content in unpacked(data).items()}


def docx_of(body: str | bytes) -> bytes:
    """A document of Word with another text."""
    return replaced(docx(), {"word/document.xml": body})


def xlsx_of(row: Sequence[str | CellRichText]) -> bytes:
    """A sheet with these cells."""
    (book := openpyxl.Workbook()).active.append(row)
    book.save(buffer := io.BytesIO())
    return buffer.getvalue()


def test_a_docx_has_its_texts_in_all_parts() -> None:
    """Runs, cells, header, footer and comments; python-docx reads them."""
    data, _, report = translated(docx(), "a.docx")
    found, before = Docx(io.BytesIO(data)), Docx(io.BytesIO(docx()))
    texts = [paragraph.text for paragraph in before.paragraphs]
    assert [paragraph.text for paragraph in found.paragraphs] == [text.upper() for text in texts]
    bold = next(run for run in found.paragraphs[1].runs if run.bold)
    assert bold.text == "BOLD"
    assert [run.text for run in found.paragraphs[1].runs if run.italic] == ["ITALICS"]
    assert found.tables[0].cell(0, 0).text == "CELL & <ONE>"
    assert found.sections[0].header.paragraphs[0].text == "THE HEADER"
    assert found.sections[0].footer.paragraphs[0].text == "THE FOOTER"
    assert [comment.text for comment in found.comments] == ["A COMMENT"]
    assert found.core_properties.title == before.core_properties.title.upper()
    assert report.segments == report.translated


def test_a_docx_with_everything_forgets_nothing() -> None:
    """Boxes inside paragraphs too; what is computed, deleted or a formula stays."""
    data, *_ = translated(docx_with_everything(), "a.docx")
    places = [each.where for each in read_document(docx_with_everything(), "a.docx").segments]
    assert "word/document.xml descr of <docPr>" in places
    body = members(data)["word/document.xml"]
    texts = re.findall(r"<w:t[ >][^<]*", body.replace("&amp;", "&"))
    left = [text.rpartition(">")[2] for text in texts if re.search(">.*[a-z]", text)]
    assert left == ["seven", "friday", "no", "nine"]
    assert body.count(">IN A BOX<") == 2, "in the choice and in the fallback"
    assert ">ALONE<" in body
    assert "<w:delText>deleted</w:delText>" in body
    assert "<m:t>x</m:t>" in body
    assert "descr='A CAT &amp; \"TOM\"&#10;ASLEEP'" in body
    assert '<w:alias w:val="YOUR CHOICE"/>' in body
    assert '<w:listItem w:displayText="YES PLEASE" w:value="y"/>' in body
    found = Docx(io.BytesIO(data)).paragraphs
    assert found[0].text == "THE FIRST LINK TO BOLD & PAGE seven.\nNEXT"
    assert found[0].hyperlinks[0].text == "LINK TO BOLD"
    assert [run.text for run in found[0].hyperlinks[0].runs if run.bold] == ["BOLD"]


def test_runs_are_elements_of_the_text() -> None:
    """Equal neighbours are one, the language of a run does not part it, a field is copied."""
    first, second, *_ = read_document(docx_with_everything(), "a.docx").segments
    assert first.source.text == "The first link to bold & page seven. Next"
    assert [(tag.kind, tag.kept) for tag in first.source.tags] == [
        ("open", False), ("open", False), ("close", False), ("open", False), ("close", False),
        ("close", False), ("open", True), ("close", False), ("void", False),
    ]  # fmt: skip
    assert second.source.text == "Before inserted after control"


def test_any_order_of_tags_is_written() -> None:
    """Text and tags in another order are runs again, with the properties of their tags."""
    segment = next(iter(read_document(docx_with_everything(), "a.docx").segments))
    pieces = segment.source.pieces
    link, under, end = pieces[1], pieces[2], pieces[4]
    assert isinstance(under, Tag)
    moved = Marked((under, "a", link, "b < c", pieces[8], end, Tag("<w:br/>"), "d", Tag("\n")))
    assert segment.write(moved) == (
        '<w:r><w:rPr><w:u/></w:rPr><w:t xml:space="preserve">a</w:t></w:r><w:hyperlink r:id="rId1">'
        '<w:r><w:rPr><w:u/></w:rPr><w:t xml:space="preserve">b &lt; c</w:t></w:r></w:hyperlink>'
        '<w:r><w:br/><w:t xml:space="preserve">d\n</w:t></w:r>'
    )


def test_a_simple_field_is_copied_and_a_phonetic_guide_is_dropped() -> None:
    """As a field of several runs is; the text below a guide is text, and so is that of a link."""

    def run(text: str) -> str:
        return f"<w:r><w:t>{text}</w:t></w:r>"

    ruby = f"<w:ruby><w:rt>{run('guide')}</w:rt><w:rubyBase>{run('base')}</w:rubyBase></w:ruby>"
    paragraph = (
        f'<w:p>{run("see ")}<w:fldSimple w:instr=" PAGE ">{run("seven")}</w:fldSimple>'
        f'{run(" of ")}<w:fldSimple w:instr="HYPERLINK x">{run("link")}</w:fldSimple>'
        f"{run(' and ')}<w:r>{ruby}</w:r></w:p>"
    )
    data, texts, _ = translated(docx_of(f"<w:body {W}>{paragraph}</w:body>"), "a.docx")
    assert texts[0] == "see seven of link and base"
    body = re.findall("<w:t[ >][^<]*>([^<]+)", members(data)["word/document.xml"])
    assert body == ["SEE ", "seven", " OF ", "LINK", " AND BASE"]


def test_many_runs_take_little_memory() -> None:
    """Equal tags are one, and the elements of a few paragraphs are in memory at a time."""
    paragraph = f"<w:p>{'<w:r><w:t>a</w:t><w:br/></w:r>' * 500}</w:p>"
    body = f"<w:body {W}>{paragraph * 10}"
    first = next(find_elements(f"{body}</w:p>", {"p"}, "a part with a fault at its end"))
    assert len([*first.elements]) == 500
    data = docx_of(f"{body}</w:body>")
    assert len({id(tag) for tag in next(read_document(data, "a.docx").segments).source.tags}) == 1


def test_a_pptx_has_slides_notes_and_charts() -> None:
    """Titles, runs, cells, labels of charts and notes; no attribute that DrawingML forbids."""
    data, _, report = translated(SAMPLES["a.pptx"](), "a.pptx")
    slide = Presentation(io.BytesIO(data)).slides[0]
    texts = [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
    assert texts == ["THE TITLE", "FIRST POINT\nSECOND BOLD\vLINE"]
    assert slide.notes_slide.notes_text_frame.text == "NOTES OF THE SPEAKER"
    (chart,) = [shape.chart for shape in slide.shapes if shape.has_chart]
    assert chart.chart_title.text_frame.text == "CHART TITLE"
    assert list(chart.plots[0].categories) == ["EAST", "WEST"]
    assert "xml:space" not in members(data)["ppt/slides/slide1.xml"]
    assert 'descr="THE WORDS OF THE TITLE"' in members(data)["ppt/slides/slide1.xml"]
    layout = members(data)["ppt/slideLayouts/slideLayout2.xml"]
    assert "ON EVERY SLIDE" in layout
    assert "Click to edit" in layout, "which is shown to who makes a slide"
    assert any("Embedded files" in line for line in report.left)


def test_an_xlsx_keeps_what_formulas_need() -> None:
    """Headers of tables, formulas and numbers stay; other cells and comments are translated."""
    data, _, report = translated(xlsx(), "a.xlsx")
    sheet = openpyxl.load_workbook(io.BytesIO(data), rich_text=True).active
    assert sheet is not None
    values = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert values[:4] == [
        ["Name", "Value"], ["LINE ONE\nLINE TWO", 3], [None, "=SUM(B2:B2)"], ["FREE & TEXT", None],
    ]  # fmt: skip
    assert str(values[4][0]) == "THIS IS VERY RICH"
    assert values[5][0] == "- AN ITEM\n- ANOTHER\n\nAND MORE"
    assert sheet["A4"].comment is not None
    assert sheet["A4"].comment.text == "LOOK HERE"
    assert any("headers of tables" in line for line in report.left)
    assert sheet.oddHeader.left.text == "PAGE &P OF &N"
    assert sheet.oddHeader.center.text == "&BA && B"
    assert sheet.oddFooter.center.text == "&D"
    (validation,) = sheet.data_validations.dataValidation
    assert (validation.prompt, validation.promptTitle) == ("TAKE ONE", "DO IT")
    assert validation.formula1 == '"Yes,No"', "with which formulas compare cells"


def test_line_breaks_that_excel_escapes_are_breaks() -> None:
    """Those of old systems in cells; and in the names of a table's columns, which stay."""
    (book := openpyxl.Workbook()).active.append(["Unit\nprice", "one_x000D_\ntwo"])
    book.active.append(["see a_x005F_x000D_b", "three_x000D_four\n_x000d__x000A_five"])
    book.active.add_table(openpyxl.worksheet.table.Table(displayName="T", ref="A1:A2"))
    book.save(buffer := io.BytesIO())
    assert b'name="Unit_x000a_price"' in unpacked(buffer.getvalue())["xl/tables/table1.xml"]
    data, lines, _ = translated(buffer.getvalue(), "a.xlsx")
    assert lines == ["one two", "see a_x005F_x000D_b", "three four", "five"]
    assert "<t>Unit\nprice</t>" in (sheet := members(data)["xl/worksheets/sheet1.xml"])
    assert "ONE\nTWO<" in sheet
    assert "THREE\nFOUR\n\nFIVE<" in sheet


def test_a_header_that_would_be_too_long_stays() -> None:
    """Excel would find the file damaged: what is free of 255 characters is divided."""
    text, asides = f"<oddHeader>&amp;L{'a b ' * 50}&amp;Rtwo</oddHeader>", Asides("", "a.xlsx")
    headers_of_sheets(text, asides, "")
    left, right = asides.part.segments
    for each in (left, right):
        longest = len(each.source.text) + 16
        assert each.fault("", each.source, Marked(("x" * longest,))) == ""
        assert each.fault("", each.source, Marked(("x" * (longest + 1),)))
    assert (
        right.fault("", right.source, Marked(("y" * 40,)))
        == "Excel takes at most 19 characters there"
    )
    assert left.write(Marked((Tag("&amp;12"), "3 & 4"))) == "&amp;12 3 &amp;&amp; 4"


def test_a_cell_that_would_be_too_long_stays() -> None:
    """Excel would find the file damaged; the report says why the text is not translated."""
    longer = WordTranslator(lambda word: word + "er")
    data, _, report = translated(xlsx_of(["short", "long " * 6_000]), "a.xlsx", longer)
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    assert [cell.value for cell in sheet[1]] == ["shorter", "long " * 6_000]
    assert [each.what for each in report.untranslated] == [
        ("a cell has at most 32,767 characters",)
    ]
    assert report.translated == 1


@pytest.mark.parametrize(("order", "expected"), [(list, "ONE THREE"), (backwards, "THREE ONE")])
def test_a_cell_in_the_properties_of_a_run_stays(
    order: Callable[[list[int]], list[int]], expected: str
) -> None:
    """These are written as often as there are texts with them: the cell is no part by itself."""
    sheet, inner = "xl/worksheets/sheet1.xml", "<rPr><b/><c><is><t>two</t></is></c></rPr>"
    cell = f"<is><r><t>one </t></r><r>{inner}<t>three</t></r></is>"
    content = members(xlsx())[sheet].replace("<is><t>Value</t></is>", cell)
    translator = WordTranslator(str.upper, order)
    data, _, report = translated(replaced(xlsx(), {sheet: content}), "a.xlsx", translator)
    assert sources(data, "a.xlsx")[0] == expected
    assert inner in members(data)[sheet]
    assert report.left[-1] == "Texts in the properties of others."


def test_a_cell_of_several_texts_is_as_long_as_one_may_be() -> None:
    """What is free is divided; texts that the cell has room for are written."""
    data = xlsx_of(["- a b\n- " + "c d " * 4_000])
    first, second = read_document(data, "a.xlsx").segments
    assert (first.source.text, second.source.text[:6]) == ("- a b", "- c d ")
    for each in (first, second):
        longest = 2 * len(each.source.text)
        assert each.fault("", each.source, Marked(("x" * longest,))) == ""
        assert "at most 32,767" in each.fault("", each.source, Marked(("x" * (longest + 999),)))


def test_sheets_of_numbers_are_not_counted_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A book of many of them is read; one with more text than the bound is refused."""
    book = openpyxl.Workbook()
    for number in range(3):
        book.create_sheet(f"s{number}").append([number] * 100)
    book.active.append(["a text"])
    buffer = io.BytesIO()
    book.save(buffer)
    most = max(len(each) for name, each in members(buffer.getvalue()).items() if "/s" in name)
    monkeypatch.setattr("dragoman.documents.archive.LARGEST_TEXT", most)
    assert sources(buffer.getvalue(), "a.xlsx") == ["a text"]
    monkeypatch.setattr("dragoman.documents.archive.LARGEST_TEXT", most - 1)
    with pytest.raises(InputError, match="is larger, unpacked, than a document's text is"):
        read_document(buffer.getvalue(), "a.xlsx")


def _texts(data: bytes) -> Iterator[str]:
    for element in odfdo.Document(io.BytesIO(data)).body.get_elements("//text:p|//text:h"):
        yield element.inner_text


@pytest.mark.parametrize("name", ["a.odt", "a.ods", "a.odp"])
def test_opendocument_forgets_nothing(name: str) -> None:
    """odfdo reads the same paragraphs in capitals; numbers and pages stay."""
    before = SAMPLES[name]()
    data, *_ = translated(before, name)
    assert [*_texts(data)] == [text.upper() for text in _texts(before)]
    assert members(data)["mimetype"] == members(before)["mimetype"]


def test_footnotes_stay_where_they_were_cited() -> None:
    """A note in the middle is a part of its own; its paragraph is one text."""
    data, texts, _ = translated(SAMPLES["a.odt"](), "a.odt", WordTranslator(str.upper, backwards))
    assert texts == [
        "The heading", "Hello bold words and a footnote here it is",
        "Text of the note", "An annotation", "two  spaces", "and tab new line",
    ]  # fmt: skip
    content = members(data)["content.xml"]
    assert re.search(r"FOOTNOTE<text:note .*NOTE THE OF TEXT.*</text:note>", content)
    assert '<text:span text:style-name="T1">WORDS BOLD</text:span>' in content


FLAT = '<office:document xmlns:office="o" xmlns:text="t" xmlns:table="b">{}</office:document>'
LOOKS_SO = "<!-- <a title='a'> --><![CDATA[<a title='a'>]]><y title='a'/><x:a title='1'/>"
IN_TAGS = LOOKS_SO + "<text:a name=\"title='no'\" b:title = '{}' c=''/>"
FORM = '<dc:title>{}</dc:title><form:button form:name="c d" form:label="{}"/>'
HISTORY = (
    "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    "<text:p>{}<text:page-number>1x</text:page-number></text:p>"
)
MARK = '<text:p>{}<text:bookmark text:name="x"/>{}</text:p>'
INDEX = '<text:p>{}<text:alphabetical-index-mark text:string-value="{}" text:key1="{}"/></text:p>'
GUIDE = (
    "<text:p><text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>a</text:ruby-text>"
    "</text:ruby>{}</text:p>"
)
ELSEWHERE = (
    "<presentation:footer-decl>{}</presentation:footer-decl><table:help-message table:title='{}'/>"
    "<text:index-title-template>{}</text:index-title-template>"
)
CELLS = (
    '<table:table-cell{} a="1"><text:p>{}</text:p></table:table-cell>'
    '<table:table-cell office:string-value="7"><office:annotation><text:p>{}</text:p>'
    "</office:annotation><text:p>7</text:p></table:table-cell>"
    '<table:table-cell table:formula="f" office:string-value="two"><text:p>two</text:p>'
    '</table:table-cell><table:table-cell office:string-value="x"/>'
)


def test_a_span_ends_before_a_tab_and_begins_anew() -> None:
    """No span is empty for it; of many around each other none is cut."""
    source = "<text:p><text:span>a<text:tab/></text:span>b<text:tab/>c</text:p>"
    made, *_ = translated(FLAT.format(source), "a.fodt")
    tab = "<text:span><text:tab/></text:span>"
    assert f"<text:span>A</text:span>{tab}B<text:tab/>C</text:p>" in made
    deep = f"<text:p>{'<text:span>' * 5}a<text:tab/>b{'</text:span>' * 5} c</text:p>"
    assert translated(FLAT.format(deep), "a.fodt")[1] == ["a b c"]
    empty = f"{'<text:span>' * 5}<text:tab/>{'</text:span>' * 5}"
    source = FLAT.format(f"<text:p>{empty}a<text:tab/>b</text:p>")
    assert f"{empty}A<text:tab/>B" in translated(source, "a.fodt")[0]


@pytest.mark.parametrize(
    ("content", "before", "after"),
    [
        (FORM, ("a b", "e f"), ("A B", "E F")),
        (IN_TAGS, ("it&apos;s",), ("IT&apos;S",)),
        (HISTORY, ("a  ",), ("A ",)),
        (MARK, ("a ", " b"), ("A ", " B")),
        (INDEX, ("a", "b c", "d"), ("A", "B C", "D")),
        (GUIDE, ("a", " b"), ("A", " B")),
        (ELSEWHERE, ("a b", "c", "d e"), ("A B", "C", "D E")),
        (CELLS, (' office:string-value="one"', "one", "note"), ("", "ONE", "NOTE")),
    ],
    ids=[
        "labels of controls",
        "attributes of tags only",
        "what its history shows stays",
        "spaces",
        "entries of indexes",
        "phonetic guides",
        "footers of slides, messages of cells, titles of tables of contents",
        "a changed cell has no old text",
    ],
)
def test_flat_opendocument_is_xml(
    content: str, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """Its texts are those of paragraphs and of what is shown; formulas and names stay."""
    made, lines, _ = translated(FLAT.format(content.format(*before)), "a.fods")
    assert made == FLAT.format(content.format(*after))
    assert content != GUIDE or lines == ["a b"]
