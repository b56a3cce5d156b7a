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
from dragoman.languages import LangCodes, base_of, language_named
from dragoman.wording import counted

COLUMNS = 4
_FORMS = re.compile(r"(.+ )?(forms|formen)|其他形式", re.IGNORECASE)
"""The names of the column with other forms."""
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_BREAK = re.compile(r"\s*[\t\n]\s*")


def read_columns(
    content: bytes, name: str, languages: LangCodes, *, as_csv: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line of each term, and its source, target, other forms and `case`.

    A first row may name the columns, by sides or by languages. Terms of other languages than these,
    as in the files of DeepL, and rows without a text in one of three or more languages are not
    read. Warns about all this. Raises InputError for a row that has no such columns.
    """
    rows = _rows(content, name, as_csv=as_csv)
    first = [*islice(rows, 2)]
    named = _named([row for _, row in first], languages) if first else None
    if first and (told := _told_of_names(first[0][1], named)):
        warnings.warn(f"{name} line {first[0][0]}, {told}.", stacklevel=3)
    is_wide = named is not None and sum(map(bool, map(language_named, first[0][1]))) > 2
    unread = 0
    for number, row in chain(first[named is not None :], rows):
        if named is None and (len(row) < 2 or any(row[COLUMNS:])):
            raise InputError(
                f"{name} line {number}: it has {counted(len(row), 'column')}; give source, target, "
                "and if need be other forms of the target and the word case, separated by tabs, or "
                "by commas in a file named .csv; name other columns in the first line, and convert "
                "TBX, XML or JSON to such a table."
            )
        cells = ["".join(row[n : n + 1]) for n in named or range(COLUMNS)]
        codes = None if named else _languages_of(row)
        wanted = (code and base_of(code) for code in languages)
        if codes:
            cells[2:] = "", ""
        if (is_wide and not all(cells[:2])) or (
            codes and any(a not in {None, b} for a, b in zip(wanted, codes, strict=True))
        ):
            unread += 1
        else:
            yield number, cells
    if unread:
        what = f"{counted(unread, 'line')} not read, as one of the two languages is not in"
        warnings.warn(f"{name} has {what} {'it' if unread == 1 else 'them'}.", stacklevel=3)


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
            yield number, [_BREAK.sub(" ", cell).strip() for cell in row]


def _unquoted(cell: str) -> str:
    found = _QUOTED.fullmatch(cell.strip())
    return found[1].replace('""', '"') if found else cell


def _named(first: Sequence[list[str]], languages: LangCodes) -> Sequence[int] | None:
    """Return the columns of source, target, forms and case that the first of two rows names."""
    row, found = first[0], named_columns(first[0], languages)
    if found is None or all(map(_languages_of, first)):
        return None
    codes = [language_named(row[n]) for n in found if len(row[n].encode()) <= SHORT]
    between = {base_of(each) for each in languages if each}
    if len(between) == len(codes) == 2 and None not in codes and {*codes} != between:
        return None  # words, such as it and es
    forms = (n for n, name in enumerate(row) if _FORMS.fullmatch(name))
    case = (n for n, name in enumerate(row) if name.lower() == "case")
    free = [sys.maxsize if any(row[n : n + 1]) else n for n in (2, 3)]
    return (*found, next(forms, free[0]), next(case, free[1]))


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
