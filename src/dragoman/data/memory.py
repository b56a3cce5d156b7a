"""Translation memories as pairs of texts: TMX, XLIFF, catalogues of gettext, CSV and TSV."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman.errors import InputError
from dragoman.files.messages import read_messages
from dragoman.files.reading import COMPRESSED, LARGEST_FILE, read_chunks, read_text
from dragoman.files.xml import UNFINISHED, Element, read_elements

Languages = tuple[str | None, str | None]
"""The codes of source and target, where they are known."""
Unit = tuple[str, str] | str
"""A pair, or why there is none."""

MOST = 1 << 20
"""Most pairs of a memory that is held as a whole."""

_CODES = {"bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sub", "sc", "ec", "cp"}
_OTHER, _OPEN = "not in both languages", "not finished"


def read_memory(
    path: Path, languages: Languages, left: Counter[str] | None = None
) -> Iterator[tuple[str, str]]:
    """The finished pairs of a memory, which the ending of its name tells, as lines without markup.

    `left` counts the units that are left out, by why. Raises InputError for a file of another kind,
    a damaged one, and TMX without `languages`.
    """
    endings = [ending.lower() for ending in path.suffixes if ending not in COMPRESSED]
    read = _READERS.get(endings[-1] if endings else "")
    if read is None:
        raise InputError(f"{path} is no memory: its name ends in none of {', '.join(_READERS)}.")
    for unit in read(path, languages):
        pair = ("", "") if isinstance(unit, str) else unit
        src, tgt = (" ".join(text.split()) for text in pair)
        if src and tgt:
            yield src, tgt
        elif left is not None:
            left[unit if isinstance(unit, str) else "an empty side"] += 1


def load_memory(path: Path, languages: Languages) -> dict[str, str]:
    """The translations of a memory by their sources; of several for a source, the last.

    Raises InputError as `read_memory` does, and for more than `MOST` pairs.
    """
    found = dict[str, str]()
    for number, (src, tgt) in enumerate(read_memory(path, languages)):
        found[src] = tgt
        if number == MOST:
            raise InputError(f"{path} has more than {MOST:,} pairs; give a part of it.")
    return found


def _read_tmx(path: Path, languages: Languages) -> Iterator[Unit]:
    if None in languages:
        raise InputError(
            f"{path} may have texts in several languages; give data.src_lang and data.tgt_lang "
            "(--src-lang and --tgt-lang)."
        )
    for unit in read_elements(read_chunks(path), {"tu"}, str(path)):
        segments = {
            each.attributes.get("xml:lang") or each.attributes.get("lang", ""): each.child("seg")
            for each in unit.elements
            if each.local == "tuv"
        }
        src, tgt = (_in_language(segments, code or "") for code in languages)
        yield _OTHER if src is None or tgt is None else (src.plain(_CODES), tgt.plain(_CODES))


def _in_language(segments: Mapping[str, Element | None], code: str) -> Element | None:
    """The text in a language, in any of its regions if it has none in that one."""
    wanted = _parts(code)
    alike = [each for each in segments if _parts(each)[0] == wanted[0]]
    best = max(alike, key=lambda each: _parts(each) == wanted, default=None)
    return None if best is None else segments[best]


def _parts(code: str) -> list[str]:
    return re.split("[-_]", code.lower())


def _read_xliff(path: Path, languages: Languages) -> Iterator[Unit]:
    for unit in read_elements(read_chunks(path), {"trans-unit", "segment"}, str(path)):
        source, target = unit.child("source"), unit.child("target")
        declared = (
            unit.inherited("source-language") or unit.inherited("srcLang"),
            unit.inherited("target-language") or unit.inherited("trgLang"),
        )
        asked = zip(languages, declared, strict=True)
        if any(a and b and _parts(a)[0] != _parts(b)[0] for a, b in asked):
            yield _OTHER
        elif source is None or target is None:
            yield _OPEN
        else:
            states = unit.attributes.get("state"), target.attributes.get("state")
            is_open = unit.attributes.get("approved") == "no" or not UNFINISHED.isdisjoint(states)
            yield _OPEN if is_open else (source.plain(_CODES), target.plain(_CODES))


def _read_messages(path: Path, _: Languages) -> Iterator[Unit]:
    data = b""
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > LARGEST_FILE:
            raise InputError(f"{path} is larger than {LARGEST_FILE:,} bytes; cut it into parts.")
    charset = re.search(rb"charset=([\w-]+)", data)
    try:
        text = data.decode(charset[1].decode() if charset else "utf-8")
    except (LookupError, UnicodeError):
        raise InputError(f"{path} is not in the encoding that it declares.") from None
    for message in read_messages(text, str(path)):
        texts = {keyword: each.value for keyword, each in message.texts.items()}
        forms = [text for keyword, text in texts.items() if keyword.startswith("msgstr")]
        if message.is_fuzzy or not all(forms):
            yield _OPEN
        elif source := texts.get("msgid"):  # else it is the header
            yield source, forms[0]
            if "msgid_plural" in texts:
                yield texts["msgid_plural"], forms[-1]


def _read_table(path: Path, languages: Languages) -> Iterator[Unit]:
    """Two columns, or those that a first row names "source" and "target" or by the languages."""
    is_tsv = ".tsv" in path.suffixes
    rows = (
        csv.reader(read_text(path), delimiter="\t", quoting=csv.QUOTE_NONE)
        if is_tsv
        else csv.reader(read_text(path))
    )
    chosen = 0, 1
    try:
        for number, row in enumerate(rows):
            names = [cell.strip().lower() for cell in row]
            known = zip(("source", "target"), ("src", "tgt"), languages, strict=True)
            named = [n for side in known for n, name in enumerate(names) if name in side]
            if number == 0 and len(named) == 2:
                chosen = named[0], named[1]
            elif len(row) > max(chosen):
                yield row[chosen[0]], row[chosen[1]]
            else:
                yield "fewer columns than two"
    except csv.Error as error:
        raise InputError(f"{path} line {rows.line_num} cannot be read: {error}.") from error


_READERS = {
    ".tmx": _read_tmx,
    ".xlf": _read_xliff,
    ".xliff": _read_xliff,
    ".po": _read_messages,
    ".csv": _read_table,
    ".tsv": _read_table,
}
