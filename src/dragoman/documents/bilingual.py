"""XLIFF and TMX: units of text that have a translation, or get one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from xml.sax.saxutils import quoteattr

from dragoman.decoding import LangCodes
from dragoman.documents.document import Document, Left, Segment, WrittenPart
from dragoman.documents.fragments import with_elements
from dragoman.documents.paragraphs import (
    Half,
    Raw,
    decode_xml,
    has_letters,
    lines,
    mixed,
    read_xml,
    without_breaks,
)
from dragoman.errors import InputError
from dragoman.files.xliff import FINISHED, UNFINISHED, is_locked, segments_of
from dragoman.files.xml import Element, Text, allowed_in_xml, escape_xml
from dragoman.text.languages import base_of, resolve, tag
from dragoman.text.marked import Marked, Tag

_CLOSES = {"ex", "ept", "ec", "em"}
_OPENS = {"bx", "bpt", "sc", "sm"}


def read_xliff(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """The sources of the units that have no translation; each is written as the unit's target.

    Targets that are translated or approved stay, and so do units with translate="no". Raises
    InputError as `read_xml` does.
    """
    left, into = Left(), languages[1]
    document = read_xml(data, name, {"trans-unit", "segment"}, partial(_read_unit, left))

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        made = document.assemble(parts)
        if not into or not any(each.is_changed for each in parts):
            return made
        text, encode = decode_xml(made, name)
        return encode([_FILE.sub(partial(_with_language, into), text)])

    return replace(document, assemble=assemble, left=(*document.left, *left))


_FILE = re.compile(r"<(?:\w+:)?(?:file|xliff)\s(?:[^<>]*?\s)?(source-language|srcLang)\s*=[^<>]*>")


def _with_language(into: str, tag: re.Match[str]) -> str:
    """The start tag of a file that says into which language it is translated."""
    name = "trgLang" if tag[1] == "srcLang" else "target-language"
    return tag[0] if name in tag[0] else _with(tag[0], name, into)


def _with(tag: str, name: str, value: str) -> str:
    """A start tag with this value of an attribute."""
    tag = re.sub(rf"\s{name}\s*=\s*(?:\"[^\"]*\"|'[^']*')", "", tag)
    return re.sub(r"^<[^\s/>]+", lambda start: f"{start[0]} {name}={quoteattr(value)}", tag)


_EMPTY_SEGMENT = re.compile(r"<(?:\w+:)?mrk\s[^<>]*(?:/>|>\s*</)")


def _read_unit(left: Left, unit: Element, text: str, raw: Raw) -> Segment | None:
    """A unit of XLIFF 1.2 or a segment of XLIFF 2; what is to be told of others goes to `left`."""
    source, target = unit.child("seg-source") or unit.child("source"), unit.child("target")
    where = f"unit {unit.inherited('id') or ''}".rstrip()
    if source is None:
        return None
    locked = any(is_locked(unit, mid) for mid in ("", *segments_of(source)))
    if unit.inherited("translate") == "no" or locked:
        if any(map(str.isalpha, source.text)):
            left.add("units that are marked as not to be translated, or locked", where)
        return None
    is_new = unit.local == "segment"
    stated = unit if is_new or target is None else target
    state, approved = stated.attributes.get("state"), unit.attributes.get("approved") == "yes"
    if target is not None and (done := target.text.strip()):
        is_same = done == source.text.strip()
        is_open = state not in FINISHED if is_same else state in UNFINISHED
        if approved or not is_open:
            if _EMPTY_SEGMENT.search(text, target.start, target.end):
                left.add("units that are translated in part", where)
            return None
    tag = f"<{source.prefix}target>"
    place = (source.end, source.end)
    if target is not None:
        tag = text[target.start : target.content_start].rstrip("/> \t\r\n") + ">"
        place = target.start, target.end
    before = "" if target is not None else _indent(source, text)
    if is_new:
        start = _with(text[unit.start : unit.content_start], "state", "translated")
        before = start + text[unit.content_start : place[0]] + before
        place = unit.start, place[1]
    else:
        tag = _with(tag, "state", "needs-review-translation")
    marked = _marked(source, mixed(source, text, _role_in_xliff, raw))
    write = _writer(source, before + tag, f"</{source.prefix}target>")
    segment = Segment(*place, marked, write, where, beside=True)
    return segment if has_letters(marked) else None


def read_tmx(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """The texts of a memory that have no translation into a language.

    Without `languages`, the source is that of the header, and the target the only other one. Raises
    InputError where that does not tell them, and as `read_xml` does.
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
    read = partial(_read_entry, (source, into), left)
    document = read_xml(data, name, {"tu"}, read)
    return replace(document, left=(*document.left, *left))


_SOURCE = re.compile(r"<header\s[^<>]*?\bsrclang\s*=\s*[\"']([\w-]+)")
_CODE = re.compile(r"<tuv\s[^<>]*?\blang\s*=\s*[\"']([\w-]+)")


def _read_entry(
    languages: tuple[str, str], left: Left, entry: Element, text: str, raw: Raw
) -> Segment | None:
    """A unit of TMX; one that has only other languages is told to `left`."""
    where = f"unit {entry.attributes.get('tuid', '')}".rstrip()
    variants = {_language_of(each): each for each in entry.elements if each.local == "tuv"}
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
        start = f"{_indent(source, text)}<{source.prefix}tuv xml:lang={language}>{start}"
        end += f"</{source.prefix}tuv>"
    marked = _marked(spoken, mixed(spoken, text, _role_in_tmx, raw))
    write = _writer(spoken, start, end)
    segment = Segment(*place, marked, write, where, beside=True)
    return segment if has_letters(marked) else None


def _language_of(variant: Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang", "")


def _indent(element: Element, text: str) -> str:
    """The line break and the spaces before an element."""
    start = element.start
    while start and text[start - 1].isspace():
        start -= 1
    return text[start : element.start]


def _marked(source: Element, pieces: list[str | Tag]) -> Marked:
    if source.inherited("xml:space") != "preserve":
        pieces = [*without_breaks(pieces).pieces]
    else:
        pieces = [q for p in pieces for q in (lines(p) if isinstance(p, str) else (p,))]
    return with_elements(pieces, str if _is_cdata(source) else escape_xml)


def _writer(source: Element, before: str, after: str) -> Callable[[Marked], str]:
    """What writes a translation between two texts, as CDATA where the source is that."""
    if _is_cdata(source):
        return lambda marked: f"{before}{_as_cdata(marked.written())}{after}"
    return lambda marked: f"{before}{marked.written(escape_xml)}{after}"


def _is_cdata(source: Element) -> bool:
    return all(isinstance(child, Text) and child.is_cdata for child in source.children)


def _as_cdata(text: str) -> str:
    return f"<![CDATA[{allowed_in_xml(text).replace(']]>', ']]]]><![CDATA[>')}]]>"


def _role_in_xliff(element: Element) -> Tag | Half:
    """How an element in a text of XLIFF is read."""
    values, name = element.attributes, element.local
    if name in {"g", "pc", "mrk"}:
        kept = values.get("mtype") == "protected" or values.get("translate") == "no"
        return Tag("", "open", kept=kept)
    if name in _OPENS or name in _CLOSES:
        key = values.get("startRef") or values.get("id", "")
        if rid := values.get("rid"):  # memoQ has both in one text
            key = f"rid {rid}"
        return Half("", key, name in _OPENS)
    return Tag("", shown=" " if values.get("ctype") == "lb" else "")


def _role_in_tmx(element: Element) -> Tag | Half:
    """How an element in a text of TMX is read."""
    if element.local in {"bpt", "ept"}:
        return Half("", element.attributes.get("i", ""), element.local == "bpt")
    return Tag("", "open") if element.local == "hi" else Tag("")
