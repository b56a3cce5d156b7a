"""The text of a file, read so that it is written with the same bytes."""

import codecs
import re
from collections.abc import Callable

from dragoman.errors import InputError

Encode = Callable[[str], bytes]

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
SURROGATE = re.compile("[\ud800-\udfff]")
"""A byte that is not UTF-8."""


def decoded(data: bytes, name: str, declared: str = "") -> tuple[str, Encode]:
    """The text of a file, and what writes one in the same encoding.

    A byte order mark tells it, else what the file has `declared`, else it is UTF-8, where bytes
    that are none become lone surrogates. Characters that a declared encoding lacks are written as
    references (`&#8364;`). Raises InputError for a damaged file in UTF-16 or UTF-32.
    """
    marked = next((code for mark, code in _BY_MARK.items() if data.startswith(mark)), "")
    found = None
    if marked not in {"", "utf-8"}:
        found = _read(data, marked, "surrogatepass", "surrogatepass")
        if found is None:
            raise InputError(f"{name} is damaged {marked[:6].upper()}; save it as UTF-8.")
    elif not marked and _DECLARED.fullmatch(declared):
        web = {"iso-8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
        encoding = web.get(declared.lower(), declared)
        found = _read(data, encoding, "strict", "xmlcharrefreplace")
    return found or (data.decode(errors="surrogateescape"), _as_utf8)


def without_damage(text: str) -> str:
    """The text for a parser: with as many characters, but no lone surrogates."""
    return SURROGATE.sub("\ufffd", text)


def _as_utf8(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _read(data: bytes, encoding: str, reading: str, writing: str) -> tuple[str, Encode] | None:
    """The text, if it is written with the same bytes."""
    try:
        text = data.decode(encoding, reading)
    except (LookupError, ValueError):  # no such encoding, or damaged
        return None

    def encode(given: str) -> bytes:
        return given.encode(encoding, writing)

    return (text, encode) if encode(text) == data else None
