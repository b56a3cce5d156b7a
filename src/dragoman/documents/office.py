"""Microsoft Office documents: docx, pptx and xlsx."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count

from dragoman.documents.archive import Archive
from dragoman.documents.attributes import attributes_of, entries_of_index, headers_of_sheets
from dragoman.documents.document import Document, Segment
from dragoman.documents.paragraphs import Raw, Replacing, has_letters, read_plain, read_xml
from dragoman.documents.rows import in_rows
from dragoman.documents.runs import read_runs, with_breaks, with_text_and_fields
from dragoman.files.xml import Element
from dragoman.text.marked import Marked

_TEXT_PARTS = {
    r"wordprocessingml\.(document|template)\.main": {"p"},
    r"wordprocessingml\.document\.glossary": {"p"},
    r"ms-word\.(document|template)\.macroEnabled(Template)?\.main": {"p"},
    r"wordprocessingml\.(header|footer|footnotes|endnotes|comments)": {"p"},
    r"presentationml\.(slide|notesSlide|slideLayout|slideMaster)": {"p"},
    r"presentationml\.comments": {"text"},
    r"ms-powerpoint\.comments": {"p"},
    r"spreadsheetml\.sharedStrings": {"si"},
    r"spreadsheetml\.worksheet": {"is"},
    r"spreadsheetml\.comments": {"text"},
    r"ms-excel\.threadedcomments": {"text"},
    r"drawingml\.(chart|chartshapes|diagramData)": {"p", "v"},
    r"ms-office\.(chartex|drawingml\.diagramDrawing)": {"p"},
    r"openxmlformats-officedocument\.drawing": {"p"},
    r"openxmlformats-package\.core-properties": {"title", "subject", "description"},
}
"""The elements that are paragraphs, by content type of the parts that contain text."""

_ATTRIBUTES = attributes_of(
    {
        **dict.fromkeys(("docPr", "cNvPr"), "descr title"),  # pictures
        **dict.fromkeys(("shape", "rect", "textbox"), "alt title"),
        "textpath": "string",  # a watermark
        **dict.fromkeys(("hyperlink", "hlinkClick"), "tooltip"),
        **dict.fromkeys(("tblCaption", "tblDescription"), "val"),
        **dict.fromkeys(("alias", "listEntry", "helpText", "statusText"), "val"),  # controls
        "listItem": "displayText",
        "dataValidation": "promptTitle prompt errorTitle error",
    },
    most={"promptTitle": 32, "errorTitle": 32, "prompt": 255, "error": 255},
)
"""Attributes that are shown or read aloud."""

_IN_SHEET = re.compile(rb"inlineStr|<(?:\w+:)?(?:headerFooter|dataValidation|hyperlink)\b")
"""What may contain text in a sheet; sheets without it contain only numbers."""
_PROMPT = re.compile(r"<(?:\w+:)?ph\b")
_CELLS = {"si", "is"}
"""Elements that contain the text of cells."""
_LONGEST_CELL = 32_767
"""UTF-16 code units in a cell, beyond which Excel reports the file as damaged."""

_NAMING_PARTS = r"spreadsheetml\.(table|pivotCacheDefinition)"
"""Parts whose columns are identified by the text of their first cell."""


def read(data: bytes, name: str) -> Document:
    """Read the paragraphs of all parts that contain text.

    Raises InputError if the document is damaged, or if its archive or XML is rejected.
    """
    archive = Archive.open(data, name)
    types = _types(archive)
    found = {member: names for part, names in _TEXT_PARTS.items() for member in _parts(types, part)}
    sheets = _parts(types, "worksheet")
    numbers = {each for each in sheets if not _IN_SHEET.search(archive.read(each)[each])}
    columns = _column_names(archive, types)
    documents, fields = dict[str, Document](), list[str]()
    for member, content in archive.read(*(each for each in found if each not in numbers)).items():
        names, place = found[member], f"{member} "
        fields += [member] * (b"fldChar" in content or b"fldSimple" in content)
        read_one = _read_cell if names & _CELLS else _read_paragraph
        read_in = partial(read_one, columns, (f"{place}paragraph {n}" for n in count(1)))
        aside = _ATTRIBUTES, headers_of_sheets if member in sheets else entries_of_index
        whole = f"{name}: {member}"
        documents[member] = read_xml(content, whole, names, read_in, *aside, place=place)
    left = {
        "What fields show, such as page numbers and indexes; update the fields.": fields,
        "Formulas, what they show, and the names of sheets.": sheets,
        "The headers of tables, by which formulas find their columns.": columns,
        "The prompts of slide masters and layouts.": _parts(types, "slideMaster"),
        "Embedded files, such as the tables behind charts.": [
            each for each in archive.members if "/embeddings/" in each
        ],
    }
    return archive.document(documents, [line for line, there in left.items() if there])


def _types(archive: Archive) -> dict[str, str]:
    declared = dict[str, str]()
    for element in archive.elements("[Content_Types].xml", "Default", "Override"):
        of = element.attributes
        key = of.get("PartName") or "." + of.get("Extension", "")
        declared[key.lower()] = of.get("ContentType", "")
    ending = {each: "." + each.rpartition(".")[2].lower() for each in archive.members}
    return {
        each: declared.get(f"/{each.lower()}") or declared.get(ending[each], "")
        for each in archive.members
    }


def _parts(types: dict[str, str], part: str) -> list[str]:
    """Return the members of a content type, in order."""
    return [member for member, kind in types.items() if re.search(rf"{part}\+xml$", kind)]


def _column_names(archive: Archive, types: dict[str, str]) -> frozenset[str]:
    """Return the names of table columns: a header that differs from them breaks the table."""
    return frozenset(
        _in_one_line(with_breaks(element.attributes.get("name", "")))
        for member in _parts(types, _NAMING_PARTS)
        for element in archive.elements(member, "tableColumn", "cacheField")
    )


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _read_paragraph(
    columns: frozenset[str], places: Iterator[str], paragraph: Element, text: str, raw: Raw
) -> Segment | Replacing | None:
    """Read a paragraph of any part, or a text without runs."""
    if (paragraph.local == "v" and not _is_label(paragraph)) or _is_prompt(paragraph, text):
        return None
    children = with_text_and_fields([*paragraph.elements], text)
    if not children:
        return read_plain(places, paragraph)
    marked, writer = read_runs(children, text, raw)
    if not has_letters(marked) or (columns and _in_one_line(marked.text) in columns):
        return None
    place = children[0].start, children[-1].end
    segment = Segment(*place, marked, writer.write, next(places))
    return segment if paragraph.holds else in_rows(segment, writer.splits, writer.parts)


def _read_cell(
    columns: frozenset[str], places: Iterator[str], cell: Element, text: str, raw: Raw
) -> Segment | Replacing | None:
    """Read the text of a cell, or one that several cells share."""
    found = _read_paragraph(columns, places, cell, text, raw)
    if isinstance(found, Segment):
        return replace(found, fault=_fault_of_cell)
    if found is not None:
        whole = _size(cell.text)
        rows = tuple(
            replace(each, fault=partial(_fault_of_cell, most=_LONGEST_CELL * size // whole))
            for each in found.part.segments
            if (size := _size(each.source.text))
        )
        found = replace(found, part=replace(found.part, segments=rows))
    return found


def _fault_of_cell(_raw: str, _source: Marked, marked: Marked, most: int = _LONGEST_CELL) -> str:
    """Return why a text, whose line breaks are tags, does not fit in a cell, or its part of one."""
    texts = (p if isinstance(p, str) else p.raw if p.raw.isspace() else "" for p in marked.pieces)
    fits = _size("".join(texts)) <= most
    return "" if fits else f"a cell has at most {_LONGEST_CELL:,} characters"


def _size(text: str) -> int:
    """Return the number of characters as Excel counts them."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_label(value: Element) -> bool:
    """Return whether a cached value of a chart is text."""
    names = (each.local for each in value.around if each.local not in {"pt", "lvl"})
    return next(names, "") in {"strCache", "multiLvlStrCache"}


def _is_prompt(paragraph: Element, text: str) -> bool:
    """Return whether a paragraph is shown only while a slide is being made."""
    around = [*paragraph.around]
    if not around or around[-1].local not in {"sldMaster", "sldLayout"}:
        return False
    *_, shape = around[0], *(each for each in around[:-1] if each.local == "sp")
    return _PROMPT.search(text, shape.start, paragraph.start) is not None
