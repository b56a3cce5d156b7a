"""Texts of bilingual files, XLIFF and TMX: reading them, and writing their translations."""

from collections.abc import Callable, Iterator
from functools import partial

from dragoman.documents.choices import CHOICE, LEFT, part_of
from dragoman.documents.document import Left, Segment
from dragoman.documents.fragments import with_elements
from dragoman.documents.paragraphs import (
    Half,
    Raw,
    Replacing,
    has_letters,
    lines,
    mixed,
    paired,
    without_breaks,
)
from dragoman.files.xliff import codes_in, marks_of
from dragoman.files.xml import Element, Text, allowed_in_xml, escape_xml
from dragoman.text.marked import Marked, Tag, with_texts
from dragoman.text.spans import Span

INNER = "texts inside codes (<sub>)"
"""What is left alone in a text that `has_inner_text`."""


def indent_of(element: Element, text: str) -> str:
    """Return the line break and the spaces before an element."""
    start = element.start
    while start and text[start - 1].isspace():
        start -= 1
    return text[start : element.start]


def pieces_of(
    source: Element, text: str, role: Callable[[Element], Tag | Half], raw: Raw
) -> list[str | Tag]:
    """Return text and tags, with white space as it is read."""
    pieces = mixed(source, text, role, raw)
    if source.parent is not None and (marks := marks_of(source.parent)) is not None:
        codes = partial(_codes, marks=marks, write=str if is_cdata(source) else escape_xml)
        pieces = paired(q for p in pieces for q in (codes(p) if isinstance(p, str) else (p,)))
    is_kept = source.inherited("xml:space") == "preserve"
    return pieces if is_kept else [*without_breaks(pieces).pieces]


def _codes(
    text: str, marks: frozenset[str] | None, write: Callable[[str], str]
) -> Iterator[str | Tag | Half]:
    """Yield a text with the markup of Phrase as tags."""
    place = 0
    for found in codes_in(text, marks):
        begins, ends, _ = found.groups()
        yield text[place : found.start()]
        raw, place = write(found[0]), found.end()
        yield Half(raw, begins or ends, begins is not None) if begins or ends else Tag(raw)
    yield text[place:]


def read_source(
    source: Element,
    pieces: list[str | Tag],
    place: Span,
    around: tuple[str, str],
    where: str,
    left: Left,
) -> Segment | Replacing | None:
    """Read a text whose translation is written at a place, between two texts.

    A message whose branches cannot be read is added to `left`.
    """
    marked = marked_of(source, pieces)
    if not CHOICE.search(marked.text):
        segment = Segment(*place, marked, writer_of(source, *around), where, beside=True)
        return segment if has_letters(marked) else None
    is_plain = source.parent is not None and not (source.parent.holds or is_cdata(source))
    part = part_of(pieces, where, escape_xml, around) if is_plain else None
    if part is None:
        left.add(LEFT, where)
    return None if part is None else Replacing(*place, part)


def has_inner_text(source: Element) -> bool:
    """Return whether a code of a text contains a text, such as the alternative of a picture."""
    return any(
        has_inner_text(each) or (each.local == "sub" and any(map(str.isalpha, each.text)))
        for each in source.elements
    )


def marked_of(source: Element, pieces: list[str | Tag]) -> Marked:
    """Return the text to translate, with HTML elements as tags."""
    return with_elements(with_texts(pieces, lines), str if is_cdata(source) else escape_xml)


def writer_of(source: Element, before: str, after: str) -> Callable[[Marked], str]:
    """Return what writes a translation between two texts, as CDATA if the source is."""
    if is_cdata(source):
        return lambda marked: f"{before}{_as_cdata(marked.written())}{after}"
    return lambda marked: f"{before}{marked.written(escape_xml)}{after}"


def is_cdata(source: Element) -> bool:
    """Return whether a text is written as CDATA."""
    return all(isinstance(child, Text) and child.is_cdata for child in source.children)


def _as_cdata(text: str) -> str:
    return f"<![CDATA[{allowed_in_xml(text).replace(']]>', ']]]]><![CDATA[>')}]]>"
