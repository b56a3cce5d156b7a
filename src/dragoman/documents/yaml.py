"""YAML: string values, in their original style; keys and everything else are preserved.

PyYAML locates each value. Values with an explicit type (`!Ref x`) and those that are read as
numbers, dates and the like are left alone. A paragraph of a folded block (`>`) is one text; in a
literal block (`|`), only wrapped prose is.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, pairwise
from typing import Any

from dragoman.documents import choices
from dragoman.documents.characters import SURROGATE, decoded, without_damage
from dragoman.documents.document import Document, Keys, Left, Segment, one_part
from dragoman.documents.fragments import forms, places, with_elements
from dragoman.documents.lines import FULL, at_break, widest_of, wrapped
from dragoman.errors import InputError
from dragoman.text.marked import Marked, Tag
from dragoman.text.spans import Span

_CODE = re.compile(r"[=;<>{}|&$\\`]|\(\)|^\W|\w:(?!//)\s")
"""Signs of code: a line that begins with a sign, or contains those of programs; rare in prose."""
DEEPEST = 200
"""Maximum number of open collections: the parser's time grows with their square."""
_STRINGS = {None, "!", "tag:yaml.org,2002:str"}
"""The types of values that are text."""
_PROPERTIES = re.compile(r"(?:[&!]\S*+\s++|#[^\r\n]*+\s++)*+")
"""An anchor, a type and comments before a value."""
_LINE = re.compile(r"\S(?:[^\r\n]*\S)?")
_PLAIN = re.compile(r"[^\W\d_](?:[^\x00-\x1f\x7f-\xa0:#\u2028\u2029\ufeff]|:(?=\S)|(?<=\S)#)*")
_FLOW = re.compile(r"[][{},]")
"""What ends a plain value in a flow collection."""
_ESCAPES = {
    '"': re.compile(r"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\."),
    "'": re.compile("''"),
}
"""How one character is escaped, by quote."""
_SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def read(data: bytes, name: str, columns: Sequence[str] = ()) -> Document:
    """Read the values of a YAML file; those under the keys `columns`, if any.

    Raises InputError if it is not YAML, and for a key that it lacks.
    """
    text, encode = decoded(data, name)
    left, keys = Left(), Keys(columns)
    document = one_part(text, encode, values(text, name, keys, left), name, left)
    keys.reject_missing(name)
    return document


def values(text: str, name: str, keys: Keys, left: Left, line: int = 1) -> Iterator[Segment]:
    """Yield the values of a text that begins at this line. Raises InputError if it is not YAML."""
    import yaml

    clean = without_damage(text)
    opened, flows, key = list[str](), list[bool](), ""
    try:
        for event in yaml.parse(clean, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
                flows.pop()
                keys.leave(len(opened))
            elif isinstance(event, yaml.NodeEvent):
                state = opened[-1] if opened else "item"
                if opened:
                    opened[-1] = {"key": "value", "value": "key", "item": "item"}[state]
                if state == "key":
                    named = event.value if isinstance(event, yaml.ScalarEvent) else ""
                    key = named[:40]
                    keys.enter(named, len(opened))
                if isinstance(event, yaml.CollectionStartEvent):
                    opened.append("key" if isinstance(event, yaml.MappingStartEvent) else "item")
                    flows.append(event.flow_style)
                elif (
                    state != "key"
                    and isinstance(event, yaml.ScalarEvent)
                    and keys.hold(len(opened))
                ):
                    where = f"line {event.start_mark.line + line}, {key}".rstrip(", ")
                    yield from _value(text, event, where, left, flow=any(flows[-1:]))
            if len(opened) > DEEPEST:
                raise InputError(f"{name} has more than {DEEPEST} levels; cut it into parts.")
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{name} is not YAML: {' '.join(str(error).split())}.") from None


def _value(
    text: str,
    event: Any,  # noqa: ANN401
    where: str,
    left: Left,
    *,
    flow: bool,
) -> Iterator[Segment]:
    """Yield the segments of a text value, unless it is left alone."""
    value = event.value
    if not any(map(str.isalpha, value)) or not (event.style or event.tag or _is_text(value)):
        return
    found, why = None, "values in an unsupported style"
    if event.tag not in _STRINGS:
        why = "values with a type of their own"
    elif choices.CHOICE.search(value):
        found, why = _branches(text, event, where), choices.LEFT
    else:
        found = [*_scalar(text, event, where, flow=flow)] or None
    if found is None:
        left.add(why, where)
    yield from found or ()


def _branches(text: str, event: Any, where: str) -> list[Segment] | None:  # noqa: ANN401
    """Return the branches of a message that chooses a form, in quotes and on one line."""
    escape, found = _ESCAPES.get(event.style), choices.branches(event.value)
    if escape is None or found is None:
        return None
    start = _start(text, event) + 1
    raw = text[start : event.end_mark.index - 1]
    plain = escape.sub("\0", raw)
    pairs = zip(plain, event.value, strict=False)
    if len(plain) != len(event.value) or any(a not in ("\0", b) for a, b in pairs):
        return None
    at = places(raw, escape, start)
    write = partial(_written_in, quote=event.style, written=choices.written)
    return [Segment(at(a), at(b), source, write, where) for a, b, source in found]


def _scalar(text: str, event: Any, where: str, *, flow: bool) -> Iterator[Segment]:  # noqa: ANN401
    """Yield the text of one value, or the lines of a block."""
    start, end = _start(text, event), event.end_mark.index
    style, value = event.style or "", event.value
    if SURROGATE.search(text, start, end):
        yield Segment(start, end, Marked((text[start:end],)), Marked.written, where)
        return
    if style in ("|", ">"):
        found = _lines(text, start, end, value)
        if style == "|":
            paragraphs = _paragraphs(text, [*chain(*found)])
            found = [lines for each in paragraphs for lines in _sentences(text, each)]
        yield from (_folded(text, lines, where) for lines in found)
        return
    after = "" if style else _after(text, end)
    if not after and (parts := _forms(text, start, end, style)):
        write = partial(_written_in, quote=style) if style else Marked.written
        for a, b, form in parts:
            fault = partial(_needs_quotes, style=style, flow=flow, is_first=a == start)
            yield Segment(a, b, form, write, where, fault)
    elif style or text[start:end].split() == value.split():
        value = _unfolded(text[start:end]) or value
        pieces = (Tag(p, shown=" ") if "\n" in p else p for p in re.split("(\n+)", value))
        write = partial(written, style=style, flow=flow, after=after.replace("\t", " "))
        yield Segment(start, end + len(after), with_elements(pieces), write, where)


def _start(text: str, event: Any) -> int:  # noqa: ANN401
    """Return where a value begins, after its properties."""
    return next(_PROPERTIES.finditer(text, event.start_mark.index, event.end_mark.index)).end()


def _unfolded(raw: str) -> str | None:
    """Return the value of raw text in which some line break is read as nothing; None if none is."""
    import yaml

    def read(found: re.Match[str]) -> str:
        place, end = found.span()
        return at_break(raw[max(0, place - 8) : place], raw[end : end + 8]) and found[0]

    text = re.sub(r"\r?\n[ \t]*", read, raw)
    return None if text == raw else str(yaml.load(text, yaml.BaseLoader))  # noqa: S506 -- strings


def _forms(text: str, start: int, end: int, style: str) -> list[tuple[int, int, Marked]]:
    """Return the forms of a one-line message, which bars separate, with places; [] for others."""
    size, raw = len(style), text[start:end]
    if "|" not in raw or "\n" in raw:
        return []
    read = {"'": lambda raw: raw.replace("''", "'"), '"': lambda raw: json.loads(f'"{raw}"')}
    try:
        found = forms(text, start + size, end - size, read.get(style, str))
    except ValueError:  # an escape that JSON does not have
        return []
    return found if len(found) > 1 else []


def _lines(text: str, start: int, end: int, value: str) -> list[list[Span]]:
    """Return the lines of a block: for each line of the value, those of the file that form it.

    Return [] if they differ in more than white space.
    """
    _, *lines = _LINE.finditer(text, start, end)  # without the sign of the block
    found, number = list[list[Span]](), 0
    for line in filter(None, ("".join(each.split()) for each in value.split("\n"))):
        first, seen = number, ""
        while number < len(lines) and len(seen) < len(line):
            seen += "".join(lines[number][0].split())
            number += 1
        if seen != line:
            return []
        found.append([match.span() for match in lines[first:number]])
    return found


def _folded(text: str, lines: list[Span], where: str) -> Segment:
    """Return lines that are read as one; those of the translation are about as long."""
    whole, *rows = (text[slice(*line)] for line in lines)
    for row in rows:
        whole += at_break(whole, row) + row
    source = with_elements((whole,))
    write: Callable[[Marked], str] = Marked.written
    if len(lines) > 1 and text[lines[1][0] - 1] == " ":  # unless the block has no indent
        between = text[lines[0][1] : lines[1][0]].lstrip(" \t")
        width = max(end - start for start, end in lines)
        write = partial(_fold, between, width)
    return Segment(lines[0][0], lines[-1][1], source, write, where)


def _fold(between: str, width: int, marked: Marked) -> str:
    """Wrap a text in lines of at most `width` characters, as far as its spaces allow."""
    first, *rest = re.split(r"(?<=\S) (?=\S)", marked.written())
    pieces, length = [first], len(first)
    for word in rest:
        fits = length + 1 + len(word) <= width
        pieces += " " if fits else between, word
        length = fits * (length + 1) + len(word)
    return "".join(pieces)


def _paragraphs(text: str, lines: Sequence[Span]) -> Iterator[Sequence[Span]]:
    """Yield consecutive lines with the same indent."""
    begun, last = 0, ("", 0)
    for number, (start, end) in enumerate(lines):
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        if number and (not indent or indent != last[0] or text.count("\n", last[1], start) != 1):
            yield lines[begun:number]
            begun = number
        last = indent, end
    if lines:
        yield lines[begun:]


def _sentences(text: str, lines: Sequence[Span]) -> Iterator[list[Span]]:
    """Yield the lines of a paragraph, with those that continue one another as one.

    Only in wrapped prose, where no line had room for the next word and nothing looks like code.
    """
    found = [text[slice(*line)] for line in lines]
    most, widest = max(map(len, found)), widest_of(found)
    full = all(len(line) + 1 + len(after.split()[0]) > most for line, after in pairwise(found))
    if full and max(most, widest) >= FULL and not any(map(_CODE.search, found)):
        yield from (each for _, each in wrapped(text, lines, widest))
    else:
        yield from ([line] for line in lines)


@cache
def _resolver() -> Any:  # noqa: ANN401 -- a loader
    import yaml

    return partial(yaml.SafeLoader("").resolve, yaml.ScalarNode, implicit=(True, False))


def _is_text(value: str) -> bool:
    """Return whether a plain value is read as a string."""
    return bool(_resolver()(value) == "tag:yaml.org,2002:str")


def _after(text: str, end: int) -> str:
    """Return the white space after a plain value if it contains tabs, which only these allow."""
    found = re.compile(r"\s*?[\r\n] *\t\s*").match(text, end)
    return found[0] if found else ""


def written(marked: Marked, *, style: str, flow: bool, after: str) -> str:
    """Write a value in its style, or in quotes if it needs them."""
    text = marked.written()
    if not style and _may_be_plain(text, flow=flow) and _is_text(text):
        return text + after
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return _quoted(text) + after


def _needs_quotes(
    _raw: str, _source: Marked, made: Marked, *, style: str, flow: bool, is_first: bool
) -> str:
    """Return why a form cannot be written in a value without quotes."""
    text = made.written() if is_first else f"a {made.written()}"
    fits = style or _may_be_plain(text, flow=flow)
    return "" if fits else "the string needs quotes for its translation"


def _may_be_plain(text: str, *, flow: bool) -> bool:
    is_plain = _PLAIN.fullmatch(text) is not None and not text[-1].isspace()
    return is_plain and not (flow and _FLOW.search(text))


def _written_in(
    marked: Marked, *, quote: str, written: Callable[[Marked], str] = Marked.written
) -> str:
    text = written(marked)
    return text.replace("'", "''") if quote == "'" else _quoted(text)[1:-1]


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _SPECIAL.sub(lambda c: f"\\u{ord(c[0]):04x}", quoted)
