"""YAML: the strings that are values, in the style that they have; keys and all else stay.

PyYAML says where each one is. Values with a type of their own (`!Ref x`) and those that are read as
numbers, dates and the like are left alone, and so are messages that choose a form. A paragraph of a
block that is folded (`>`) is one text; of one whose lines stay (`|`), what is wrapped prose.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, pairwise
from typing import Any

from dragoman.documents.characters import SURROGATE, decoded, without_damage
from dragoman.documents.document import Document, Segment, one_part
from dragoman.documents.json import CHOICE
from dragoman.documents.lines import FULL, wrapped
from dragoman.errors import InputError
from dragoman.text.marked import Marked, Tag, merged
from dragoman.text.spans import Span

_CODE = re.compile(r"[=;<>{}|&$\\`]|\(\)|^\W|\w:(?!//)\s")
"""What hardly stands in prose: a line that begins with a sign, or has those of programs."""
DEEPEST = 200
"""Most collections that are open at a time: the parser's time grows with their square."""
_PLAIN = re.compile(r"[^\W\d_](?:[^\x00-\x1f\x7f-\xa0:#\u2028\u2029\ufeff]|:(?=\S)|(?<=\S)#)*")
_SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def read(data: bytes, name: str) -> Document:
    """The values of a YAML file. Raises InputError for what is none."""
    text, encode = decoded(data, name)
    left = list[str]()
    document = one_part(text, encode, _segments(text, name, left), name)
    return replace(document, left=tuple(left))


def _segments(text: str, name: str, left: list[str]) -> Iterator[Segment]:
    """The texts, in order; what is left alone is added to `left`."""
    import yaml

    clean = without_damage(text)
    opened, flows, key = list[str](), list[bool](), ""
    try:
        for event in yaml.parse(clean, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
                flows.pop()
            elif isinstance(event, yaml.NodeEvent):
                state = opened[-1] if opened else "item"
                if opened:
                    opened[-1] = {"key": "value", "value": "key", "item": "item"}[state]
                if isinstance(event, yaml.CollectionStartEvent):
                    opened.append("key" if isinstance(event, yaml.MappingStartEvent) else "item")
                    flows.append(event.flow_style)
                elif isinstance(event, yaml.ScalarEvent) and state == "key":
                    key = event.value[:40]
                elif isinstance(event, yaml.ScalarEvent) and event.tag is None:
                    where = f"line {event.start_mark.line + 1}, {key}".rstrip(", ")
                    found = _scalar(text, event, where, flow=any(flows[-1:]))
                    yield from _without_choices(found, event.value, where, left)
            if len(opened) > DEEPEST:
                raise InputError(f"{name} has more than {DEEPEST} levels; cut it into parts.")
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{name} is not YAML: {' '.join(str(error).split())}.") from None


def _without_choices(
    segments: Iterator[Segment], value: str, where: str, left: list[str]
) -> Iterator[Segment]:
    """The segments of a value; none of a message that chooses a form, which is added to `left`."""
    if CHOICE.search(value):
        left.append(f"{where} chooses a form (plural, select)")
    else:
        yield from segments


def _scalar(text: str, event: Any, where: str, *, flow: bool) -> Iterator[Segment]:  # noqa: ANN401
    """The text of one value, or the lines of a block."""
    start, end = event.start_mark.index, event.end_mark.index
    style, value = event.style or "", event.value
    if SURROGATE.search(text, start, end):
        yield Segment(start, end, Marked((text[start:end],)), Marked.written, where)
        return
    if style in ("|", ">"):
        lines = _lines(text, start, end, value)
        if style == ">":
            yield from (_folded(text, each, where) for each in lines)
        else:
            for paragraph in _paragraphs(text, [*chain(*lines)]):
                yield from (_folded(text, each, where) for each in _sentences(text, paragraph))
        return
    if style:
        start = text.index(style, start)  # after an anchor
    elif anchor := re.compile(r"&\S+\s+").match(text, start, end):
        start = anchor.end()
    if style or (text[start:end].split() == value.split() and _is_text(value)):
        pieces = (Tag(p, shown=" ") if "\n" in p else p for p in re.split("(\n+)", value))
        yield Segment(start, end, merged(pieces), _writer(style, flow), where)


def _lines(text: str, start: int, end: int, value: str) -> list[list[Span]]:
    """The lines of a block: as many of the file as a line of the value consists of."""
    body = text.find("\n", start, end)
    lines = [*re.compile(r"[^\s](?:[^\r\n]*[^\s])?").finditer(text, body, end)] if body >= 0 else []
    found, number = list[list[Span]](), 0
    for line in filter(None, map(str.strip, value.split("\n"))):
        first, length = number, -1
        while number < len(lines) and length < len(line):
            length += len(lines[number][0]) + 1
            number += 1
        group = lines[first:number]
        if " ".join(match[0] for match in group) != line:
            return []  # a form of block that was not foreseen
        found.append([match.span() for match in group])
    return found


def _folded(text: str, lines: list[Span], where: str) -> Segment:
    """Lines that are read as one; those of the translation are about as long."""
    source = Marked((" ".join(text[slice(*line)] for line in lines),))
    write: Callable[[Marked], str] = Marked.written
    if len(lines) > 1 and text[lines[1][0] - 1] == " ":  # but for a block without an indent
        between, width = text[lines[0][1] : lines[1][0]], max(end - start for start, end in lines)
        write = partial(_fold, between, width)
    return Segment(lines[0][0], lines[-1][1], source, write, where)


def _fold(between: str, width: int, marked: Marked) -> str:
    """The text in lines of at most `width` characters, as far as it has spaces."""
    first, *rest = re.split(r"(?<=\S) (?=\S)", marked.written())
    pieces, length = [first], len(first)
    for word in rest:
        fits = length + 1 + len(word) <= width
        pieces += " " if fits else between, word
        length = fits * (length + 1) + len(word)
    return "".join(pieces)


def _paragraphs(text: str, lines: Sequence[Span]) -> Iterator[Sequence[Span]]:
    """Lines that follow one another with the same indent."""
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
    """The lines of a paragraph, and as one those that go on in one another.

    Only of wrapped prose, where no line had room for the next word and nothing looks like code.
    """
    found = [text[slice(*line)] for line in lines]
    width = max(map(len, found))
    full = all(len(line) + 1 + len(after.split()[0]) > width for line, after in pairwise(found))
    if full and width >= FULL and not any(map(_CODE.search, found)):
        yield from (each for _, each in wrapped(text, lines))
    else:
        yield from ([line] for line in lines)


@cache
def _resolver() -> Any:  # noqa: ANN401 -- a loader
    import yaml

    return partial(yaml.SafeLoader("").resolve, yaml.ScalarNode, implicit=(True, False))


def _is_text(value: str) -> bool:
    """Whether a plain value is read as a string."""
    return bool(_resolver()(value) == "tag:yaml.org,2002:str")


@cache
def _writer(style: str, flow: bool) -> Callable[[Marked], str]:  # noqa: FBT001 -- as a key
    return partial(_written, style=style, flow=flow)


def _written(marked: Marked, *, style: str, flow: bool) -> str:
    text = marked.written()
    plain = _PLAIN.fullmatch(text) and not text[-1].isspace() and _is_text(text)
    if not style and plain and not (flow and re.search(r"[][{},]", text)):
        return text
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return _SPECIAL.sub(lambda c: f"\\u{ord(c[0]):04x}", json.dumps(text, ensure_ascii=False))
