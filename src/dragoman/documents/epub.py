"""EPUB books: the listed chapters, the tables of contents, and the title and description."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from urllib.parse import unquote

from dragoman.documents.archive import Archive
from dragoman.documents.attributes import attributes_of
from dragoman.documents.document import Document, Segment
from dragoman.documents.fragments import with_elements
from dragoman.documents.html import read_xhtml
from dragoman.documents.paragraphs import read_plain, read_xml
from dragoman.errors import InputError
from dragoman.files.xml import Element, escape_xml
from dragoman.languages import LangCodes

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGE, _CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"
_TEXTS = {"text", "title", "description"}
_GUIDE = attributes_of({"reference": "title"})


def read(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """Read the texts of a book.

    Changed chapters declare their new language, as pages do. Raises InputError for a book that is
    damaged or has encrypted chapters, and as the readers of the archive and of its members do.
    """
    archive = Archive.open(data, name)
    roots = archive.elements(_CONTAINER, "rootfile")
    package = next((root.attributes.get("full-path", "") for root in roots), "")
    if package not in archive.members:
        raise InputError(f"{name} is not an EPUB: {_CONTAINER} names no package.")
    listed = [item.attributes for item in archive.elements(package, "item")]
    members = {
        posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(item["href"]))): kind
        for item in listed
        if (kind := item.get("media-type", "")) in {_PAGE, _CONTENTS} and "href" in item
    }
    if _ENCRYPTION in archive.members:
        files = archive.elements(_ENCRYPTION, "CipherReference")
        if any(unquote(each.attributes.get("URI", "")) in members for each in files):
            raise InputError(f"{name} has encrypted chapters; only its publisher can open them.")
    there = [member for member in members if member in archive.members]
    contents = archive.read(package, *there)
    documents = {
        member: _read_member(content, name, member, members.get(member, ""), languages)
        for member, content in contents.items()
    }
    lacking = [f"{member}, which is not in the book." for member in members if member not in there]
    return archive.document(documents, lacking)


def _read_member(data: bytes, book: str, member: str, kind: str, languages: LangCodes) -> Document:
    """Read a chapter, a table of contents, or the package itself."""
    name = f"{book}: {member}"
    if kind == _PAGE:
        return read_xhtml(data, name, f"{member}, ", languages)
    places = (f"{member}, text {n}" for n in count(1))
    return read_xml(data, name, _TEXTS, partial(_read_text, places), _GUIDE, place=f"{member}, ")


def _read_text(places: Iterator[str], element: Element, *_: object) -> Segment | None:
    """Read a title or a description, which often is HTML that is escaped as text."""
    segment = read_plain(places, element)
    source = with_elements(segment.source.pieces, escape_xml) if segment else None
    return replace(segment, source=source) if segment and source else None
