"""CSV and TSV: the cells that contain text, or those of the requested columns.

The first row, which names the columns, is preserved; so are quotes and everything between cells.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dragoman.documents import fragments
from dragoman.documents.characters import decoded
from dragoman.documents.document import Document, Left, Segment, one_part
from dragoman.errors import InputError, did_you_mean
from dragoman.text.marked import Marked

DELIMITERS = ",;\t|"
_TOLD = re.compile(rf"sep=([{DELIMITERS}])[\r\n]+")
"""The line by which Excel is told the separator."""
_OPEN = re.compile(r'"(?:[^"]|"")*+')
_DOUBLED = re.compile('""')
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
_CELL = re.compile(rf"(?:^|(?<=[{DELIMITERS}])){_QUOTED.pattern}")


def read(data: bytes, name: str, columns: Sequence[str] = ()) -> Document:
    """Read the cells of a table.

    Raises InputError for a column that the table lacks, and for a quote that does not end.
    """
    text, encode = decoded(data, name)
    left = Left()
    return one_part(text, encode, _segments(text, name, columns, left), name, left)


def _segments(text: str, name: str, columns: Sequence[str], left: Left) -> Iterator[Segment]:
    told = _TOLD.match(text)
    begin = told.end() if told else 0
    first = re.compile(r"[^\r\n]*").match(text, begin)
    bare = told[1] if told else _CELL.sub("", first[0] if first else "")
    sign = "\t" if name.lower().endswith(".tsv") else max(DELIMITERS, key=bare.count)
    sign = sign if sign in bare or sign == "\t" else ""
    ends = f"\r\n{sign or DELIMITERS}"
    head, chosen = list[str](), None
    if text:
        left.add("the names of the columns", "row 1")
    for row, column, place, raw in _cells(text, begin, sign):
        if _OPEN.fullmatch(raw):
            raise InputError(f"{name} row {row} has a quote that does not end; end it or leave it.")
        closed = _QUOTED.fullmatch(raw) is not None
        cell = raw[1:-1].replace('""', '"') if closed else raw
        if row == 1:
            head.append(cell.strip())
            continue
        chosen = chosen or {_number(asked, head, name) for asked in columns}
        where = f"row {row}, {head[column][:40] if column < len(head) else column + 1}"
        if (chosen and column not in chosen) or not any(map(str.isalpha, raw)):
            continue
        if raw[:1] == '"' and not closed:
            left.add("cells with text after the closing quote", where)
            continue
        if not closed:
            source = fragments.with_elements((cell,))
            is_bare = sign == "\t" or '"' in raw  # for readers that do not parse quotes
            write = partial(_written, signs=ends if is_bare else f'"{ends}')
            yield Segment(place, place + len(raw), source, write, where)
        elif fragments.is_page(cell):
            at = fragments.places(raw[1:-1], _DOUBLED, place + 1)
            write = partial(_quoted, written=fragments.written)
            yield from fragments.read_page(cell, at, write, where, left)
        else:
            yield from _lines(raw[1:-1], place + 1, where)


def _lines(raw: str, start: int, where: str) -> Iterator[Segment]:
    for line in re.finditer(r"[^\r\n]+", raw):
        source, begin = fragments.with_elements((line[0].replace('""', '"'),)), start + line.start()
        yield Segment(begin, begin + len(line[0]), source, _quoted, where)


def _cells(text: str, place: int, sign: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield the row, column, place and raw text of each cell from a place on.

    A `sign` of "" separates no cells.
    """
    row, column, end = 1, 0, re.escape(sign)
    ends = f"{end}|" if sign else ""
    cell = re.compile(rf'("(?:[^"]|"")*+"?+[^{end}\r\n]*+|[^{end}\r\n]*+)({ends}\r\n|\r|\n|\Z)')
    while match := cell.match(text, place):
        yield row, column, place, match[1]
        row, column = (row, column + 1) if match[2] == sign else (row + 1, 0)
        place = match.end()
        if not match[2]:
            return


def _number(asked: str, head: list[str], name: str) -> int:
    """Return the index of the requested column, given by its name or its number from 1."""
    if asked in head:
        return head.index(asked)
    if asked.isdecimal() and len(asked) < 7 and 1 <= int(asked) <= len(head):
        return int(asked) - 1
    near = did_you_mean(asked, head) or f"; it has {', '.join(head)[:1000]}."
    raise InputError(f"{name} has no column {asked}{near}")


def _quoted(marked: Marked, written: Callable[[Marked], str] = Marked.written) -> str:
    return written(marked).replace('"', '""')


def _written(marked: Marked, signs: str) -> str:
    """Write a cell without quotes, unless it begins with one or contains one of these signs."""
    text = marked.written()
    needs_quotes = text.startswith('"') or any(sign in text for sign in signs)
    return f'"{_quoted(marked)}"' if needs_quotes else text
