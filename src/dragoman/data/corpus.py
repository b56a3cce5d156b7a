"""Sources of sentence pairs: parallel files, a TSV, JSON lines, a translation memory."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from dragoman.data.memory import (
    MEMORIES,
    XML,
    Entry,
    declared_languages,
    memory_entries,
    tell_of_names,
)
from dragoman.errors import InputError, did_you_mean
from dragoman.files.reading import ending_of, read_lines
from dragoman.files.records import (
    named_columns,
    read_records,
    read_rows,
    separator_of,
    text_at,
)
from dragoman.languages import LangCodes, language_named
from dragoman.ranges import Positive, check_ranges
from dragoman.wording import counted

SHOWN = 60
"""Number of characters of a line that a message shows."""
EXAMPLES = 5
"""Number of line numbers that a finding keeps."""

_NUMBER = re.compile("[1-9][0-9]{0,5}")


@dataclass(slots=True)
class Finding:
    """The number of lines with a property, and the first of them."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    """Line numbers, from 1; at most `EXAMPLES`."""

    def add(self, line: int) -> None:
        """Count the line."""
        self.count += 1
        if len(self.lines) < EXAMPLES:
            self.lines.append(line)

    @classmethod
    def of(cls, lines: Sequence[int]) -> "Finding":
        """Return the finding of all lines with the property."""
        return cls(count=len(lines), lines=list(lines[:EXAMPLES]))

    def __str__(self) -> str:
        return self.told("line")

    def told(self, what: str) -> str:
        """Return the count, and the numbers of the first `what`s with the property."""
        if not self.count:
            return "0"
        shown = ", ".join(f"{line:,}" for line in self.lines)
        more = ", ..." if self.count > len(self.lines) else ""
        return f"{self.count:,} ({what}{'s' * (self.count > 1)} {shown}{more})"


Side = Literal["src", "tgt"]
KEYS = ("src", "tgt")
"""Default keys of source and target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusConfig:
    """One corpus: give `src` and `tgt`, or `tsv`, or `jsonl`, or `tm`."""

    name: str = ""
    """Name of the corpus in messages; its file by default."""
    src: str | None = None
    """File of source sentences, one per line; .gz, .bz2, .xz and .zst are decompressed."""
    tgt: str | None = None
    """File of target sentences, parallel to `src` line by line."""
    tsv: str | None = None
    """TSV file with a source, a tab and a target per line; or a table (also .csv) with columns
    `src_key` and `tgt_key`, by their names in the first row or by number."""
    jsonl: str | None = None
    """File of JSON objects, one per line, with a source and a target text."""
    tm: str | None = None
    """Translation memory: TMX, XLIFF, PO, CSV or TSV."""
    src_lang: str | None = None
    """Language of the sources; that of the data by default."""
    tgt_lang: str | None = None
    """Language of the targets; that of the data by default."""
    src_key: str = KEYS[0]
    """Key of the source in a JSON object, with dots for nested objects ("translation.en"), or its
    column in a table, by name or number."""
    tgt_key: str = KEYS[1]
    """Key or column of the target."""
    weight: Positive = 1.0
    """Number of passes over the corpus per epoch; 0.5 takes a random half each time."""

    def __post_init__(self) -> None:
        layouts = self.src is not None or self.tgt is not None, self.tsv, self.jsonl, self.tm
        if (self.src is None) != (self.tgt is None):
            raise InputError(
                f"{self.src or self.tgt} has no file of the other side; src and tgt (--src and "
                "--tgt) go together."
            )
        if sum(map(bool, layouts)) != 1:
            raise InputError(
                f"The corpus {self.name or '(unnamed)'} must have src and tgt, or tsv, or jsonl, "
                "or tm: exactly one of the four."
            )
        if self.src_key == self.tgt_key:
            raise InputError(
                f"{self.label} has source and target at the same key, {self.src_key!r}; give two."
            )
        check_ranges(self)

    @property
    def label(self) -> str:
        """The name, or else the file."""
        return self.name or str(self.src or self.tsv or self.jsonl or self.tm)

    @property
    def paths(self) -> list[Path]:
        """The files of the corpus."""
        return [Path(path) for path in (self.src, self.tgt, self.tsv, self.jsonl, self.tm) if path]

    @property
    def keys(self) -> tuple[str, str]:
        """Keys or columns of source and target."""
        return self.src_key, self.tgt_key

    @property
    def languages(self) -> LangCodes:
        """Languages of source and target, if set."""
        return self.src_lang, self.tgt_lang

    @property
    def unit(self) -> str:
        """What the number of a pair counts: lines, or units of XML."""
        return "unit" if self.tm and ending_of(Path(self.tm)) in XML else "line"


def read_pairs(
    corpus: CorpusConfig, *, strict: bool = True, left: Counter[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of the corpus; pair `i` (from 0) is line `i + 1` of its file or files.

    If the first row names columns, and in a memory, it is the pair of that number instead; `left`
    counts what is left out of a memory. Raises InputError with file and line for anything that is
    not a pair; unless `strict`, a line of a text file that is not UTF-8 has a lone surrogate for
    each wrong byte.
    """
    for entry in read_entries(corpus, strict=strict):
        yield from entry.pairs
        if left is not None:
            left.update(entry.left)


def numbered_pairs(corpus: CorpusConfig) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield each pair with its number from 1: the line where it begins or, in XML, its unit.

    Units without a pair count too. Lines are read without `strict`.
    """
    line, unit = 1, 0
    for (piece, *_), pairs, left in read_entries(corpus, strict=False):
        unit += bool(pairs or left)
        if isinstance(piece, str):
            start, end = line, line + piece.count("\n") + 1
        else:
            blank = len(piece) - len(piece.lstrip())
            start, end = line + piece.count(b"\n", 0, blank), line + piece.count(b"\n")
        yield from ((unit if corpus.unit == "unit" else start, pair) for pair in pairs)
        line = end


def read_entries(corpus: CorpusConfig, *, strict: bool = True) -> Iterator[Entry]:
    """Return the pieces of the corpus, raw and with their pairs; together they are its files."""
    if corpus.src:
        return _parallel(*corpus.paths, strict=strict)
    if corpus.tsv:
        return _table(corpus, strict=strict)
    if corpus.jsonl:
        return _jsonl(corpus)
    return memory_entries(corpus.paths[0], corpus.languages)


@dataclass(frozen=True, slots=True)
class CorpusTexts:
    """All sentences of one or both sides of some corpora, read anew in each iteration.

    All of one side come first, then all of the other, so that evenly spaced samples contain both.
    """

    corpora: Sequence[CorpusConfig]
    sides: Sequence[Side]

    def __iter__(self) -> Iterator[str]:
        for side in self.sides:
            for corpus in self.corpora:
                for src, tgt in read_pairs(corpus):
                    yield src if side == "src" else tgt


def _parallel(src_path: Path, tgt_path: Path, *, strict: bool) -> Iterator[Entry]:
    src_lines, tgt_lines = (read_lines(path, strict=strict) for path in (src_path, tgt_path))
    for number, (src, tgt) in enumerate(zip_longest(src_lines, tgt_lines), start=1):
        if src is None or tgt is None:
            longer = number + sum(1 for _ in (src_lines if tgt is None else tgt_lines))
            num_src, num_tgt = (longer, number - 1) if tgt is None else (number - 1, longer)
            raise InputError(
                f"{src_path} has {counted(num_src, 'line')} but {tgt_path} has {num_tgt:,}; line n "
                "of one must belong to line n of the other."
            )
        pair = src, tgt
        yield Entry(pair, (pair,))


def columns_of(corpus: CorpusConfig, row: Sequence[str]) -> tuple[int, int] | None:
    """Return the source and target columns that the first row of a table names, or None.

    The names are the keys of the corpus or, if these are the defaults, those of `named_columns`.
    """
    if {*corpus.keys} <= {*row}:
        return row.index(corpus.src_key), row.index(corpus.tgt_key)
    return named_columns(row, corpus.languages) if corpus.keys == KEYS else None


def named_languages(corpus: CorpusConfig) -> LangCodes:
    """Return the languages that columns, keys or files are named after, or that XLIFF declares.

    Returns none unless each side has one.
    """
    path, names = corpus.paths[0], ["", ""]
    if corpus.src is not None:
        names = [ending_of(each)[1:] for each in corpus.paths]
    elif corpus.jsonl is not None:
        names = [key.rpartition(".")[2] for key in corpus.keys]
    elif not path.is_file():  # a pipe can be read only once
        return None, None
    elif corpus.tm is not None and ending_of(path) not in MEMORIES[-2:]:
        return declared_languages(path)
    else:
        _, row, _ = next(read_rows(path, strict=False))
        names = [row[column] for column in columns_of(corpus, row) or ()] or names
    src, tgt = map(language_named, names)
    return (src, tgt) if src and tgt and src != tgt else (None, None)


def _table(corpus: CorpusConfig, *, strict: bool) -> Iterator[Entry]:
    path, keys = corpus.paths[0], corpus.keys
    width, src, tgt = 2, 0, 1
    between = {",": "comma", ";": "semicolon"}.get(separator_of(path), "tab")
    shape = "a line is source, one tab, target".replace("tab", between)
    for number, cells, raw in read_rows(path, strict=strict):
        if number == 1 and (named := columns_of(corpus, cells)):
            width, (src, tgt) = len(cells), named
            shape = f"the first line names {width}"
            if keys == KEYS and not any(corpus.languages):
                tell_of_names(path, cells, named=True)
            yield Entry((raw,))
            continue
        if number == 1 and are_columns(keys, len(cells)):
            width, src, tgt = len(cells), *(int(key) - 1 for key in keys)
            shape = f"the first has {width}"
        elif number == 1 and keys != KEYS:
            raise InputError(_missing(path, keys, cells))
        elif number == 1:
            tell_of_names(path, cells, named=False)
        if len(cells) != width:
            wrong = f"{path} line {number} has {counted(len(cells), 'column')}; {shape}."
            if number == 1:
                wrong += " Or choose two: src_key and tgt_key (--src-key and --tgt-key) are names "
                wrong += "in the first line, or numbers."
            if between == "tab" and raw.count('"') % 2:
                wrong += " If a cell in quotes has several lines, save the table as CSV: a TSV "
                wrong += "knows no quotes."
            raise InputError(wrong)
        yield Entry((raw,), ((cells[src], cells[tgt]),))


def are_numbers(keys: Sequence[str]) -> bool:
    """Return whether keys are column numbers, from 1, of a table without a row of names."""
    return all(map(_NUMBER.fullmatch, keys))


def are_columns(keys: Sequence[str], width: int) -> bool:
    """Return whether keys are column numbers of a table of this width."""
    return are_numbers(keys) and max(map(int, keys)) <= width


def _missing(path: Path, keys: tuple[str, str], cells: Sequence[str]) -> str:
    """Return the error for a key that is neither number nor name of a column in this row."""
    if all(key.removeprefix("-").isdecimal() for key in keys):
        key = next(key for key in keys if not are_columns([key], len(cells)))
        count = counted(len(cells), "column")
        return f"{path} has {count}, counted from 1 (1, 2, ...), and no column {key[:SHOWN]}."
    missing = next(key for key in keys if key not in cells)
    near = did_you_mean(missing, cells) or f": {', '.join(cells)[:SHOWN]!r}."
    return f"{path} names no column {missing!r} in its first line{near}"


def _jsonl(corpus: CorpusConfig) -> Iterator[Entry]:
    settings = "src_key and tgt_key (--src-key and --tgt-key)"
    for place, record, line in read_records(corpus.paths[0]):
        src, tgt = (text_at(record, key, place, settings) for key in corpus.keys)
        yield Entry((line,), ((src, tgt),))
