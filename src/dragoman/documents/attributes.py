"""XML attributes, headers of sheets and index entries that contain text, which are set aside."""

import re
from collections.abc import Iterator, Mapping
from functools import partial

from dragoman.documents.characters import unescaped
from dragoman.documents.document import Asides, Segment
from dragoman.documents.paragraphs import SetAside, has_letters, lines
from dragoman.files.xml import escape_xml
from dragoman.text.marked import Marked, Tag, merged, verbatim

_NO_TAG = r"<!--(?s:.*?)(?:-->|\Z)|<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)"
_QUOTED = r"\"[^\"<]*+\"|'[^'<]*+'"
_ATTRIBUTE = re.compile(rf"(?:[^\s:\"'=<>/]++:)?([^\s:\"'=<>/]++)\s*+=\s*+({_QUOTED})")

_HEADER = re.compile(
    rf"{_NO_TAG}|(<(?:\w+:)?((?:odd|even|first)(?:Header|Footer))(?:\s[^<>]*+)?>)([^<]++)(?=</)"
)
_SECTION = re.compile(r"(&amp;[LCR])")
_CODE = re.compile(
    r"&amp;(?:(&amp;)|([PNDTZFA])|\"[^\"]*+\"|&quot;(?s:.*?)&quot;|K[0-9A-F]{6}|K\d\d[+-]\d{3}|\d+"
    r"|&\w+;|.)"
)
"""What follows & in a sheet header: another &, a computed value (a page number), or a format."""
_LONGEST_HEADER = 255
"""Characters beyond which Excel reports the file as damaged."""

_CODES = r"<(?:\w+:)?instrText(?:\s[^<>]*+)?>"
_NEXT = (
    rf"</(?:\w+:)?instrText>(?:\s*+<(?!/?(?:\w+:)?(?:fldChar|instrText|p)\b)[^<>]*+>)*+\s*+{_CODES}"
)
_ENTRY = re.compile(
    rf"{_NO_TAG}|({_CODES}\s*+XE\s++(?:\"|&quot;)(?:{_NEXT})?+)([^<>\"\\]+?)"
    rf"(?=(?:{_NEXT})?+(?:\"|&quot;))"
)
"""An entry of an index of Word: the field up to the quotation mark, also if that ends a run, and
the words, if all are in one run."""


def attributes_of(names: Mapping[str, str], most: Mapping[str, int] | None = None) -> SetAside:
    """Return a function that sets aside XML attributes: those of each element, by local names.

    `most` limits the length of some of them, in characters.
    """
    limits, wanted = most or {}, {element: {*of.split()} for element, of in names.items()}
    tag = re.compile(
        rf"{_NO_TAG}|<(?:[\w.-]++:)?({'|'.join(names)})(?=\s)(?:[^<>\"']++|{_QUOTED})*+>"
    )

    def set_aside(text: str, asides: Asides, place: str) -> str:
        def each(element: str, found: re.Match[str]) -> str:
            name, quoted = found.groups()
            quote, raw = quoted[0], quoted[1:-1]
            value = merged(lines(unescaped(re.sub(r"[\t\r\n]", " ", raw))))
            if name not in wanted[element] or not has_letters(value):
                return found[0]
            where = f"{place}{name} of <{element}>"
            write, fault = partial(_written, quote=quote), partial(_fault, most=limits.get(name))
            mark = asides.put(raw, Segment(0, 0, value, write, where, fault))
            return f"{found[0][: -len(quoted)]}{quote}{mark}{quote}"

        def attributes(found: re.Match[str]) -> str:
            element = found[1]
            return _ATTRIBUTE.sub(partial(each, element), found[0]) if element else found[0]

        return tag.sub(attributes, text)

    return set_aside


def _fault(_raw: str, _source: Marked, marked: Marked, most: int | None) -> str:
    too_long = most and len(marked.written()) > most
    return f"Excel takes at most {most} characters there" if too_long else ""


def _written(marked: Marked, quote: str) -> str:
    text = escape_xml(marked.written()).replace(quote, "&quot;" if quote == '"' else "&apos;")
    return text.replace("\n", "&#10;").replace("\t", "&#9;")


def headers_of_sheets(text: str, asides: Asides, place: str) -> str:
    """Set aside the left, middle and right sections of a sheet's headers and footers."""

    def sections(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        parts, whole = _SECTION.split(found[3]), len(unescaped(found[3]))
        room = max(0, _LONGEST_HEADER - whole) // (len(parts) // 2 + 1)
        for n, part in enumerate(parts):
            if any(map(str.isalpha, unescaped(_CODE.sub("", part)))):
                fault = partial(_fault, most=len(unescaped(part)) + room)
                marked, where = merged(_header(part)), f"{place}{found[2]}"
                segment = Segment(0, 0, marked, _written_header, where, fault)
                parts[n] = asides.put(part, segment)
        return found[1] + "".join(parts)

    return _HEADER.sub(sections, text)


def _header(raw: str) -> Iterator[str | Tag]:
    """Yield the text of a section, with codes as tags; computed values are copied."""
    end = 0
    for code in _CODE.finditer(raw):
        yield from lines(unescaped(raw[end : code.start()]))
        end = code.end()
        if code[1]:
            yield "&"
        elif code[2]:
            yield from verbatim(f"&{code[2]}")
        else:
            yield Tag(code[0])
    yield from lines(unescaped(raw[end:]))


def _written_header(marked: Marked) -> str:
    made, kept = "", False
    for piece in marked.pieces:
        if isinstance(piece, Tag):
            made, kept = made + piece.raw, piece.kept
            continue
        if made[-1:].isdigit() and piece[:1].isdigit():  # else a part of the font size
            made += " "
        made += escape_xml(piece if kept else piece.replace("&", "&&"))
    return made


def entries_of_index(text: str, asides: Asides, place: str) -> str:
    """Set aside the entries of an index in a document of Word, and their subentries."""

    def entry(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        parts = found[2].split(":")
        for n, part in enumerate(parts):
            if any(map(str.isalpha, unescaped(part))):
                source, where = Marked((unescaped(part),)), f"{place}index entry"
                parts[n] = asides.put(part, Segment(0, 0, source, _written_entry, where))
        return found[1] + ":".join(parts)

    return _ENTRY.sub(entry, text) if "instrText" in text else text


def _written_entry(marked: Marked) -> str:
    return escape_xml(re.sub(r'[\\":;]', r"\\\g<0>", marked.written()))
