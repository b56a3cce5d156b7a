"""Documents of all kinds for tests: created by the libraries of their formats, or by hand."""

import io
import re
import zipfile
from collections.abc import Callable
from random import Random

from docx import Document as Docx
from odfdo import Cell, DrawPage, Frame, Header, Paragraph, Span, Table
from odfdo import Document as OpenDocument
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table as SheetTable
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from tests.archives import packed, replaced, unpacked
from tests.damage import change_bytes

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BODY = f"""<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document {W} xmlns:r="http://r" xmlns:mc="http://mc" xmlns:m="http://m" \
xmlns:wp="http://wp"><w:body>
<w:p w:rsidR="1"><w:pPr><w:jc w:val="left"/></w:pPr><w:r w:rsidR="2">\
<w:t xml:space="preserve">The </w:t></w:r>\
<w:proofErr w:type="spellStart"/><w:r><w:rPr><w:lang w:val="de"/></w:rPr><w:t>fi</w:t></w:r>\
<w:r><w:rPr/><w:t>rst</w:t></w:r><w:r><w:t xml:space="preserve"> </w:t></w:r>\
<w:hyperlink r:id="rId1"><w:r><w:rPr><w:u/></w:rPr><w:t>link to</w:t></w:r><w:r><w:rPr><w:b/>\
</w:rPr>\
<w:t xml:space="preserve"> bold</w:t></w:r></w:hyperlink><w:r>\
<w:t xml:space="preserve"> &amp; page </w:t></w:r>\
<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r>\
<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>seven</w:t></w:r>\
<w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>.</w:t><w:br/><w:t>Next</w:t></w:r></w:p>
<w:p><w:r><w:t>Before</w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires="wps">\
<w:txbxContent>\
<w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Choice><mc:Fallback>\
<w:txbxContent><w:p><w:r>\
<w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>\
<w:ins w:id="1"><w:r><w:t xml:space="preserve"> inserted</w:t></w:r></w:ins>\
<w:del w:id="2"><w:r><w:delText>deleted</w:delText></w:r></w:del><m:oMath><m:r><m:t>x</m:t>\
</m:r></m:oMath>\
<w:r><w:t xml:space="preserve"> after</w:t></w:r><w:sdt><w:sdtPr><w:id w:val="3"/></w:sdtPr>\
<w:sdtContent>\
<w:r><w:t xml:space="preserve"> control</w:t></w:r></w:sdtContent></w:sdt></w:p>
<w:p><w:r><mc:AlternateContent><mc:Choice><w:p><w:r><w:t>Alone</w:t></w:r></w:p></mc:Choice>\
</mc:AlternateContent></w:r></w:p><w:p/>
<w:p><w:r><w:drawing><wp:docPr id="1" name="Picture 1" descr='A cat &amp; "Tom"&#10;asleep'/>\
</w:drawing></w:r><w:sdt><w:sdtPr><w:alias w:val="Your choice"/><w:dropDownList>\
<w:listItem w:displayText="Yes please" w:value="y"/></w:dropDownList></w:sdtPr><w:sdtContent>\
<w:r><w:t>Choose one</w:t></w:r></w:sdtContent></w:sdt></w:p>
<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>IF </w:instrText></w:r><w:r>\
<w:fldChar w:fldCharType="begin"/><w:instrText>DATE</w:instrText><w:fldChar \
w:fldCharType="separate"/><w:t>friday</w:t><w:fldChar w:fldCharType="end"/></w:r><w:r>\
<w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>no</w:t></w:r><w:r>\
<w:fldChar w:fldCharType="end"/></w:r><w:r><w:t xml:space="preserve"> or page </w:t></w:r>\
<m:oMath><m:r><m:t>y</m:t></m:r></m:oMath><w:r><w:t xml:space="preserve"> of </w:t></w:r>\
<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> NUMPAGES </w:instrText></w:r>\
<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>nine</w:t></w:r>\
<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>
</w:body></w:document>"""


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def docx() -> bytes:
    """Headings, runs, a table, header, footer and a comment."""
    document = Docx()
    document.add_heading("A title", 0)
    paragraph = document.add_paragraph("This is ")
    bold = paragraph.add_run("bold")
    bold.bold = True
    paragraph.add_run(" and ")
    for text in ("ital", "ics"):
        paragraph.add_run(text).italic = True
    paragraph.add_run(" text.\nNew line\tand tab")
    document.add_paragraph("One of them\n- and a second\n\n- and a third")
    cell = document.add_table(2, 2).cell(0, 0)
    cell.text = "Cell & <one>"
    document.sections[0].header.paragraphs[0].text = "The header"
    document.sections[0].footer.paragraphs[0].text = "The footer"
    document.add_comment(bold, text="A comment", author="me")
    return _saved(document.save)


def docx_with_everything() -> bytes:
    """Links, fields, text boxes inside paragraphs, tracked changes, formulas, controls."""
    return replaced(docx(), {"word/document.xml": BODY})


def pptx() -> bytes:
    """Title, runs, table, chart and notes."""
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "The title"
    frame = slide.placeholders[1].text_frame
    frame.text = "First point"
    paragraph = frame.add_paragraph()
    paragraph.add_run().text = "Second "
    bold = paragraph.add_run()
    bold.text, bold.font.bold = "bold", True
    paragraph.add_line_break()
    paragraph.add_run().text = "line"
    slide.notes_slide.notes_text_frame.text = "Notes of the speaker"
    place = Inches(1), Inches(1), Inches(4), Inches(3)
    data = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["East", "West"]
    data.add_series("Sales", (1.5, 2.5))  # type: ignore[no-untyped-call]
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Chart title"
    slide.shapes.add_table(1, 2, *place).table.cell(0, 0).text = "In a table"
    box = slide.shapes.add_textbox(*place)
    box.text_frame.text = "On every slide"
    slide.slide_layout.shapes._spTree.append(box._element)
    slide.shapes[0]._element.nvSpPr.cNvPr.set("descr", "The words of the title")
    return _saved(presentation.save)


def xlsx() -> bytes:
    """A table with headers, lines, formulas, rich text and a comment."""
    book = Workbook()
    sheet = book.active
    rows = [["Name", "Value"], ["Line one\nline two", 3], [None, "=SUM(B2:B2)"], ["Free & text"]]
    for row in rows:
        sheet.append(row)
    sheet.add_table(SheetTable(displayName="T", ref="A1:B3"))
    sheet["A4"].comment = Comment("Look here", "me")
    sheet.oddHeader.left.text, sheet.oddHeader.center.text = "Page &P of &N", "&BA && b"
    sheet.oddFooter.center.text = "&D"
    validation = DataValidation("list", formula1='"Yes,No"', prompt="Take one", promptTitle="Do it")
    validation.add("B9")
    sheet.add_data_validation(validation)
    sheet["A5"] = CellRichText("This is ", TextBlock(InlineFont(b=True), "very"), " rich")
    sheet["A6"] = "- an item\n- another\n\nand more"
    return _saved(book.save)


def odt() -> bytes:
    """A heading, spans, a footnote and a comment in the middle of a paragraph."""
    document = OpenDocument("text")
    document.body.clear()
    document.body.append(Header(1, "The heading"))
    paragraph = Paragraph("Hello ")
    paragraph.append(Span("bold ", style="T1"))
    paragraph.append(Span("words", style="T1"))
    paragraph.append(" and a footnote here it is")
    document.body.append(paragraph)
    paragraph.insert_note(after="footnote", note_id="n1", citation="1", body="Text of the note")
    paragraph.insert_annotation(after="here", body="An annotation", creator="ME")
    document.body.append(Paragraph("two  spaces\tand tab\nnew line"))
    return _saved(document.save)


def ods() -> bytes:
    """Cells with a text, a number and a formula."""
    document = OpenDocument("spreadsheet")
    document.body.clear()
    table = Table("Sheet")
    table.set_value("A1", "Name of it")
    table.set_value("B1", 3.5)
    table.set_cell("B2", Cell(5, formula="of:=[.B1]+1"))
    document.body.append(table)
    return _saved(document.save)


def odp() -> bytes:
    """A page with a frame."""
    document = OpenDocument("presentation")
    document.body.clear()
    page = DrawPage("p1", name="Page 1")
    page.append(Frame.text_frame("Text in frame", size=("7cm", "5cm"), position=("1cm", "1cm")))
    document.body.append(page)
    return _saved(document.save)


XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" source-language="en" datatype="plaintext">
    <body>
      <trans-unit id="1">
        <source>Hello <g id="1">bold</g> world<x id="2"/>.</source>
      </trans-unit>
      <trans-unit id="2" approved="yes">
        <source>Done</source>
        <target>Fertig</target>
      </trans-unit>
      <trans-unit id="3"><source>New one</source><target state="new"/></trans-unit>
      <trans-unit id="4" translate="no"><source>No</source></trans-unit>
      <trans-unit id="5"><source><![CDATA[Some <b>text</b> & more]]></source></trans-unit>
      <trans-unit id="6"><source>Press <bpt id="1">&lt;b&gt;</bpt>ok<ept id="1">&lt;/b&gt;</ept> \
<mrk mtype="protected">ACME</mrk> now</source><target state="needs-translation">Press</target>\
</trans-unit>
    </body>
  </file>
</xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f1">
  <unit id="u1">
   <segment id="s1">
    <source>Hello <pc id="1">World</pc> <sc id="2"/>x y<ec startRef="2"/></source>
   </segment>
   <segment state="final"><source>Done</source><target>Fertig</target></segment>
   <segment state="initial"><source>To do</source><target></target></segment>
  </unit>
  <unit id="u2" translate="no"><segment><source>Never</source></segment></unit>
 </file>
</xliff>
"""
TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" datatype="plaintext"/>
<body>
 <tu tuid="1">
  <tuv xml:lang="en-US"><seg>One <bpt i="1">{b}</bpt>two<ept i="1">{/b}</ept></seg></tuv>
  <tuv xml:lang="de"><seg></seg></tuv>
 </tu>
 <tu>
  <tuv xml:lang="EN"><seg>Three &amp; four</seg></tuv>
 </tu>
 <tu><tuv xml:lang="en"><seg>Five</seg></tuv><tuv xml:lang="de"><seg>fünf</seg></tuv></tu>
</body></tmx>
"""
PO = """# Header
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#: a.c:1
msgid "Hello"
msgstr ""

#: a.c:2
#, fuzzy, c-format
#| msgid "Old %d"
msgid "New %d"
msgstr "Alt %d"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "Done"
msgstr "Fertig"

msgctxt "menu"
msgid ""
"A long text that goes over several lines because it is long enough for that, "
"is it not?\\n"
"And a \\"second\\" line\\n"
msgstr ""

#, fuzzy
msgid ""
"One of:\\n"
"  -a  the first\\n"
"\\n"
"- \\"b\\"\\n"
msgstr "old"

#~ msgid "obsolete"
#~ msgstr "alt"
"""

CHAPTER = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><title>One</title></head><body>
<h1><a id="x"/>Chapter&#160;one</h1><p>It was a <i>dark</i> &amp; stormy<br/>night&nbsp;here.</p>
<p>A <ruby>word<rt>read</rt></ruby> more</p>
<p><img src="a.png" alt="A house"/></p></body></html>
"""
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The book</dc:title>
<dc:identifier id="id">urn:x</dc:identifier><dc:language>en</dc:language></metadata>
<manifest><item id="c1" href="text/one%20a.xhtml" media-type="application/xhtml+xml"/>
<item id="toc" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="css" href="a.css" media-type="text/css"/></manifest>
<spine toc="toc"><itemref idref="c1"/></spine></package>
"""
NCX = """<?xml version="1.0"?>
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><docTitle><text>The book</text></docTitle><navMap>
<navPoint id="p1"><navLabel><text>Chapter one</text></navLabel><content src="text/one%20a.xhtml"/>
</navPoint></navMap></ncx>
"""
CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""


def epub() -> bytes:
    """A chapter, a table of contents and a style."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OPS/book.opf", PACKAGE)
        archive.writestr("OPS/text/one a.xhtml", CHAPTER)
        archive.writestr("OPS/toc.ncx", NCX)
        archive.writestr("OPS/a.css", "p { color: red }")
        archive.comment = b"made for a test"
    return buffer.getvalue()


SAMPLES: dict[str, Callable[[], bytes]] = {
    "a.docx": docx,
    "b.docx": docx_with_everything,
    "a.pptx": pptx,
    "a.xlsx": xlsx,
    "a.odt": odt,
    "a.ods": ods,
    "a.odp": odp,
    "a.xlf": XLIFF_1.encode,
    "b.xlf": XLIFF_2.encode,
    "a.tmx": TMX.encode,
    "a.po": PO.encode,
    "a.epub": epub,
}

_TOKEN = re.compile(r"<[^>]*>|[^<]+")
_HOSTILE = (
    *("<", ">", "&", "&#0;", "&nbsp;", "]]>", "<![CDATA[", "<!--", "-->", "<?x?>", "\0", "\0001\0"),
    *("<w:p>", "</w:p>", "<w:r>", "<text:p>", "<w:t>x</w:t>", "<tu>", "<a:p/>", "<source>", "<si>"),
    *('<w:fldChar w:fldCharType="end"/>', '<w:fldChar w:fldCharType="begin"/>', "<ept i='1'/>"),
    *('msgid "a"\n', 'msgstr "b"\n', "#, fuzzy\n", '"\\x"\n', "\n\n", "\u2028", "\r", "a" * 10_000),
    *("<!DOCTYPE a>", '<!ENTITY a "b">', "<x>" * 300, "<w:p>" * 20, " " * 500, "\ufeff"),
    "\U0001f600",
)


def mutated(data: bytes, draw: Random) -> bytes:
    """Return a file with changed bytes or, also inside an archive, reordered tags and texts."""
    if not data:
        return b"<"
    if data[:2] != b"PK" or draw.random() < 0.3:
        return change_bytes(data, draw) if draw.random() < 0.3 else _shuffled(data, draw)
    contents = unpacked(data)
    texts = [name for name in contents if name.endswith(("xml", "xhtml", "opf", "ncx", "rels"))]
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice(texts)
        contents[name] = mutated(contents[name], draw)
    return packed(contents, zipfile.ZIP_STORED)


def _shuffled(data: bytes, draw: Random) -> bytes:
    tokens = _TOKEN.findall(data.decode("utf-8", "surrogateescape"))
    for _ in range(draw.choice([1, 1, 2, 5])):
        if not tokens:
            break
        place, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
        match draw.randrange(5):
            case 0:
                del tokens[place : place + draw.choice([1, 1, 3])]
            case 1:
                tokens.insert(place, tokens[other])
            case 2:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens.insert(place, draw.choice(_HOSTILE))
            case _:
                cut = draw.randrange(len(tokens[place]) + 1)
                tokens[place] = tokens[place][:cut] + draw.choice(_HOSTILE) + tokens[place][cut:]
    return "".join(tokens).encode("utf-8", "surrogateescape")
