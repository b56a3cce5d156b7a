"""XLIFF: units that have a translation, or get one."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from xml.sax.saxutils import quoteattr

from dragoman.documents.bilingual import (
    INNER,
    has_inner_text,
    indent_of,
    marked_of,
    pieces_of,
    read_source,
    writer_of,
)
from dragoman.documents.choices import CHOICE, LEFT
from dragoman.documents.document import Document, Left, Part, Segment, WrittenPart
from dragoman.documents.paragraphs import Half, Raw, Replacing, decode_xml, has_letters, read_xml
from dragoman.errors import InputError
from dragoman.files.xliff import (
    FINISHED,
    UNFINISHED,
    definitions_of,
    is_confirmed,
    is_locked,
    language,
    languages_of,
    segments_of,
)
from dragoman.files.xml import Element
from dragoman.languages import LangCodes, label_of
from dragoman.text.marked import Marked, Tag

_CLOSES = {"ex", "ept", "ec", "em"}
_OPENS = {"bx", "bpt", "sc", "sm"}
_ANGULAR = re.compile(r"(START|CLOSE)_(.*?)(?:_\d+)?")
"""Angular's names of tags: START_LINK and START_LINK_1 both end with CLOSE_LINK."""
_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)


def read(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """Read the sources of the units without a translation; each is written as the unit's target.

    Translated or approved targets are preserved, and so are units with translate="no" and files in
    languages other than these. Raises InputError if all are in others, and as `read_xml` does.
    """
    left, into, spoken = Left(), languages[1], set[LangCodes]()
    read_unit = partial(_read_unit, languages, left, spoken)
    document = read_xml(data, name, {"trans-unit", "segment"}, read_unit)
    others = [each for each in left if each.startswith(_OTHERS)]
    if others and all(_in_others(languages, declared) for declared in spoken):
        raise InputError(
            f"{name} has nothing between the languages of this translation, only {others[0]}; "
            "translate between those, or change what the file declares."
        )

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        made = document.assemble(parts)
        if not into or not any(each.is_changed for each in parts):
            return made
        text, encode = decode_xml(made, name)
        return encode([_FILE.sub(partial(_with_language, (languages[0], into)), text)])

    return replace(document, assemble=assemble, left=(*document.left, *left))


_FILE = re.compile(
    r"<!--(?s:.*?)-->|<!\[CDATA\[(?s:.*?)\]\]>|<\?(?s:.*?)\?>"
    r"|<(?:[\w.-]+:)?(?:file|xliff)\s(?:[^<>\"']|\"[^\"]*\"|'[^']*')*+>"
)
"""The start tag of a file; or text that may contain one that is not."""
_ATTRIBUTE = re.compile(r"\s([\w:.-]+)\s*=\s*(\"[^\"]*\"|'[^']*')")


def _with_language(languages: tuple[str | None, str], found: re.Match[str]) -> str:
    """Return the start tag of a file, declaring the language into which it is translated."""
    given = {name: value[1:-1] for name, value in _ATTRIBUTE.findall(found[0])}
    names = ("srcLang", "trgLang") if "srcLang" in given else ("source-language", "target-language")
    declared = language(given.get(names[0])), language(given.get(names[1]))
    if found[0][1] in "!?" or names[0] not in given or _in_others(languages, declared):
        return found[0]
    is_said = declared[1] is not None and not _is_another(declared[1], languages[1])
    return found[0] if is_said else _with(found[0], names[1], languages[1])


def _with(tag: str, name: str, value: str) -> str:
    """Return a start tag with a new value of an attribute, and without details of its state."""
    gone = {name, "state-qualifier", "subState"}
    tag = _ATTRIBUTE.sub(lambda each: "" if each[1] in gone else each[0], tag)
    return re.sub(r"^<[^\s/>]+", lambda start: f"{start[0]} {name}={quoteattr(value)}", tag)


_LOCKED = "units that are marked as not to be translated, or locked"
_EMPTY = "units that are confirmed without a translation"
_OTHERS = "units of a file in other languages"
_IN_PART = "units that are translated in part"


class _XliffUnit:
    """A unit of XLIFF 1.2 or a segment of XLIFF 2."""

    def __init__(self, element: Element, source: Element, text: str) -> None:
        """`source` is `<seg-source>`, which may be cut into segments, or `<source>`; `text` is the
        whole file.
        """
        self.element, self.source, self.text = element, source, text
        self.target = element.child("target")
        self.where = f"unit {(element.inherited('id') or '')[:60]}".rstrip()
        self.cut, self.done = segments_of(source), segments_of(self.target)
        self.has_target = self.target is not None and self.target.text.strip() != ""
        self.is_cut = bool(self.cut and not element.holds and (self.done or not self.has_target))
        self.definitions = definitions_of(element)
        stated = element if element.local == "segment" else self.target
        self.state = "" if stated is None else stated.attributes.get("state", "")

    def why_not(self, others: str) -> str | None:
        """Return why it is not translated: it is locked, in `others`, or confirmed; "" if it has a
        translation; None if it is translated.
        """
        said = [] if self.is_cut else [*self.definitions.values()]
        is_no = self.element.inherited("translate") == "no"
        if is_no or any(map(is_locked, (self.element.attributes, *said))):
            return _LOCKED
        if others or self.is_cut:
            return others or None
        if _is_open(self.state, self.source, self.target) and not any(
            is_confirmed(self.element, each) for each in said or [{}]
        ):
            return None
        is_whole = all(each.text.strip() for each in self.done.values())
        return _EMPTY if not self.has_target else "" if is_whole else _IN_PART

    def around(self) -> tuple[tuple[int, int], str, str]:
        """Return where the target is written, how it begins, and how it ends."""
        source, target, text = self.source, self.target, self.text
        name = f"{source.prefix}target" if target is None else target.name
        place, before, tag = (source.end, source.end), indent_of(source, text), f"<{name}>"
        if target is not None:
            place, before, tag = (target.start, target.end), "", _start_tag(target, text)
        if self.element.local != "segment":
            tag = _with(tag, "state", "needs-review-translation")
            return place, before + tag, f"</{name}>"
        start = _with(_start_tag(self.element, text), "state", "translated")
        start += text[self.element.content_start : place[0]]
        return (self.element.start, place[1]), start + before + tag, f"</{name}>"


def _read_unit(
    languages: LangCodes,
    left: Left,
    spoken: set[LangCodes],
    element: Element,
    text: str,
    raw: Raw,
) -> Segment | Replacing | None:
    """Read what is translated in a unit, and add to `left` what must be reported.

    The languages that it declares are added to `spoken`.
    """
    source = element.child("seg-source") or element.child("source")
    if source is None:
        return None
    unit, declared = _XliffUnit(element, source, text), languages_of(element)
    spoken.add(declared)
    is_other = _in_others(languages, declared)
    why = unit.why_not(f"{_OTHERS}: {', '.join(filter(None, declared))}" if is_other else "")
    if why is None:
        if has_inner_text(source):
            left.add(INNER, unit.where)
        if unit.is_cut:
            return _read_segments(left, unit, raw)
        place, before, after = unit.around()
        pieces = pieces_of(source, text, _role_in_xliff, raw)
        return read_source(source, pieces, place, (before, after), unit.where, left)
    if why and any(map(str.isalpha, source.text)):
        left.add(why, unit.where)
    return None


def _in_others(languages: LangCodes, declared: LangCodes) -> bool:
    """Return whether a file declares languages other than those of the translation.

    A file into its own language may be translated into any: Xcode exports such templates.
    """
    is_template = declared[0] is not None and not _is_another(declared[1], declared[0])
    into_another = _is_another(declared[1], languages[1]) and not is_template
    return _is_another(declared[0], languages[0]) or into_another


def _is_another(declared: str | None, wanted: str | None) -> bool:
    return bool(declared and wanted) and label_of(declared or "") != label_of(wanted or "")


def _is_open(state: str, source: Element, target: Element | None) -> bool:
    """Return whether a target has no translation: it is empty, a copy, or not begun."""
    if target is None or not (filled := target.text.strip()):
        return True
    return state not in FINISHED if filled == source.text.strip() else state in UNFINISHED


def _start_tag(element: Element, text: str) -> str:
    """Return the start tag of an element, even an empty one, as written around a text."""
    return text[element.start : element.content_start].rstrip("/> \t\r\n") + ">"


def _read_segments(left: Left, unit: _XliffUnit, raw: Raw) -> Replacing | None:
    """Read the untranslated segments of a unit; the target contains the others unchanged.

    A new target has the source of segments that need no translation, or get none.
    """
    (place, made, after), text, where = unit.around(), unit.text, unit.where
    cut, done = unit.cut, unit.done
    framed = unit.target if unit.target is not None and done else unit.source
    segments, end = list[Segment](), framed.content_start
    for number, there in (done or cut).items():
        made += text[end : there.start]
        stays, end = text[there.start : there.end], there.end
        if (source := cut.get(number)) is not None:
            marked = marked_of(source, pieces_of(source, text, _role_in_xliff, raw))
            start, close = _start_tag(there, text), f"</{there.name}>"
            definition, target = unit.definitions.get(number, {}), done.get(number)
            confirmed = is_confirmed(unit.element, definition)
            is_open = not confirmed and _is_open(unit.state, source, target)
            why = _why_not(marked, target, is_open=is_open, is_locked=is_locked(definition))
            if why in {_LOCKED, _EMPTY} and not done:
                stays = start + close
            if why is None:
                at, write = len(made), writer_of(source, start, close)
                now = at, at + len(stays)
                segments.append(Segment(*now, marked, write, where, beside=True))
            elif why:
                left.add(why, f"{where}, segment {number}")
        made += stays
    if not cut.keys() <= (done or cut).keys():
        left.add(_IN_PART, where)
    made += text[end : framed.content_end] + after
    return Replacing(*place, Part(made, tuple(segments))) if segments else None


def _why_not(
    marked: Marked, target: Element | None, *, is_open: bool, is_locked: bool
) -> str | None:
    """Return why a segment is not translated: "" if that need not be reported; None if it is."""
    if not has_letters(marked):
        return ""
    if is_locked:
        return _LOCKED
    if not is_open:
        return "" if target is not None and target.text.strip() else _EMPTY
    return LEFT if CHOICE.search(marked.text) else None


def _role_in_xliff(element: Element) -> Tag | Half:
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
        return Half("", key, name in _OPENS, kept=values.get("translate") == "no")
    return Tag("", shown=" " if _is_break(element) else "")


def _is_break(element: Element) -> bool:
    """Return whether a code is a line break: it says so, or stands for an HTML `<br>`."""
    values = element.attributes
    if values.get("ctype") == "lb" or values.get("subType") == "xlf:lb":
        return True
    originals = (element.text, *(values.get(name, "") for name in ("equiv-text", "equiv", "disp")))
    return any(_BREAK.fullmatch(each.strip()) for each in originals)
