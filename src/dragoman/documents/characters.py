"""The text of a file, read so that it is written with the same bytes."""

import codecs
import re
from collections.abc import Callable, Iterable
from functools import partial
from html import unescape
from io import BytesIO

from dragoman.errors import InputError
from dragoman.files.encodings import likeliest, not_utf8

Encode = Callable[[Iterable[str]], bytes]
"""Makes a file of the pieces of its text, without the whole text in memory."""

_BY_MARK = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_DECLARED = re.compile(
    r"(?:windows-|cp)(?:125\d|874)|iso-8859-\d+|koi8-[ru]|gbk|gb2312|gb18030|big5|euc-(?:jp|kr)"
    r"|shift_jis",
    re.IGNORECASE,
)
"""Encodings that a file may declare: of each character by itself, in linear time."""
_ENOUGH = 1 << 16
"""Bytes of lines that tell an encoding."""
_WITHOUT_CONTROLS = b" " * 32 + bytes(range(32, 256))
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\ufffe\uffff]")
SURROGATE = re.compile("[\ud800-\udfff]")
"""A byte that is not UTF-8."""
_REPEATED, _WORD = re.compile(rb"([\x80-\xff])\1{2,}"), re.compile(rb"[\x80-\xff]{4}")


def decoded(
    data: bytes, name: str, declared: str = "", *, has_references: bool = False
) -> tuple[str, Encode]:
    """The text of a file without its byte order mark, and what makes a file as that one was.

    The mark tells the encoding, else what the file has `declared`, else it is UTF-8, where bytes
    that are none become lone surrogates; if most that are not ASCII are none, it is Windows-1252,
    unless another encoding is likelier. With the NULs of UTF-16 it is that.
    Characters that a declared encoding lacks are written as references (`&#8364;`), as they are in
    any file that `has_references`. Raises InputError for a damaged file in UTF-16 or UTF-32, and
    for one in an encoding that it does not declare; writing does for characters that Windows-1252
    lacks.
    """
    mark = next((each for each in _BY_MARK if data.startswith(each)), b"")
    if mark:
        encoding = _BY_MARK[mark]
        errors = "surrogateescape" if encoding == "utf-8" else "surrogatepass"
        found = _read(data, name, encoding, errors, errors, mark)
        if found is None:
            raise InputError(f"{name} is damaged {encoding[:6].upper()}; save it as UTF-8.")
    elif _DECLARED.fullmatch(declared):
        web = {"iso-8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
        encoding = web.get(declared.lower(), declared)
        found = _read(data, name, encoding, "strict", "xmlcharrefreplace")
    else:
        found = _utf_16(data, name)
    if found is not None:
        return found
    text = data.decode(errors="surrogateescape")
    if declared or not _is_not_utf8(text):
        return text, partial(_encoded, name, "utf-8", "surrogateescape", b"")
    errors = "xmlcharrefreplace" if has_references else "strict"
    found = _read(data, name, "cp1252", "strict", errors)
    if found is None or not _is_western(data):
        (number, line, start), *others = _lines_not_utf8(data)
        rest = b" ".join(each for _, each, _ in others)
        raise not_utf8(f"{name} line {number}", line, start, rest)
    return found


def without_damage(text: str) -> str:
    """The text for a parser: with as many characters, but no lone surrogates."""
    return SURROGATE.sub("\ufffd", text)


def _utf_16(data: bytes, name: str) -> tuple[str, Encode] | None:
    """What UTF-16 without a mark reads, if no other encoding can be meant.

    So it is if a byte of one in eight characters is NUL, and no character a control.
    """
    before, after = (data[n::2].count(0) for n in range(2))
    if 16 * max(before, after) < max(len(data), 1):
        return None
    encoding = "utf-16-le" if after > before else "utf-16-be"
    found = _read(data, name, encoding, "strict", "surrogatepass")
    return None if found is None or _CONTROL.search(found[0]) else found


def unescaped(text: str) -> str:
    """What a text with references of HTML means: itself if one is a number of too many digits."""
    try:
        return unescape(text)
    except ValueError:  # thousands of them
        return text


def _is_not_utf8(text: str) -> bool:
    """Whether fewer characters than bytes that are none stand among the ASCII."""
    rest = len(text) - len(text.encode("ascii", "ignore"))
    return rest < 2 * sum(1 for _ in SURROGATE.finditer(text))


def _is_western(data: bytes) -> bool:
    """Whether Windows-1252 is the likeliest encoding of the lines that are not UTF-8.

    Where none is likely, whether they have no words of other letters than those of ASCII.
    """
    lines = b" ".join(line for _, line, _ in _lines_not_utf8(data))
    lines = _REPEATED.sub(rb"\1", lines.translate(_WITHOUT_CONTROLS))
    found = likeliest(lines)
    return found == "cp1252" or (found is None and not _WORD.search(lines))


def _lines_not_utf8(data: bytes) -> list[tuple[int, bytes, int]]:
    """Lines that are not UTF-8: number, bytes, where the first wrong one is; as many as tell."""
    found, size = list[tuple[int, bytes, int]](), 0
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            found.append((number, line, error.start))
            size += len(line)
            if size > _ENOUGH:
                break
    return found


def _read(
    data: bytes, name: str, encoding: str, reading: str, writing: str, mark: bytes = b""
) -> tuple[str, Encode] | None:
    """The text behind a mark, and what writes one, if that makes the same bytes."""
    try:
        text = data[len(mark) :].decode(encoding, reading)
    except (LookupError, ValueError):  # no such encoding, or damaged
        return None
    encode = partial(_encoded, name, encoding, writing, mark)
    return (text, encode) if encode([text]) == data else None


def _encoded(name: str, encoding: str, errors: str, mark: bytes, pieces: Iterable[str]) -> bytes:
    made = BytesIO()
    made.write(mark)
    try:
        made.writelines(piece.encode(encoding, errors) for piece in pieces)
    except UnicodeEncodeError as error:  # the others have all letters, or references to them
        raise InputError(
            f"{name} is in Windows-1252, which lacks letters of the translation; save it as UTF-8."
        ) from error
    return made.getvalue()
