"""Reading rows of tables and JSON lines; errors name the file and the line."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from dragoman.errors import InputError
from dragoman.files.reading import longest_line, read_lines, read_text
from dragoman.languages import LangCodes, base_of, language_named, side_named

TAB = "\t"
ROWS = 50
"""Number of lines of a CSV that determine its separator."""
ONE_PER_LINE = {"[": "jq -c '.[]'", "{": "jq -c ."}
"""Commands that make JSON lines of a file, by how it begins."""
SHORT = 3
"""Letters of language codes, many of which are also words."""
_NAMED = re.compile(r"\"?sep=([,;\t])\"?\s*", re.IGNORECASE)
_QUOTED = re.compile('"[^"]*("|$)')
_UNCLOSED = "a quote is opened and not closed; close it, or save the table as TSV, without quotes"


def read_rows(path: Path, *, strict: bool = True) -> Iterator[tuple[int, list[str], str]]:
    """Yield the rows of a table: CSV if the name says so, else TSV, which has no quotes.

    Each row is the number of its first line, its cells, and its raw text without the last line end.
    Raises InputError as `read_lines` does, and for CSV that cannot be read.
    """
    separator = separator_of(path)
    if separator == TAB:
        for number, line in enumerate(read_lines(path, strict=strict), start=1):
            yield number, line.split(TAB), line
        return
    yield from csv_rows(read_text(path, strict=strict), str(path), separator)


def csv_rows(
    texts: Iterable[str], name: str, separator: str
) -> Iterator[tuple[int, list[str], str]]:
    """Yield the rows of CSV like `read_rows`, from its lines with their ends."""
    number, taken = 1, list[str]()  # the lines of a row
    most = max(longest_line(), csv.field_size_limit())  # global for the whole process
    csv.field_size_limit(most)

    def lines() -> Iterator[str]:
        for line in texts:
            taken.append(line)
            if number > 1 or not names_separator(line):  # such a line is a part of the first row
                yield line
        if taken:  # a row asks for another line only within quotes
            raise InputError(f"{name} line {number}: {_UNCLOSED}.")

    rows = csv.reader(lines(), delimiter=separator)
    try:
        for row in rows:
            yield number, row, "".join(taken).removesuffix("\n")
            number += len(taken)
            taken.clear()
    except csv.Error as error:
        wrong = f"{_UNCLOSED}, or a cell has more than {most:,} characters"
        if "\r" in taken[-1]:
            wrong = "a carriage return is within a cell; put the cell in quotes, or save the file "
            wrong += "with line feeds as the ends of its lines"
        raise InputError(f"{name} line {number}: {wrong}.") from error


def names_separator(line: str) -> re.Match[str] | None:
    """Match the separator that the first line of a CSV names for Excel, if it does."""
    return _NAMED.fullmatch(line.removeprefix("\ufeff"))


def separator_of(path: Path) -> str:
    """Return the separator of a table: `TAB` unless its name is that of a CSV, which has quotes."""
    if ".csv" not in map(str.lower, path.suffixes):
        return TAB
    return separator_in(read_text(path, strict=False))


def separator_in(lines: Iterable[str]) -> str:
    """Return the separator of a CSV: a comma, or a semicolon, which Excel writes where numbers
    contain commas, or a tab.

    A separator that the first line names is used. Otherwise it is a semicolon, or else a tab, if
    the first row has one and no comma outside quotes. It is also a semicolon if the first rows all
    have the same number of them, and commas would give more columns, or a different number in each.
    """
    first = "\n".join(line.removesuffix("\n") for line in islice(lines, ROWS))
    if named := names_separator(first.partition("\n")[0]):
        return named[1]
    rows = [row for row in _QUOTED.sub("", first).split("\n") if row.strip()]
    if rows and "," not in rows[0] and (found := next((c for c in ";\t" if c in rows[0]), "")):
        return found
    counts = ({row.count(mark) for row in rows} for mark in ";,")
    semicolons, commas = (max(each) if len(each) == 1 else 0 for each in counts)
    return ";" if semicolons and (not commas or semicolons < commas) else ","


def named_columns(row: Sequence[str], languages: LangCodes) -> tuple[int, int] | None:
    """Return the source and target columns that the first row of a table names, or None.

    Columns are named "source" and "target" or similar, or after languages, which take precedence. A
    table with two columns may name any two languages, a larger one only two in all, unless others
    are requested.
    """
    names = [(side_named(cell), language_named(cell)) for cell in row]
    wanted = (base_of(code) if code else "" for code in languages)
    sides = [
        [n for n, (_, spoken) in enumerate(names) if spoken == language]
        or [n for n, (named, _) in enumerate(names) if named == side]
        for side, language in zip(("source", "target"), wanted, strict=True)
    ]
    if all(len(side) == 1 for side in sides):
        return sides[0][0], sides[1][0]
    spoken = [n for n, (_, language) in enumerate(names) if language]
    if len(row) > 2:  # "id" is not Indonesian here, but numbers the rows
        spoken = [n for n in spoken if row[n].lower() != "id" and not any(languages)]
    if len(spoken) != 2 or names[spoken[0]][1] == names[spoken[1]][1]:
        return None
    cells = [row[n] for n in spoken]
    are_names = all(len(cell) > SHORT or cell in {cell.lower(), cell.upper()} for cell in cells)
    return (spoken[0], spoken[1]) if are_names else None


def read_records(path: Path) -> Iterator[tuple[str, object, str]]:
    """Yield each line's place, as named in messages, its JSON value, and the line."""
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{path} line {number}"
        try:
            yield place, json.loads(line), line
        except json.JSONDecodeError as error:
            wrong = f"not JSON: {error.msg} at column {error.colno}" if line.strip() else "empty"
            if line.strip() in ONE_PER_LINE:
                wrong += f"; write one object per line: {ONE_PER_LINE[line.strip()]} OLD > NEW"
            raise InputError(f"{place} is {wrong}.") from None
        except (RecursionError, ValueError):
            wrong = "is nested too deeply, or has too long a number"
            how = "write one flat object, and such a number as a string"
            raise InputError(f"{place} {wrong}; {how}.") from None


def value_at(record: object, key: str, place: str, settings: str) -> object:
    """Return the value at a dotted key; `settings` are the settings that choose the key."""
    value = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(repr, value)) if isinstance(value, dict) else "no object"
            if isinstance(record, list):
                known += f" but a list, from which {ONE_PER_LINE['[']} OLD > NEW makes lines"
            raise InputError(f"{place} has no key {key!r} (there is {known}); set {settings}.")
        value = value[part]
    return value


def text_at(record: object, key: str, place: str, settings: str) -> str:
    """Return the text at a dotted key."""
    value = value_at(record, key, place, settings)
    if not isinstance(value, str):
        raise InputError(f"{place}: the value of {key!r} is not a string.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{place}: {key!r} has an unpaired surrogate; remove it.") from None
    return value
