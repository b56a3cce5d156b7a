"""The columns of a glossary's file, also as other tools export it."""

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import chain, islice

from dragoman.errors import InputError
from dragoman.files.reading import decode_lines
from dragoman.files.records import ROWS, SHORT, TAB, csv_rows, named_columns, separator_in
from dragoman.languages import LangCodes, base_of, language_named, side_named
from dragoman.wording import counted

COLUMNS = 4
_FORMS = re.compile(r"(.+ )?(forms|formen)|其他形式", re.IGNORECASE)
"""The names of the column with other forms."""
_CROWDIN = re.compile(r"Term \[([\w-]+)\]", re.IGNORECASE)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_BREAK = re.compile(r"[\t\n]")


def read_columns(
    content: bytes, name: str, languages: LangCodes, *, as_csv: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line of each term, and its source, target, other forms and `case`.

    A first row may name the columns, by sides or by languages. Terms of other languages than these,
    as in the files of DeepL, and rows without a text in one of three or more languages are not
    read. Warns about all this. Raises InputError for a row without such columns, and for names that
    do not give one for each side.
    """
    rows = _rows(content, name, as_csv=as_csv)
    first = [*islice(rows, 2)]
    given = first[0][1] if first else []
    names = _plain_names(given)
    place = f"{name} line {first[0][0]}" if first else ""
    named = _named([names, *(row for _, row in first[1:])], languages, place) if first else None
    is_wide = named is not None and (
        names != given or sum(map(bool, map(language_named, names))) > 2
    )
    has_codes = named is None or (
        named[:2] == (0, 1) and all("lang" in each.lower() for each in names[2:])
    )
    if first and (told := _told_of_names(given[: 2 if has_codes else None], named)):
        warnings.warn(f"{place}, {told}.", stacklevel=3)
    needed, unread = max(named[:2]) if named and not is_wide else 1, 0
    for number, row in chain(first[named is not None :], rows):
        if len(row) <= needed or (named is None and any(row[COLUMNS:])):
            raise InputError(
                f"{name} line {number}: it has {counted(len(row), 'column')}; give source, target, "
                "and if need be other forms of the target and the word case, separated by tabs, or "
                "by commas in a file named .csv; name other columns in the first line, and convert "
                "XML or JSON to such a table."
            )
        cells = ["".join(row[n : n + 1]) for n in named or range(COLUMNS)]
        codes = _languages_of(row) if has_codes else None
        if codes:
            cells[2:] = "", ""
        if (is_wide and not all(cells[:2])) or (codes and not _are_of(codes, languages)):
            unread += 1
        else:
            yield number, cells
    if unread:
        what = f"{counted(unread, 'line')} not read, as one of the two languages is not in"
        warnings.warn(f"{name} has {what} {'it' if unread == 1 else 'them'}.", stacklevel=3)


def _plain_names(row: Sequence[str]) -> list[str]:
    """Return the names of columns, with those of other tools as names of languages.

    Crowdin writes `Term [en]`, and memoQ `English_United_States`, with `English_United_States_Def`
    for the definition; of several terms of memoQ in a language, only the first has a name.
    """
    found, names, seen = list[str](), {*row}, set[str]()
    for name in row:
        of_memoq = f"{name}_Def" in names
        plain = name.partition("_")[0] if of_memoq else _CROWDIN.sub(r"\1", name)
        found.append("" if of_memoq and plain in seen else plain)
        seen.add(plain)
    return found


def _rows(content: bytes, name: str, *, as_csv: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not blank.

    Quotes around a cell of a TSV are those that spreadsheets add.
    """
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    lines = decode_lines(BytesIO(content), name)
    if as_csv:
        first = [*islice(lines, ROWS)]
        with_ends = (f"{line}\n" for line in chain(first, lines))
        rows = ((n, row) for n, row, _ in csv_rows(with_ends, name, separator_in(first)))
    else:
        rows = ((n, [*map(_unquoted, line.split(TAB))]) for n, line in enumerate(lines, start=1))
    for number, row in rows:
        if any(map(str.strip, row)):
            yield number, [" ".join(filter(None, map(str.strip, _BREAK.split(c)))) for c in row]


def _unquoted(cell: str) -> str:
    found = _QUOTED.fullmatch(cell.strip())
    return found[1].replace('""', '"') if found else cell


def _named(first: Sequence[list[str]], languages: LangCodes, place: str) -> tuple[int, ...] | None:
    """Return the columns of source, target, forms and case that the first of two rows names.

    Raises InputError, with the place, if it names two languages, or both sides, but does not give
    one column for each side.
    """
    row, found = first[0], named_columns(first[0], languages)
    if all(map(_languages_of, first)):
        return None
    if found is None or not _are_of([language_named(row[n]) for n in found], languages):
        spoken = {*map(language_named, row)} - {None}
        are_words = len(row) == 2 and all(len(each.encode()) <= SHORT for each in row)  # it and es
        if are_words and spoken.isdisjoint(map(base_of, filter(None, languages))):
            return None
        if len(spoken) > 1 or {"source", "target"} <= {*map(side_named, row)}:
            src, tgt = languages[0] or "source", languages[1] or "target"
            raise InputError(
                f"{place} names columns, but it is not clear which; name one column {src} and one "
                f"{tgt}, or if it is a term, write it in another line."
            )
        return None
    forms = (n for n, name in enumerate(row) if _FORMS.fullmatch(name))
    case = (n for n, name in enumerate(row) if name.lower() == "case")
    free = [sys.maxsize if any(row[n : n + 1]) else n for n in (2, 3)]
    return (*found, next(forms, free[0]), next(case, free[1]))


def _are_of(codes: Sequence[str | None], languages: LangCodes) -> bool:
    """Return whether codes are those of the two languages, as far as both are known."""
    wanted = (code and base_of(code) for code in languages)
    return all(None in {a, b} or a == b for a, b in zip(codes, wanted, strict=True))


def _languages_of(row: Sequence[str]) -> list[str | None] | None:
    """Return the languages in the last columns of a row, as in DeepL's files; None without them."""
    if len(row) != COLUMNS or language_named(row[-1]) is None:
        return None
    codes = [*map(language_named, row[2:])]
    return codes if all(codes) else None


def _told_of_names(row: Sequence[str], columns: Sequence[int] | None) -> str:
    """Return the warning about a first row that names these columns, or may name one language."""
    shown = [row[n] for n in columns[:2]] if columns else row[:2]
    if columns is not None:
        unread = [repr(name) for n, name in enumerate(row) if name and n not in columns]
        what = "the names of the columns; if it is a term, write it in another line"
        what += f"; other columns, {', '.join(unread)[:200]}, are not read" if unread else ""
    elif any(len(each) > SHORT and language_named(each) for each in shown):
        what = "a term; if it names the columns, change it to source and target"
    else:
        return ""
    return " with ".join(map(repr, shown)) + f", is read as {what}"
