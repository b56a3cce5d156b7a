"""The text of a file, decoded so that it can be written with the same bytes."""

import codecs
import re
from collections.abc import Callable, Iterable
from functools import partial
from html import unescape
from io import BytesIO

from dragoman.errors import InputError
from dragoman.files.encodings import likeliest, not_utf8

Encode = Callable[[Iterable[str]], bytes]
"""Encodes a file from the pieces of its text, without the whole text in memory."""

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
"""Encodings that a file may declare: characters are independent, and decoding takes linear time."""
_ENOUGH = 1 << 16
"""Bytes of lines that suffice to detect an encoding."""
_WITHOUT_CONTROLS = b" " * 32 + bytes(range(32, 256))
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\ufffe\uffff]")
SURROGATE = re.compile("[\ud800-\udfff]")
"""A surrogate, such as one for a byte that is not UTF-8."""
_REPEATED, _WORD = re.compile(rb"([\x80-\xff])\1{2,}"), re.compile(rb"[\x80-\xff]{4}")


def decoded(
    data: bytes, name: str, declared: str = "", *, has_references: bool = False
) -> tuple[str, Encode]:
    """Return the text of a file without its byte order mark, and what encodes it the same way.

    The mark determines the encoding, else what the file has `declared`. Otherwise it is UTF-8, and
    invalid bytes become lone surrogates; if most that are not ASCII are invalid, it is
    Windows-1252, unless another encoding is likelier. Text with the NULs of UTF-16 is UTF-16.
    Characters that a declared encoding lacks are written as references (`&#8364;`), as they are in
    any file that `has_references`. Raises InputError for damaged UTF-16 or UTF-32, and for a file
    in an encoding that it does not declare; writing does for characters that Windows-1252 lacks.
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
    """Return the text for a parser: of the same length, but without lone surrogates."""
    return SURROGATE.sub("\ufffd", text)


def _utf_16(data: bytes, name: str) -> tuple[str, Encode] | None:
    """Decode UTF-16 without a mark, if no other encoding is possible.

    That is so if one in eight characters has a NUL byte, and none is a control character.
    """
    before, after = (data[n::2].count(0) for n in range(2))
    if 16 * max(before, after) < max(len(data), 1):
        return None
    encoding = "utf-16-le" if after > before else "utf-16-be"
    found = _read(data, name, encoding, "strict", "surrogatepass")
    return None if found is None or _CONTROL.search(found[0]) else found


def unescaped(text: str) -> str:
    """Decode HTML references; return the text itself if one is a number with too many digits."""
    try:
        return unescape(text)
    except ValueError:  # thousands of them
        return text


def _is_not_utf8(text: str) -> bool:
    """Return whether invalid bytes outnumber other non-ASCII characters."""
    rest = len(text) - len(text.encode("ascii", "ignore"))
    return rest < 2 * sum(1 for _ in SURROGATE.finditer(text))


def _is_western(data: bytes) -> bool:
    """Return whether Windows-1252 is the likeliest encoding of the lines that are not UTF-8.

    If none is likely, return whether they have no words of non-ASCII letters.
    """
    lines = b" ".join(line for _, line, _ in _lines_not_utf8(data))
    lines = _REPEATED.sub(rb"\1", lines.translate(_WITHOUT_CONTROLS))
    found = likeliest(lines)
    return found == "cp1252" or (found is None and not _WORD.search(lines))


def _lines_not_utf8(data: bytes) -> list[tuple[int, bytes, int]]:
    """Return lines that are not UTF-8, as many as suffice: number, bytes, first invalid offset."""
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
    """Return the text after a mark and what encodes it, if that makes the same bytes."""
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
    except UnicodeEncodeError as error:  # other encodings have all letters, or references
        raise InputError(
            f"{name} is in Windows-1252, which lacks letters of the translation; save it as UTF-8."
        ) from error
    return made.getvalue()


def characters_before(raw: bytes) -> Callable[[int], int]:
    """Return a function that counts the characters of UTF-8 before a byte."""
    if raw.isascii():
        return int
    import numpy as np  # which `dragoman --help` does without

    begins = (np.frombuffer(raw, dtype=np.uint8) & 0xC0) != 0x80
    counts = np.cumsum(np.append(np.False_, begins), dtype=np.uint32)
    return lambda place: int(counts[place])
