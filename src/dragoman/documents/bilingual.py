"""XLIFF and TMX: units of text that have a translation, or get one."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from xml.sax.saxutils import quoteattr

from dragoman.decoding import LangCodes
from dragoman.documents.choices import CHOICE, LEFT, with_branches, written
from dragoman.documents.document import Document, Left, Part, Segment, WrittenPart
from dragoman.documents.fragments import with_elements
from dragoman.documents.paragraphs import (
    Half,
    Raw,
    Replacing,
    decode_xml,
    has_letters,
    lines,
    mixed,
    paired,
    read_xml,
    without_breaks,
)
from dragoman.errors import InputError
from dragoman.files.xliff import (
    FINISHED,
    UNFINISHED,
    codes_in,
    is_confirmed,
    is_locked,
    languages_of,
    said_of_segments,
    segments_of,
)
from dragoman.files.xml import Element, Text, allowed_in_xml, escape_xml
from dragoman.text.languages import base_of, label_of, resolve, tag
from dragoman.text.marked import Marked, Tag

_CLOSES = {"ex", "ept", "ec", "em"}
_OPENS = {"bx", "bpt", "sc", "sm"}
_ANGULAR = re.compile(r"(START|CLOSE)_(.*?)(?:_\d+)?")
"""Its names for tags: START_LINK and START_LINK_1 both end with CLOSE_LINK."""


def read_xliff(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """The sources of the units that have no translation; each is written as the unit's target.

    Targets that are translated or approved stay, and so do units with translate="no". Raises
    InputError as `read_xml` does.
    """
    left, into = Left(), languages[1]
    read = partial(_read_unit, languages, left)
    document = read_xml(data, name, {"trans-unit", "segment"}, read)

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
    """A start tag with this value of an attribute, and without what says more of a state."""
    replaced = rf"\s(?:{name}|state-qualifier|subState)\s*=\s*(?:\"[^\"]*\"|'[^']*')"
    tag = re.sub(replaced, "", tag)
    return re.sub(r"^<[^\s/>]+", lambda start: f"{start[0]} {name}={quoteattr(value)}", tag)


_LOCKED = "units that are marked as not to be translated, or locked"
_EMPTY = "units that are confirmed without a translation"
_IN_PART = "units that are translated in part"


def _read_unit(
    languages: LangCodes, left: Left, unit: Element, text: str, raw: Raw
) -> Segment | Replacing | None:
    """A unit of XLIFF 1.2 or a segment of XLIFF 2; what is to be told of others goes to `left`."""
    source, target = unit.child("seg-source") or unit.child("source"), unit.child("target")
    where = f"unit {unit.inherited('id') or ''}".rstrip()
    if source is None:
        return None
    why = _LOCKED if unit.inherited("translate") == "no" or is_locked(unit, {}) else ""
    if why := why or _foreign(languages, languages_of(unit)):
        if any(map(str.isalpha, source.text)):
            left.add(why, where)
        return None
    cut, done = segments_of(source), segments_of(target)
    has_text = target is not None and target.text.strip() != ""
    if cut and not unit.holds and (done or not has_text):
        return _read_segments(left, unit, text, where)
    if _is_open(unit, source, target, {}):
        return _read_whole(left, unit, text, raw, where)
    if not has_text:
        left.add(_EMPTY, where)
    elif not all(each.text.strip() for each in done.values()):
        left.add(_IN_PART, where)
    return None


def _foreign(asked: LangCodes, declared: LangCodes) -> str:
    """Why a unit is none for a translation between these languages; "" if it is.

    One into the language that it is from is for any: Xcode exports such templates.
    """
    alike = [
        not (a and b) or label_of(a) == label_of(b) for a, b in zip(asked, declared, strict=True)
    ]
    source, target = (label_of(code or "") for code in declared)
    if alike[0] and (alike[1] or source == target):
        return ""
    return f"units of a file in other languages: {', '.join(filter(None, declared))}"


def _read_whole(
    left: Left, unit: Element, text: str, raw: Raw, where: str
) -> Segment | Replacing | None:
    """A unit without segments."""
    source, target = unit.child("seg-source") or unit.child("source"), unit.child("target")
    assert source is not None  # noqa: S101 -- it is open
    place, before = _begun(unit, source, target, text)
    after = f"</{source.prefix}target>"
    pieces = _pieces(source, text, _role_in_xliff, raw)
    marked = _marked(source, pieces)
    if not CHOICE.search(marked.text):
        write = _writer(source, before, after)
        segment = Segment(*place, marked, write, where, beside=True)
        return segment if has_letters(marked) else None
    found = None if unit.holds or _is_cdata(source) else with_branches(pieces, escape_xml)
    if found is None:
        left.add(LEFT, where)
        return None
    return Replacing(*place, _with_places(before, found, after, where))


def _is_open(
    unit: Element, source: Element, target: Element | None, said: Mapping[str, str]
) -> bool:
    """Whether a unit, or a segment of it, is to be translated: not what is in its target."""
    if is_confirmed(unit, said):
        return False
    if target is None or not (done := target.text.strip()):
        return True
    stated = unit if unit.local == "segment" else unit.child("target") or target
    state = stated.attributes.get("state")
    return state not in FINISHED if done == source.text.strip() else state in UNFINISHED


def _begun(
    unit: Element, source: Element, target: Element | None, text: str
) -> tuple[tuple[int, int], str]:
    """Where a target is written, and how it begins."""
    tag = f"<{source.prefix}target>"
    place, before = (source.end, source.end), _indent(source, text)
    if target is not None:
        tag = text[target.start : target.content_start].rstrip("/> \t\r\n") + ">"
        place, before = (target.start, target.end), ""
    if unit.local != "segment":
        return place, before + _with(tag, "state", "needs-review-translation")
    start = _with(text[unit.start : unit.content_start], "state", "translated")
    return (unit.start, place[1]), start + text[unit.content_start : place[0]] + before + tag


def _with_places(before: str, found: list[str | Tag | Marked], after: str, where: str) -> Part:
    """A message that chooses a form, whose branches are translated."""
    made, segments = before, list[Segment]()
    for piece in found:
        if isinstance(piece, Marked):
            end = len(made) + len(raw := written(piece, escape_xml))
            write = partial(written, escape=escape_xml)
            segments.append(Segment(len(made), end, piece, write, where))
        else:
            raw = piece.raw if isinstance(piece, Tag) else escape_xml(piece)
        made += raw
    return Part(made + after, tuple(segments))


def _read_segments(left: Left, unit: Element, text: str, where: str) -> Replacing | None:
    """The segments of a unit that are not translated; the target has the others as they are."""
    around, target = unit.child("seg-source"), unit.child("target")
    cut, done, said = segments_of(around), segments_of(target), said_of_segments(unit)
    assert around is not None  # noqa: S101 -- it has the segments
    place, made = _begun(unit, around, target, text)
    framed = target if target is not None and done else around
    segments, end = list[Segment](), framed.content_start
    for number, there in (done or cut).items():
        start = text[there.start : there.content_start].rstrip("/> \t\r\n") + ">"
        close, stays = f"</{there.name}>", text[there.start : there.end]
        made += text[end : there.start]
        end = there.end
        if (source := cut.get(number)) is not None:
            pieces = _pieces(source, text, _role_in_xliff, lambda e: text[e.start : e.end])
            marked = _marked(source, pieces)
            stays = stays if done or not has_letters(marked) else start + close
            each = source, done.get(number), said.get(number, {})
            if (why := _why_not(unit, *each, marked)) is None:
                at, write = len(made), _writer(source, start, close)
                place_there = at, at + len(stays)
                segments.append(Segment(*place_there, marked, write, where, beside=True))
            elif why:
                left.add(why, f"{where}, segment {number}")
        made += stays
    if not cut.keys() <= (done or cut).keys():
        left.add(_IN_PART, where)
    made += text[end : framed.content_end] + f"</{around.prefix}target>"
    return Replacing(*place, Part(made, tuple(segments))) if segments else None


def _why_not(
    unit: Element, source: Element, done: Element | None, said: Mapping[str, str], marked: Marked
) -> str | None:
    """Why a segment is not translated: "" where that need not be told; None if it is."""
    if not has_letters(marked):
        return ""
    if is_locked(unit, said):
        return _LOCKED
    if not _is_open(unit, source, done, said):
        return "" if done is not None and done.text.strip() else _EMPTY
    return LEFT if CHOICE.search(marked.text) else None


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
    marked = _marked(spoken, _pieces(spoken, text, _role_in_tmx, raw))
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


def _pieces(
    source: Element, text: str, role: Callable[[Element], Tag | Half], raw: Raw
) -> list[str | Tag]:
    """Text and tags, with white space as it is read."""
    pieces = mixed(source, text, role, raw)
    pieces = paired(q for p in pieces for q in (_codes(p, source) if isinstance(p, str) else (p,)))
    is_kept = source.inherited("xml:space") == "preserve"
    return pieces if is_kept else [*without_breaks(pieces).pieces]


def _codes(text: str, source: Element) -> Iterator[str | Tag | Half]:
    """A text in which the markup of Phrase is tags."""
    place = 0
    for found in codes_in(text, source.parent) if source.parent is not None else ():
        begins, ends, _ = found.groups()
        yield text[place : found.start()]
        raw, place = escape_xml(found[0]), found.end()
        yield Half(raw, begins or ends, begins is not None) if begins or ends else Tag(raw)
    yield text[place:]


def _marked(source: Element, pieces: list[str | Tag]) -> Marked:
    broken = (q for p in pieces for q in (lines(p) if isinstance(p, str) else (p,)))
    return with_elements(broken, str if _is_cdata(source) else escape_xml)


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
    if angular := _ANGULAR.fullmatch(values.get("id", "")) if name == "x" else None:
        return Half("", angular[2], angular[1] == "START")
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
