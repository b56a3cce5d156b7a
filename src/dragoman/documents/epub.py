"""Books in EPUB: the chapters that the package lists, its tables of contents, and its title."""

import posixpath
from dataclasses import replace
from functools import partial
from itertools import count
from urllib.parse import unquote

from dragoman.documents.archive import Archive
from dragoman.documents.document import Document
from dragoman.documents.html import RULES
from dragoman.documents.markup import XHTML, Page
from dragoman.documents.paragraphs import decode_xml, read_plain, read_xml
from dragoman.errors import InputError
from dragoman.files.xml import find_elements

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGE, _CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"


def read(data: bytes, name: str) -> Document:
    """The texts of a book.

    Raises InputError for one that is damaged or has chapters that are encrypted, and as the
    archive's and the members' readers do.
    """
    archive = Archive.open(data, name)
    package = _values(archive, _CONTAINER, "rootfile", "full-path")
    if not package or package[0] not in archive.members:
        raise InputError(f"{name} is no EPUB: {_CONTAINER} names no package.")
    kinds = _values(archive, package[0], "item", "media-type")
    hrefs = _values(archive, package[0], "item", "href")
    base = posixpath.dirname(package[0])
    members = {
        posixpath.normpath(posixpath.join(base, unquote(href))): kind
        for href, kind in zip(hrefs, kinds, strict=True)
        if kind in {_PAGE, _CONTENTS}
    }
    if _ENCRYPTION in archive.members:
        encrypted = _values(archive, _ENCRYPTION, "CipherReference", "URI")
        if not members.keys().isdisjoint(map(unquote, encrypted)):
            raise InputError(f"{name} has encrypted chapters; only its publisher can open them.")
    there = [member for member in members if member in archive.members]
    contents = archive.read(package[0], *there)
    documents = {
        member: _read_member(content, f"{name}: {member}", members.get(member, ""))
        for member, content in contents.items()
    }
    lacking = [f"{member}, which is not in the book." for member in members if member not in there]
    return archive.document(documents, lacking)


def _values(archive: Archive, member: str, element: str, attribute: str) -> list[str]:
    """The values of an attribute of all elements with a name, in a member."""
    place = f"{archive.name}: {member}"
    text, _ = decode_xml(archive.read(member)[member], place)
    found = find_elements(text, {element}, place)
    return [each.attributes.get(attribute, "") for each in found]


def _read_member(data: bytes, name: str, kind: str) -> Document:
    """A chapter, a table of contents, or the package itself."""
    if kind == _PAGE:
        text, encode = decode_xml(data, name)
        return Page(text, replace(RULES, scanner=XHTML)).document(encode, name)
    places = (f"{name.rpartition('/')[2]} text {n}" for n in count(1))
    return read_xml(data, name, {"text", "title"}, partial(read_plain, places))
