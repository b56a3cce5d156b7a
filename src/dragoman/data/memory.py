"""Translation memories as pairs of texts: TMX, XLIFF, gettext catalogues, CSV and TSV."""

import codecs
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import InputError
from dragoman.files.messages import Message, read_messages
from dragoman.files.reading import LARGEST_FILE, ending_of, read_chunks
from dragoman.files.records import SHORT, named_columns, read_rows
from dragoman.files.xliff import (
    codes_in,
    definitions_of,
    is_draft,
    languages_of,
    marks_of,
    segments_of,
)
from dragoman.files.xml import Element, cut_elements
from dragoman.languages import LangCodes, base_of, language_named, side_named

Unit = tuple[str, str] | str
"""A pair, or the reason why there is none."""
Cut = tuple[str | bytes, Iterable[Unit]]
"""A piece of a file and its units; the text between units has none."""


class Entry(NamedTuple):
    """A piece of a corpus, with its pairs."""

    raw: Sequence[str | bytes]
    """The piece in each file: a line without its line feed, or bytes."""
    pairs: Sequence[tuple[str, str]] = ()
    """One pair, several for a message with plural forms, or none for a header."""
    left: Sequence[str] = ()
    """For each unit without a pair, the reason."""


SHOWN = 60
"""Number of characters of a cell that messages show."""
MOST = 1 << 20
"""Maximum number of pairs of a memory that is loaded as a whole."""

_CODES = {"bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sub", "sc", "ec", "cp"}
_LANGUAGE = re.compile(rb"""(?:\blang|-language|srcLang|trgLang)\s*=\s*["']([\w-]+)""")
OTHER, _OPEN = "not in both languages", "not finished"


def memory_entries(path: Path, languages: LangCodes) -> Iterator[Entry]:
    """Yield the pieces of a memory, together the whole file, with finished pairs as plain lines.

    The file name extension decides the kind. Raises InputError for a file of another kind, a
    damaged one, and TMX without `languages`.
    """
    read = _READERS.get(ending_of(path))
    if read is None:
        raise InputError(
            f"{path} is not a translation memory: its name does not end in {', '.join(_READERS)}."
        )
    for raw, units in read(path, languages):
        pairs, left = list[tuple[str, str]](), list[str]()
        for unit in units:
            src, tgt = ("", "") if isinstance(unit, str) else (" ".join(t.split()) for t in unit)
            if src and tgt:
                pairs.append((src, tgt))
            else:
                left.append(unit if isinstance(unit, str) else "an empty side")
        yield Entry((raw,), pairs, left)


def languages_in(path: Path) -> list[str]:
    """Return the language codes at the start of a memory, in alphabetical order."""
    return sorted({found[1].decode() for found in _LANGUAGE.finditer(next(read_chunks(path), b""))})


def declared_languages(path: Path) -> LangCodes:
    """Return the languages that XLIFF declares for its first unit; none for other formats."""
    if _READERS.get(ending_of(path)) is not _read_xliff:
        return None, None
    units = (unit for _, unit in _units_of_xliff(path) if unit is not None)
    return next(map(languages_of, units), (None, None))


def load_memory(path: Path, languages: LangCodes) -> dict[str, str]:
    """Return the translations of a memory by source; if a source has several, the last one.

    Raises InputError as `memory_entries` does, and for more than `MOST` pairs.
    """
    found = dict[str, str]()
    pairs = (pair for entry in memory_entries(path, languages) for pair in entry.pairs)
    for number, (src, tgt) in enumerate(pairs):
        found[src] = tgt
        if number == MOST:
            raise InputError(f"{path} has more than {MOST:,} pairs; give a part of it.")
    return found


def _read_tmx(path: Path, languages: LangCodes) -> Iterator[Cut]:
    if None in languages:
        known = f" ({', '.join(languages_in(path))})" if languages_in(path) else ""
        raise InputError(
            f"{path} may have texts in several languages{known}; name two by --src-lang and "
            "--tgt-lang, or data.src_lang and data.tgt_lang in a recipe."
        )
    for raw, unit in cut_elements(read_chunks(path), {"tu"}, str(path)):
        yield raw, [] if unit is None else [_of_tmx(unit, languages)]


def _of_tmx(unit: Element, languages: LangCodes) -> Unit:
    segments = {
        each.attributes.get("xml:lang") or each.attributes.get("lang", ""): each.child("seg")
        for each in unit.elements
        if each.local == "tuv"
    }
    src, tgt = (_in_language(segments, code or "") for code in languages)
    return OTHER if src is None or tgt is None else (src.plain(_CODES), tgt.plain(_CODES))


def _in_language(segments: Mapping[str, Element | None], code: str) -> Element | None:
    """Return the text in a language, in another of its regions if there is none in that one."""
    wanted = code.lower().replace("_", "-")
    alike = [each for each in segments if base_of(each) == base_of(code)]
    best = max(alike, key=lambda each: each.lower().replace("_", "-") == wanted, default=None)
    return None if best is None else segments[best]


def _read_xliff(path: Path, languages: LangCodes) -> Iterator[Cut]:
    """Yield units of XLIFF 1.2, possibly with segments; those of XLIFF 2 always have some."""
    for raw, unit in _units_of_xliff(path):
        if unit is None:
            yield raw, []
        elif unit.local == "unit":
            segments = (each for each in unit.elements if each.local == "segment")
            yield raw, [each for part in segments for each in _of_xliff(part, languages)]
        else:
            yield raw, [*_of_xliff(unit, languages)]


def _units_of_xliff(path: Path) -> Iterator[tuple[bytes, Element | None]]:
    return cut_elements(read_chunks(path), {"trans-unit", "unit"}, str(path))


def _of_xliff(unit: Element, languages: LangCodes) -> Iterator[Unit]:
    """Yield a whole unit, or its segments if both sides have them: one may be untranslated."""
    source, target = unit.child("source"), unit.child("target")
    asked = zip(languages, languages_of(unit), strict=True)
    cut, done = segments_of(unit.child("seg-source")), segments_of(target)
    definitions, marks = definitions_of(unit), marks_of(unit)
    if any(a and b and base_of(a) != base_of(b) for a, b in asked):
        yield OTHER
    elif source is None or target is None:
        yield _OPEN
    elif cut and done:
        for mid, segment in cut.items():
            is_open = mid not in done or is_draft(unit, target, definitions.get(mid, {}))
            yield _OPEN if is_open else (_plain(segment, marks), _plain(done[mid], marks))
    elif any(is_draft(unit, target, each) for each in (*definitions.values(), {})):
        yield _OPEN
    else:
        is_done = all(each.text.strip() for each in done.values())
        yield (_plain(source, marks), _plain(target, marks)) if is_done else _OPEN


def _plain(side: Element, marks: frozenset[str] | None) -> str:
    """Return the text of a side without markup."""
    text, place, kept = side.plain(_CODES), 0, ""
    for code in codes_in(text, marks):
        kept += text[place : code.start()]
        place = code.end()
    return kept + text[place:]


def _read_messages(path: Path, _: LangCodes) -> Iterator[Cut]:
    data = b""
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > LARGEST_FILE:
            raise InputError(f"{path} is larger than {LARGEST_FILE:,} bytes; cut it into parts.")
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
        yield codecs.BOM_UTF8, []
    charset = re.search(rb"charset=([\w-]+)", data)
    try:
        encoding = charset[1].decode() if charset else "utf-8"
        text = data.decode(encoding)
    except (LookupError, UnicodeError):
        raise InputError(f"{path} is not in the encoding that it declares.") from None
    place = 0
    for message in read_messages(text, str(path)):
        start, place = place, max(each.end for each in message.texts.values())
        yield text[start:place].encode(encoding), _of_messages(message)
    yield text[place:].encode(encoding), []


def _of_messages(message: Message) -> Iterator[Unit]:
    texts = {keyword: each.value for keyword, each in message.texts.items()}
    forms = [text for keyword, text in texts.items() if keyword.startswith("msgstr")]
    if texts.get("msgid") == "":  # the header
        return
    if message.is_fuzzy or not all(forms):
        yield _OPEN
    elif source := texts.get("msgid"):
        yield source, forms[0]
        if "msgid_plural" in texts:
            yield texts["msgid_plural"], forms[-1]


def tell_of_names(path: Path, row: Sequence[str], *, named: bool) -> None:
    """Warn if the first row of a table may have been misread.

    That is, if it is read as a pair although one side names a language, or as the names of columns
    (`named`) although they are two codes, which may be words.
    """
    if len(row) != 2 or any(side_named(cell) == "source" for cell in row):
        return
    src, tgt = (cell[:SHOWN] for cell in row)
    if named and max(map(len, row)) <= SHORT:
        what = "the names of the columns; if it is a pair, write a line source,target above it"
    elif not named and any(len(cell) > SHORT and language_named(cell) for cell in row):
        what = "a pair; if it names the columns, change it to source,target"
    else:
        return
    warnings.warn(f"{path} line 1, {src!r} with {tgt!r}, is read as {what}.", stacklevel=2)


def _read_table(path: Path, languages: LangCodes) -> Iterator[Cut]:
    """Yield the pairs of two columns, or of those that the first row names (`named_columns`)."""
    chosen = 0, 1
    for number, row, raw in read_rows(path):
        if number == 1 and (named := named_columns(row, languages)):
            chosen = named
            if not any(languages):
                tell_of_names(path, row, named=True)
            yield raw, []
        elif number == 1 and len(row) > 2:
            raise InputError(
                f"{path} has {len(row)} columns, and its first row does not name two of them: "
                "source and target, or the codes of the languages; name the two columns in the "
                "first row, or keep only two columns. A corpus may be given as --tsv with "
                "--src-key and --tgt-key."
            )
        elif len(row) > max(chosen):
            if number == 1:
                tell_of_names(path, row, named=False)
            yield raw, [(row[chosen[0]], row[chosen[1]])]
        else:
            yield raw, ["fewer columns than two"]


_READERS = {
    ".tmx": _read_tmx,
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), _read_xliff),
    ".po": _read_messages,
    ".csv": _read_table,
    ".tsv": _read_table,
}
MEMORIES = tuple(_READERS)
"""File name extensions of memories; the last two are tables."""
XML = MEMORIES[:-3]
"""Those of XML formats, whose texts are in units."""
