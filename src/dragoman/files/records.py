"""Rows of tables and JSON lines; errors name the file and the line."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from dragoman.errors import InputError
from dragoman.files.reading import longest_line, read_lines, read_text

TAB = "\t"
ROWS = 50
"""Lines of a CSV that tell its separator."""
_NAMED = re.compile(r"\"?sep=([,;])\"?\s*", re.IGNORECASE)
_QUOTED = re.compile('"[^"]*("|$)')
_UNCLOSED = "a quote is opened and not closed; close it, or save the table as TSV, without quotes"


def read_rows(path: Path, *, strict: bool = True) -> Iterator[tuple[int, list[str], str]]:
    """The rows of a table: CSV by its name, or else TSV, which has no quotes.

    Of each the line where it begins, its cells, and how it is written, without the last line end.
    Raises InputError as `read_lines` does, and for CSV that cannot be read.
    """
    separator = separator_of(path)
    if separator == TAB:
        for number, line in enumerate(read_lines(path, strict=strict), start=1):
            yield number, line.split(TAB), line
        return
    number, taken = 1, list[str]()  # the lines of a row
    most = max(longest_line(), csv.field_size_limit())  # which holds for the whole process
    csv.field_size_limit(most)

    def lines() -> Iterator[str]:
        for line in read_text(path, strict=strict):
            taken.append(line)
            if number > 1 or not names_separator(line):  # which then begins the first row
                yield line
        if taken:  # a row asks for another line only within quotes
            raise InputError(f"{path} line {number}: {_UNCLOSED}.")

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
        raise InputError(f"{path} line {number}: {wrong}.") from error


def names_separator(line: str) -> re.Match[str] | None:
    """The separator that the first line of a CSV names for Excel, if it is such a line."""
    return _NAMED.fullmatch(line.removeprefix("\ufeff"))


def separator_of(path: Path) -> str:
    """What is between the cells of a table: `TAB` unless its name is of CSV, which has quotes."""
    if ".csv" not in map(str.lower, path.suffixes):
        return TAB
    return separator_in(read_text(path, strict=False))


def separator_in(lines: Iterable[str]) -> str:
    """What is between the cells of a CSV: a comma, or a semicolon, as Excel writes it where the
    comma is in numbers.

    It is the one that the first line names. It is a semicolon where the first row has those, and no
    comma outside quotes, or where the first rows all have as many, and commas would make more
    columns, or not as many in each.
    """
    first = "\n".join(line.removesuffix("\n") for line in islice(lines, ROWS))
    if named := names_separator(first.partition("\n")[0]):
        return named[1]
    rows = [row for row in _QUOTED.sub("", first).split("\n") if row.strip()]
    if rows and ";" in rows[0] and "," not in rows[0]:
        return ";"
    counts = ({row.count(mark) for row in rows} for mark in ";,")
    semicolons, commas = (max(each) if len(each) == 1 else 0 for each in counts)
    return ";" if semicolons and (not commas or semicolons < commas) else ","


def read_records(path: Path) -> Iterator[tuple[str, object, str]]:
    """Each line's place, as messages call it, what it holds, and the line."""
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{path} line {number}"
        try:
            yield place, json.loads(line), line
        except json.JSONDecodeError as error:
            wrong = f"not JSON: {error.msg} at column {error.colno}" if line.strip() else "empty"
            raise InputError(f"{place} is {wrong}.") from None
        except RecursionError:
            raise InputError(f"{place} is nested too deeply; write one flat object.") from None
        except ValueError:
            raise InputError(f"{place} has too long a number; write it as a string.") from None


def value_at(record: object, key: str, place: str, settings: str) -> object:
    """The value at a dotted key; `settings` are those that choose the key."""
    value = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(repr, value)) if isinstance(value, dict) else "no object"
            raise InputError(f"{place} has no key {key!r} (there is {known}); set {settings}.")
        value = value[part]
    return value


def text_at(record: object, key: str, place: str, settings: str) -> str:
    """The text at a dotted key."""
    value = value_at(record, key, place, settings)
    if not isinstance(value, str):
        raise InputError(f"{place}: the value of {key!r} is not a string.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{place}: {key!r} has an unpaired surrogate; remove it.") from None
    return value
