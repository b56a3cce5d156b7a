"""OpenDocument texts, presentations and spreadsheets, as archives or as flat XML."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count

from dragoman.documents.archive import Archive
from dragoman.documents.attributes import attributes_of
from dragoman.documents.document import Document, Segment, WrittenPart
from dragoman.documents.paragraphs import (
    Raw,
    Replacing,
    decode_xml,
    has_letters,
    mixed,
    read_xml,
    without_breaks,
)
from dragoman.documents.rows import in_rows
from dragoman.errors import InputError
from dragoman.files.xml import Element, Text, escape_xml
from dragoman.text.marked import Marked, Tag, with_notes, with_one_space

_PARAGRAPHS = {"p", "h", "title", "desc", "subject", "description", "index-title-template"}
_PARAGRAPHS |= {"header-decl", "footer-decl", "date-time-decl"}  # of slides
_ATTRIBUTES = attributes_of(
    dict.fromkeys(("button", "checkbox", "column", "fixed-text", "frame"), "label title")
    | dict.fromkeys(("item", "option", "radio"), "label title")
    | dict.fromkeys(("combobox", "date", "listbox", "number", "text", "textarea"), "title")
    | dict.fromkeys(("a", "help-message", "error-message"), "title")
    | dict.fromkeys(("toc-mark", "user-index-mark"), "string-value")
    | dict.fromkeys(
        ("alphabetical-index-mark", "alphabetical-index-mark-start"), "string-value key1 key2"
    )
)
"""Translated attributes of form controls, links, messages of validated cells and index entries."""
_PAIRS = {"span", "a", "meta", "ruby", "ruby-base"}
_SPACES = {"tab", "line-break"}
_LEFT = {"tracked-changes", "ruby-text"}
_TELLING = {*_LEFT, "annotation", "shapes", "table-cell"}
"""Elements that determine whether the paragraphs in them are left alone; the innermost decides."""
_VALUE = re.compile(r"\soffice:string-value\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_CELL = re.compile(
    rf"(?>(<table:(?:covered-)?table-cell\b[^<>]*?){_VALUE.pattern})([^<>]*(?<!/)>)"
    r"((?s:.*?)(?:</table:(?:covered-)?table-cell\s*>|\Z))"
)
"""A cell whose text is also in an attribute: what surrounds the attribute, and the content.

A cell in a comment may have no end, which would be searched for again from each cell."""
_STYLE_NAME = re.compile(r"\s(?:style:|text:style-)name\s*=\s*[\"']([^\"']*)")
_RAISED = re.compile(r"style:text-position\s*=\s*[\"'](?:super|[1-9])")
_ANNOTATION = re.compile(r"(?s)<office:annotation\b.*?(?:</office:annotation\s*>|\Z)")


def read(data: bytes, name: str) -> Document:
    """Read the paragraphs of content and styles (headers, footers), of charts and other objects,
    and the title of the document.

    Raises InputError if the document is damaged, or if its archive or XML is rejected.
    """
    if data[:2] != b"PK":
        return _read_member(data, name, "")
    archive = Archive.open(data, name)
    members = [m for m in archive.members if re.search(r"(^|/)(content|styles|meta)\.xml$", m)]
    if "content.xml" not in members:
        raise InputError(f"{name} is not an OpenDocument file: it has no content.xml.")
    manifest = archive.read("META-INF/manifest.xml")
    if any(b"encryption-data" in content for content in manifest.values()):
        raise InputError(f"{name} is encrypted; save it without a password.")
    contents = archive.read(*members)
    _, _, styles = contents.get("styles.xml", b"").partition(b"<office:styles")
    styles = styles.partition(b"</office:styles")[0]
    documents = {
        member: _read_member(content, f"{name}: {member}", f"{member} ", styles)
        for member, content in contents.items()
    }
    is_sheet = b"table:formula=" in contents["content.xml"]
    return archive.document(
        documents, ["Numbers, formulas, what they show, and the names of sheets."] * is_sheet
    )


def _read_member(data: bytes, name: str, place: str, styles: bytes = b"") -> Document:
    """Read one member; `styles` are its styles from another member."""
    places = (f"{place}paragraph {n}" for n in count(1))
    raised = _raised_styles(styles) | _raised_styles(data)

    def is_raised(tags: str) -> bool:
        return not raised.isdisjoint(_STYLE_NAME.findall(tags))

    read = partial(_read_paragraph, places, is_raised)
    document = read_xml(data, name, _PARAGRAPHS, read, _ATTRIBUTES, place=place)

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        made = document.assemble(parts)
        (old, encode), (new, _) = decode_xml(data, name), decode_xml(made, name)
        return encode([_without_old_values(old, new)]) if _VALUE.search(old) else made

    return replace(document, assemble=assemble)


def _raised_styles(data: bytes) -> set[str]:
    """Return the names of the styles that raise their text."""
    _, *styles = data.decode(errors="replace").split("<style:style")
    begun = (each.partition("</style:style")[0] for each in styles)
    return {
        found[1] for each in begun if _RAISED.search(each) and (found := _STYLE_NAME.search(each))
    }


def _without_old_values(old: str, new: str) -> str:
    """Return the new text, without the old values in the attributes of changed cells."""
    before = {_ANNOTATION.sub("", cell[0]) for cell in _CELL.finditer(old)}

    def kept(cell: re.Match[str]) -> str:
        return cell[0] if _ANNOTATION.sub("", cell[0]) in before else "".join(cell.groups())

    return _CELL.sub(kept, new)


def _read_paragraph(
    places: Iterator[str],
    is_raised: Callable[[str], bool],
    paragraph: Element,
    text: str,
    raw: Raw,
) -> Segment | Replacing | None:
    if _is_left(paragraph):
        return None
    pieces = without_breaks(mixed(paragraph, text, _role, raw)).pieces
    marked = with_one_space(with_notes(pieces, raised=is_raised))
    if not has_letters(marked):
        return None
    write = _writer(paragraph.prefix)
    place = paragraph.content_start, paragraph.content_end
    segment = Segment(*place, marked, write, next(places))
    return segment if paragraph.holds else in_rows(segment, _is_span)


def _is_span(tag: Tag) -> bool:
    """Return whether an element only styles its text."""
    return bool(re.match(r"<(?:[\w.-]+:)?span[\s>]", tag.raw))


@lru_cache(256)  # all paragraphs share one
def _writer(prefix: str) -> Callable[[Marked], str]:
    def escaped(text: str) -> str:
        """Escape text for XML, with an element for the second of two spaces."""
        return re.sub("(?<= ) ", f"<{prefix}s/>", escape_xml(text))

    return partial(Marked.written, escape=escaped)


def _is_left(paragraph: Element) -> bool:
    """Return whether a paragraph is deleted, or shows a value that is not text."""
    around = next((each for each in paragraph.around if each.local in _TELLING), None)
    if around is None or around.local != "table-cell":
        return around is not None and around.local in _LEFT
    values = around.attributes
    return values.get("office:value-type", "string") != "string" or "table:formula" in values


def _role(element: Element) -> str | Tag:
    """Return how an element of a paragraph is read: as a pair, a space, a copy, or one tag."""
    if element.local == "s":
        return " "
    if element.local in _PAIRS:
        return Tag("", "open")
    if element.local in _SPACES:
        return Tag("", shown=" ")
    if element.local == "ruby-text":
        return Tag("")
    is_text = element.children and all(isinstance(child, Text) for child in element.children)
    return Tag("", "open", kept=True) if is_text else Tag("")
