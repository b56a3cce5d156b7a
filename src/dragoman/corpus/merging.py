"""Merged corpora: each pair repeated as often as it is taken, in the layout of the first."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from dragoman.corpus.config import PairFiles
from dragoman.corpus.writing import in_cells, writing
from dragoman.data.checks import Pair
from dragoman.data.corpus import (
    KEYS,
    SHOWN,
    CorpusConfig,
    are_columns,
    are_numbers,
    columns_of,
    read_entries,
    read_pairs,
)
from dragoman.data.memory import MEMORIES
from dragoman.errors import InputError
from dragoman.files.documents import kind_of_name
from dragoman.files.reading import ending_of, read_lines
from dragoman.files.records import TAB, read_rows, separator_of

LAYOUTS = {".tsv": "tsv", ".csv": "tsv", ".jsonl": "jsonl", **dict.fromkeys(MEMORIES[:-2], "tm")}
"""Options of `PairFiles` by file name extension."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def corpus_of(given: str, files: PairFiles) -> CorpusConfig:
    """Return the corpus named by a file, its keys after commas if any, or by source and target.

    `files` provides the languages, and the keys of a file named alone. Raises InputError for a name
    that determines no layout.
    """
    parts = _parts(given)
    if len(parts) == 2:
        return replace(files, src=Path(parts[0]), tgt=Path(parts[1])).corpus()
    if len(parts) == 3:
        given, files = parts[0], replace(files, src_key=parts[1], tgt_key=parts[2])
    layout = LAYOUTS.get(ending_of(Path(given)))
    if layout is None:
        raise InputError(
            f"The name of {given} tells no layout; name source and target with a comma between "
            f"(a.en,a.de), or a file that ends in one of {', '.join(LAYOUTS)}, and its own keys "
            "after it if it has any (a.jsonl,en,de)."
        )
    return replace(files, **{layout: Path(given)}).corpus()  # type: ignore[arg-type] # a path


def corpora_of(given: Sequence[str], files: PairFiles) -> list[CorpusConfig]:
    """Return the corpus of each name; a table with two columns need not have the keys of `files`.

    Raises InputError for keys that no corpus needs.
    """
    keys = files.src_key, files.tgt_key
    corpora = [corpus_of(name, files) for name in given]
    found = [
        replace(each, src_key=KEYS[0], tgt_key=KEYS[1])
        if each.keys == keys and not _has_keys(each)
        else each
        for each in corpora
    ]
    if keys != KEYS and keys not in (each.keys for each in found):
        named = zip(("--src-key", "--tgt-key"), keys, KEYS, strict=True)
        wrong = [f"{option} {key}" for option, key, default in named if key != default]
        raise InputError(f"No corpus needs {' and '.join(wrong)}; leave it out, or correct it.")
    return found


def texts_of(given: Path, files: PairFiles) -> Iterator[str]:
    """Return the lines of a file, split at tabs, or both sides of a corpus.

    Both sides are read if keys follow the name of a table, and from a CSV, JSON lines or a memory.
    `files` provides the languages, and the keys of a file named alone. Raises InputError for a
    document, whose lines are not texts.
    """
    name, *keys = _parts(str(given))
    ending = ending_of(Path(name))
    if ending in LAYOUTS and (keys or ending != ".tsv"):
        where = replace(files, src=None, tgt=None, tsv=None, jsonl=None, tm=None)
        return chain.from_iterable(read_pairs(corpus_of(str(given), where), strict=False))
    if kind := kind_of_name(given):
        raise InputError(
            f"{given} is {kind}, whose markup would be held out as text; extract its text as lines."
        )
    return chain.from_iterable(line.split(TAB) for line in read_lines(given))


def _parts(given: str) -> list[str]:
    """Split off what follows a file after commas: its two keys, or the file of the other side.

    The name of an existing file is not split, and others only at the last two commas, since earlier
    ones may belong to the name of a folder.
    """
    return [given] if Path(given).exists() else given.rsplit(",", 2)


def _has_keys(corpus: CorpusConfig) -> bool:
    """Return whether the keys of a corpus apply to its file.

    They apply to a table of two columns only if they are names or numbers of these.
    """
    if corpus.tsv is None:
        return corpus.jsonl is not None
    _, first, _ = next(read_rows(corpus.paths[0], strict=False))
    is_named = not {*corpus.keys}.isdisjoint(first)
    return len(first) != 2 or is_named or are_columns(corpus.keys, len(first))


def layout_of(first: CorpusConfig) -> CorpusConfig:
    """Return the layout for merging: that of the first corpus, or a TSV.

    A TSV replaces what cannot take other pairs: a memory, whose units cannot be repeated, and a
    table whose columns have no names.
    """
    is_simple = first.tm is None and not (first.tsv and are_numbers(first.keys))
    return first if is_simple else CorpusConfig(tsv="memory.tsv")


def write_merged(
    corpora: Sequence[CorpusConfig], times: Sequence[Iterable[int]], files: Sequence[Path]
) -> int:
    """Write the pairs of corpora one after another, repeated; return the number of pairs.

    Pairs of a corpus with the layout and columns of the first are copied unchanged; of others, both
    texts are written.
    """
    layout = layout_of(corpora[0])
    wanted, count = _shape(layout) if layout in corpora else (TAB, ""), 0
    with writing(files) as write:
        if wanted[1]:
            write([wanted[1]])
        for corpus, numbers in zip(corpora, times, strict=True):
            is_same = _shape(corpus) == wanted and corpus.keys == layout.keys
            often = [*numbers]
            for turn in range(max(often, default=0)):
                rest = iter(often)
                for raw, pairs, _ in read_entries(corpus, strict=False):
                    for pair in pairs:
                        if next(rest) > turn:
                            write(raw if is_same else _lines(layout, wanted, pair, corpus.label))
                            count += 1
    return count


def _shape(corpus: CorpusConfig) -> tuple[str, str]:
    """Return the files or the cell separator of a corpus, and the row that names columns."""
    if corpus.tsv is None:
        return "lines" if corpus.src else "jsonl" if corpus.jsonl else "tm", ""
    raw, pairs, _ = next(read_entries(corpus, strict=False))
    return separator_of(corpus.paths[0]), "" if pairs else str(raw[0])


def _lines(layout: CorpusConfig, shape: tuple[str, str], pair: Pair, corpus: str) -> Sequence[str]:
    """Return a pair as a line for each file of a layout, which has this shape."""
    if layout.src is not None:
        return [in_cells([text]) for text in pair]
    if layout.jsonl is not None:
        texts = zip(layout.keys, pair, strict=True)
        record: dict[str, Any] = {}
        for key, text in texts:
            *outer, last = key.split(".")
            inner = record
            for name in outer:
                inner = inner.setdefault(name, {})
            inner[last] = text
        line = json.dumps(record, ensure_ascii=False)
        if _SURROGATE.search(line):
            raise InputError(
                f"{corpus} has a pair that is not UTF-8, as JSON must be: {line[:SHOWN]!r}; "
                "take it out with dragoman data clean."
            )
        return [line]
    (separator, head), row = shape, io.StringIO()
    in_quotes = separator != TAB
    names = next(csv.reader([head], delimiter=separator)) if in_quotes else head.split(TAB)
    cells = [*pair]
    if columns := columns_of(layout, names):
        cells = [""] * len(names)
        cells[columns[0]], cells[columns[1]] = pair
    if in_quotes:
        csv.writer(row, delimiter=separator, lineterminator="").writerow(cells)
    return [row.getvalue() if in_quotes else in_cells(cells)]
