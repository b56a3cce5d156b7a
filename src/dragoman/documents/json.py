"""JSON: the strings that are values, line by line or block by block; keys and all else stay.

So does, in ARB, what is told about a string under a key that begins with `@`.

The grammar is checked token by token, so that no object is made of it.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from dragoman.documents import choices, fragments
from dragoman.documents.characters import SURROGATE, decoded
from dragoman.documents.document import Document, Left, Segment, in_language, one_part
from dragoman.errors import InputError
from dragoman.languages import LangCodes
from dragoman.text.marked import Marked, copying, merged

_TOKEN = re.compile(
    r'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"|[][{}:,]|true|false|null'
    r"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?|\Z)"
)
_LINE = re.compile(r"((?:[^\\]|\\[^nr])+)|\\.")
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.")
"""How one character is written with others."""
_END_TAG = re.compile(r"(?:<|\\u003[cC])\\?(?:/|\\u002[fF])")
_ESCAPED = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_LOCALE = re.compile(rb'("@@locale"\s*:\s*"[\w-]+")')
_ARGUMENT = re.compile(r"(?<![\w$])\$[1-9](?![.,]?\d)")
_AFTER = {"{": "key or }", "[": "value or ]"}
"""What is expected after a bracket."""


def read(data: bytes, name: str, languages: LangCodes = (None, None)) -> Document:
    """The values of a JSON file, or of JSON lines.

    If a text of ARB changes, its locale does from the first of the `languages` to the second.
    Raises InputError for what is neither.
    """
    text, encode = decoded(data, name)
    left, is_arb = Left(), name.lower().endswith(".arb")
    document = one_part(text, encode, _segments(text, name, left, is_arb=is_arb), name, left)
    return in_language(document, _LOCALE, languages) if is_arb else document


def _segments(text: str, name: str, left: Left, *, is_arb: bool) -> Iterator[Segment]:
    about = sys.maxsize  # brackets around a key with @
    escapes = text.isascii() and _ESCAPED.search(text) is not None
    slashes = "\\/" in text
    expected, opened, key, line, place = "value", list[str](), "", 1, 0
    while match := _TOKEN.match(text, place):
        line += text.count("\n", place, match.start(1))
        sign, place = match[1], match.end()
        if not sign and expected == "end" and not opened:
            return
        expected = _next(expected, sign, opened)
        if sign[:1] == '"' and expected == ":":
            key = sign[:40]
            if len(opened) <= about:
                about = len(opened) if is_arb and key[1] == "@" else sys.maxsize
        elif sign[:1] == '"' and expected and len(opened) < about:
            where = f"line {line}, {key}".rstrip(", ")
            own = "\\/" in sign if "/" in sign else slashes
            write = partial(_written, escapes=escapes, slashes=own)
            found = _texts(text, match.span(1), where, left, write)
            is_message = key == '"message"' and opened == ["{", "{"]
            yield from map(_with_arguments, found) if is_message else found
        if not expected:
            break
    raise InputError(f"{name} line {line} is not JSON; correct it.")


def _with_arguments(segment: Segment) -> Segment:
    """The segment with what a browser puts a value in the place of: `$1` is a price elsewhere."""
    pieces = (copying(p, _ARGUMENT) if isinstance(p, str) else (p,) for p in segment.source.pieces)
    return replace(segment, source=merged(chain.from_iterable(pieces)))


def _texts(
    text: str, place: tuple[int, int], where: str, left: Left, write: Callable[..., str]
) -> Iterator[Segment]:
    """The lines of a string, the blocks of a page, or the branches of a message that chooses."""
    raw, start = text[slice(*place)], place[0] + 1
    if "\\u" in raw and SURROGATE.search(value := json.loads(raw)):  # a half, which none translates
        yield Segment(start, place[1] - 1, Marked((value,)), write, where)
        return
    if "{" in raw and choices.CHOICE.search(message := json.loads(raw)):
        found = choices.branches(raw[1:-1], message, '"')
        if found is None:
            left.add(choices.LEFT, where)
        for a, b, source in found or ():
            write_branch = partial(write, written=choices.written)
            yield Segment(start + a, start + b, source, write_branch, where)
        return
    if _END_TAG.search(raw) and fragments.is_page(page := json.loads(raw)):
        at = fragments.places(raw[1:-1], _ESCAPE, start)
        write_page = partial(write, written=fragments.written)
        yield from fragments.read_page(page, at, write_page, where, left)
        return
    for part in _LINE.finditer(text, start, place[1] - 1):
        for a, b, source in fragments.forms(text, *part.span(), _read) if part[1] else ():
            yield Segment(a, b, source, write, where)


def _read(raw: str) -> str:
    """The string that is written so, without its quotes."""
    return str(json.loads(f'"{raw}"'))


def _next(expected: str, sign: str, opened: list[str]) -> str:
    """What is expected after a sign, a string or another value; "" where it was not."""
    if sign == ",":
        after = {"{": "key", "[": "value"}
        return after[opened[-1]] if expected == "end" and opened else ""
    if sign in ("}", "]"):
        fits = expected == "end" or expected.endswith(sign)
        return "end" if fits and opened and opened.pop() + sign in ("{}", "[]") else ""
    if sign == ":" or expected == ":":
        return "value" if sign == expected else ""
    if expected.startswith("key"):
        return ":" if sign[:1] == '"' else ""
    if not sign or (expected == "end" and opened):
        return ""  # another value may begin outside all brackets, as on the next line
    if sign in ("{", "["):
        opened.append(sign)
    return _AFTER.get(sign, "end")


def _written(
    marked: Marked,
    *,
    escapes: bool,
    slashes: bool,
    written: Callable[[Marked], str] = Marked.written,
) -> str:
    text = json.dumps(written(marked), ensure_ascii=escapes)[1:-1]
    return text.replace("/", "\\/") if slashes else text
