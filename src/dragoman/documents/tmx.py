"""TMX: translation units that lack the target language, and get it."""

import re
from dataclasses import replace
from functools import partial
from xml.sax.saxutils import quoteattr

from dragoman.documents.bilingual import INNER, has_inner_text, indent_of, pieces_of, read_source
from dragoman.documents.document import Document, Left, Segment
from dragoman.documents.paragraphs import Half, Raw, Replacing, decode_xml, read_xml
from dragoman.errors import InputError
from dragoman.files.xml import Element
from dragoman.languages import LangCodes, base_of, resolve, tag
from dragoman.text.marked import Tag


def read(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """Read the texts of a memory that have no translation into a language.

    Without `languages`, the source is that of the header, and the target the only other one. Raises
    InputError if that is not enough to determine them, and as `read_xml` does.
    """
    text, _ = decode_xml(data, name)
    header, codes = _SOURCE.search(text), {tag(code[1]): code[1] for code in _CODE.finditer(text)}
    source, target = languages[0] or (header[1] if header else ""), languages[1]
    others = [code for code in codes.values() if base_of(code) != base_of(source)]
    if not source or not (target or len(others) == 1):
        raise InputError(
            f"{name} has texts in {', '.join(codes) or 'no language'}; say from and into which "
            "it is translated."
        )
    into = (target and resolve(target, codes.values())) or target or others[0]
    left = Left()
    document = read_xml(data, name, {"tu"}, partial(_read_entry, (source, into), left))
    return replace(document, left=(*document.left, *left))


_SOURCE = re.compile(r"<header\s[^<>]*?\bsrclang\s*=\s*[\"']([\w-]+)")
_CODE = re.compile(r"<tuv\s[^<>]*?\blang\s*=\s*[\"']([\w-]+)")


def _read_entry(
    languages: tuple[str, str], left: Left, entry: Element, text: str, raw: Raw
) -> Segment | Replacing | None:
    """Read a TMX unit; one that has only other languages is added to `left`."""
    where = f"unit {entry.attributes.get('tuid', '')}".rstrip()
    variants = {
        each.attributes.get("xml:lang") or each.attributes.get("lang", ""): each
        for each in entry.elements
        if each.local == "tuv"
    }
    source, target = (variants.get(resolve(each, variants) or "-") for each in languages)
    if source is None or (spoken := source.child("seg")) is None:
        left.add(f"units without a text in {languages[0]}", where)
        return None
    filled = target.child("seg") if target is not None else None
    if target is not None and (filled is None or filled.text.strip()):
        return None
    start, end = f"<{source.prefix}seg>", f"</{source.prefix}seg>"
    place = (source.end, source.end)
    if filled is not None:
        place = filled.start, filled.end
    else:
        language = quoteattr(languages[1])
        start = f"{indent_of(source, text)}<{source.prefix}tuv xml:lang={language}>{start}"
        end += f"</{source.prefix}tuv>"
    if has_inner_text(spoken):
        left.add(INNER, where)
    pieces = pieces_of(spoken, text, _role_in_tmx, raw)
    return read_source(spoken, pieces, place, (start, end), where, left)


def _role_in_tmx(element: Element) -> Tag | Half:
    if element.local in {"bpt", "ept"}:
        return Half("", element.attributes.get("i", ""), element.local == "bpt")
    return Tag("", "open") if element.local == "hi" else Tag("")
