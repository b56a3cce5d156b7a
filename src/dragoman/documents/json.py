"""JSON: string values, line by line or block by block; keys and everything else are preserved.

In ARB, so is the information on a string under a key that begins with `@`.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from dragoman.documents import choices, fragments
from dragoman.documents.characters import SURROGATE, decoded
from dragoman.documents.document import Document, Keys, Left, Segment, in_language, one_part
from dragoman.errors import InputError
from dragoman.languages import LangCodes
from dragoman.text.marked import Marked, copying, merged, with_texts

_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<colon>[ \t\r\n]*+:)?|[][{}]')
"""A string key or value, or a bracket, in valid JSON."""
_VALUE = re.compile(r"[^ \t\r\n]")
"""The start of a value, after white space."""
_LINE = re.compile(r"((?:[^\\]|\\[^nr])+)|\\.")
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.")
"""How one character is escaped."""
_ESCAPED = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_LOCALE = re.compile(rb'("@@locale"\s*:\s*"[\w-]+")')
_OF_BROWSERS = {"message", "description", "placeholders"}
"""The keys of a message of a browser's extension; only the first one is shown to users."""
_ENOUGH = 4096
"""Characters in which such a file has its first message."""
_ARGUMENT = re.compile(r"(?<![\w$])\$[1-9](?![.,]?\d)")


def read(
    data: bytes, name: str, languages: LangCodes = (None, None), columns: Sequence[str] = ()
) -> Document:
    """Read the values of a JSON file, or of JSON lines; those under the keys `columns`, if any.

    If a text of ARB changes, its locale changes from the first of the `languages` to the second.
    Raises InputError if it is neither, and for a key that it lacks.
    """
    text, encode = decoded(data, name)
    left, is_arb = Left(), name.lower().endswith(".arb")
    keys = Keys(columns or _of_browsers(text, name, left))
    found = _segments(text, name, keys, left, is_arb=is_arb)
    document = one_part(text, encode, found, name, left)
    keys.reject_missing(name)
    return in_language(document, _LOCALE, languages) if is_arb else document


def _of_browsers(text: str, name: str, left: Left) -> list[str]:
    """Return the key of what is shown if all values are messages of a browser's extension.

    They are if the file has the name of such a file, or one of them has placeholders.
    """
    if '"message"' not in text[:_ENOUGH]:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    values = [*found.values()] if isinstance(found, dict) else [None]
    is_known = PurePath(name).name == "messages.json" or '"placeholders"' in text
    if not is_known or not all(
        isinstance(each, dict) and "message" in each and each.keys() <= _OF_BROWSERS
        for each in values
    ):
        return []
    for key, each in found.items():
        if "description" in each:
            left.add("descriptions of a browser's messages", f'"{key[:40]}"')
    return ["message"]


def _segments(text: str, name: str, keys: Keys, left: Left, *, is_arb: bool) -> Iterator[Segment]:
    _check(text, name)
    about = sys.maxsize  # number of brackets around a key with @
    escapes = text.isascii() and _ESCAPED.search(text) is not None
    slashes = "\\/" in text
    opened, key, line, place = list[str](), "", 1, 0
    for match in _TOKEN.finditer(text):
        sign, string = match[0], match["string"]
        line += text.count("\n", place, match.start())
        place = match.start()
        if sign in ("{", "["):
            opened.append(sign)
        elif string is None:
            opened.pop()
            keys.leave(len(opened))
        elif match["colon"]:
            key = string[:40]
            keys.enter(json.loads(string), len(opened))
            if len(opened) <= about:
                about = len(opened) if is_arb and key[1] == "@" else sys.maxsize
        elif len(opened) < about and keys.hold(len(opened)):
            where = f"line {line}, {key}".rstrip(", ")
            own = "\\/" in string if "/" in string else slashes
            write = partial(_written, escapes=escapes, slashes=own)
            found = _texts(text, match.span("string"), where, left, write)
            is_message = key == '"message"' and opened == ["{", "{"]
            yield from map(_with_arguments, found) if is_message else found


def _check(text: str, name: str) -> None:
    """Raise InputError if a text is neither JSON nor JSON lines."""

    def refuse(constant: str) -> None:
        raise json.JSONDecodeError(constant, text, place)

    decoder = json.JSONDecoder(
        object_pairs_hook=lambda _: None, parse_int=float, parse_constant=refuse
    )
    place = 0
    try:
        while (begin := _VALUE.search(text, place)) or not place:
            _, place = decoder.raw_decode(text, begin.start() if begin else 0)
    except json.JSONDecodeError as error:
        raise InputError(f"{name} line {error.lineno} is not JSON; correct it.") from None
    except RecursionError:
        raise InputError(f"{name} has too many levels; cut it into parts.") from None


def _with_arguments(segment: Segment) -> Segment:
    """Return the segment with a browser's placeholders copied; `$1` is a price elsewhere."""
    pieces = with_texts(segment.source.pieces, partial(copying, copied=_ARGUMENT))
    return replace(segment, source=merged(pieces))


def _texts(
    text: str, place: tuple[int, int], where: str, left: Left, write: Callable[..., str]
) -> Iterator[Segment]:
    """Yield the lines of a string, the blocks of a page, or the branches of a choice."""
    raw, start = text[slice(*place)], place[0] + 1
    value, at = json.loads(raw), fragments.places(raw[1:-1], _ESCAPE, start)
    if "\\u" in raw and SURROGATE.search(value):  # half a character: not translated
        yield Segment(start, place[1] - 1, Marked((value,)), write, where)
        return
    if choices.CHOICE.search(value):
        found = choices.branches(value)
        if found is None:
            left.add(choices.LEFT, where)
        for a, b, source in found or ():
            write_branch = partial(write, written=choices.written)
            yield Segment(at(a), at(b), source, write_branch, where)
        return
    if fragments.is_page(value):
        write_page = partial(write, written=fragments.written)
        yield from fragments.read_page(value, at, write_page, where, left)
        return
    for part in _LINE.finditer(text, start, place[1] - 1):
        for a, b, source in fragments.forms(text, *part.span(), _read) if part[1] else ():
            yield Segment(a, b, source, write, where)


def _read(raw: str) -> str:
    """Decode a string written without its quotes."""
    return str(json.loads(f'"{raw}"'))


def _written(
    marked: Marked,
    *,
    escapes: bool,
    slashes: bool,
    written: Callable[[Marked], str] = Marked.written,
) -> str:
    text = json.dumps(written(marked), ensure_ascii=escapes)[1:-1]
    return text.replace("/", "\\/") if slashes else text
