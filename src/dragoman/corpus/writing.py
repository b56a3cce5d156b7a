"""Pairs written to new files in the layout of their corpus, which appear when complete."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from dragoman.corpus.checking import Checked, Read
from dragoman.corpus.config import EVERY
from dragoman.data.checks import Pair
from dragoman.data.corpus import CorpusConfig, read_entries, read_pairs
from dragoman.data.memory import OTHER, languages_in
from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import COMPRESSED
from dragoman.files.records import read_records, value_at
from dragoman.files.writing import names_device, packing, replacing
from dragoman.wording import counted

_BREAK = re.compile("\r\n|[\t-\r\x1c-\x1e\x85\u2028\u2029]")


def files_of(corpus: CorpusConfig, out: Path, parts: Sequence[str]) -> list[list[Path]]:
    """Return the files of each part of a corpus in a folder.

    A file is named after its part (`train.en`) or, if that is empty, keeps its name (`a.en`), and
    is compressed if the corpus is. Raises InputError for a corpus whose two files have one name,
    for a file that exists, and if the folder cannot be created or written.
    """
    there = next(each for each in (out, *out.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        what = "read-only" if there.is_dir() else "not a folder"
        raise InputError(f"Cannot write to {out}: {there} is {what}; give another --out.")
    names = [(path.name.removesuffix(_packed(path)), _packed(path)) for path in corpus.paths]
    if len({*names}) < len(names):
        name = "".join(names[0])
        raise InputError(
            f"Both files are named {name}, and would be one in {out}; rename one, such as to "
            f"src.{name}."
        )
    ends = [Path(name).suffix for name, _ in names]
    if len({*ends}) < len(names) or not all(ends):
        ends = [f".{name}" for name, _ in names]
    of_file = [*zip(names, ends, strict=True)]
    found = [
        [out / f"{f'{part}{end}' if part else name}{packed}" for (name, packed), end in of_file]
        for part in parts
    ]
    for path in (path for files in found for path in files):
        check_unused(path, corpus.paths, "--out")
    return found


def check_removed(removed: Path, to_read: Iterable[Path], to_write: Iterable[Path]) -> None:
    """Raise InputError if the file for removed pairs exists, is read, or is another output."""
    check_unused(removed, to_read, "--keep-removed")
    if removed.resolve() in {each.resolve() for each in to_write}:
        raise InputError(f"{removed} is written to --out; give another --keep-removed.")


def check_unused(output: Path, to_read: Iterable[Path], option: str) -> None:
    """Raise InputError for an output file that is also read, or exists and is not a device."""
    if output.resolve() in {each.resolve() for each in to_read}:
        raise InputError(f"{output} is a file to read; give another {option}.")
    if output.exists() and not names_device(output):
        raise InputError(f"{output} exists already; give another {option}.")


def _packed(path: Path) -> str:
    """Return the extension of a compressed file, or ""."""
    return path.suffix if path.suffix in COMPRESSED else ""


def read_of(corpus: CorpusConfig, say: Callable[[str], None] = lambda _: None) -> Read:
    """Return a reader of the pairs of a corpus; invalid UTF-8 becomes lone surrogates.

    It tells `say` once which units of a memory are not pairs. Raises InputError if none is one.
    """
    say = cache(say)

    def read() -> Iterator[Pair]:
        left, some = Counter[str](), False
        for pair in read_pairs(corpus, strict=False, left=left):
            some = True
            yield pair
        for why, count in left.items():
            say(f"{corpus.label}: {counted(count, 'unit is', 'units are')} no pair: {why}.")
        if left and not some:
            known = ", ".join(languages_in(corpus.paths[0])) or "other languages"
            to_do = f"it has {known}, so choose from them with --src-lang and --tgt-lang"
            to_do = to_do if OTHER in left else "give another file"
            raise InputError(f"{corpus.label} has no pair: {', '.join(left)}; {to_do}.")

    return read


def documents_of(corpus: CorpusConfig, document: str) -> Iterator[str]:
    """Yield the name of each pair's document, from a column, a key or a third parallel file.

    Raises InputError if a pair has none, for a memory, and for an empty name.
    """
    if corpus.tm is not None:
        raise InputError(
            f"{corpus.label} is a memory; --document needs --tsv, --jsonl, or --src and --tgt."
        )
    if not document:
        raise InputError("--document is empty; name a column, a key or a file, or leave it out.")
    if not corpus.src and document in corpus.keys:
        raise InputError(
            f"--document {document} has texts, not the names of their documents; give another."
        )
    if corpus.jsonl is not None:
        values = (
            value_at(record, document, place, "--document")
            for place, record, _ in read_records(corpus.paths[0])
        )
        names = ("" if value is None else str(value) for value in values)
    else:
        beside = replace(corpus, tgt=document) if corpus.src else replace(corpus, tgt_key=document)
        names = (name for _, name in read_pairs(beside, strict=False))
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(f"{corpus.label}: pair {number:,} has no document; name one for each.")
        yield name


def write_sets(
    corpus: CorpusConfig, chosen: Iterable[int], files: Sequence[Sequence[Path]]
) -> list[int]:
    """Write each pair, as the corpus has it, to the files of its set; -1 is no set.

    A piece without pairs goes into every set if it is a header, into none if its units are left
    out: see `Entry`. If a piece has several pairs, such as a message with plural forms, it is
    written only if all are in one set. Returns the number of pairs of each set. Raises
    DragomanError if this leaves one without pairs.
    """
    counts, numbers, torn = [0] * len(files), iter(chosen), set[int]()
    with ExitStack() as stack:
        write = [stack.enter_context(writing(each)) for each in files]
        for raw, pairs, left in read_entries(corpus, strict=False):
            sets = {next(numbers) for _ in pairs} if pairs or left else {*range(len(files))}
            if pairs and len(sets) > 1:
                torn |= sets
                continue
            for number in sets - {-1}:
                write[number](raw)
                counts[number] += len(pairs)
        if not all(counts[number] for number in torn - {-1}):
            raise DragomanError(
                "No pair is left to write: others of its piece of the corpus, such as a message "
                "with plural forms, are not chosen or are in another set."
            )
    return counts


@contextmanager
def writing(paths: Sequence[Path]) -> Iterator[Callable[[Sequence[str | bytes]], None]]:
    """Yield a function that writes pieces to files, which get their names when all are written."""
    with ExitStack() as stack:
        parts = [stack.enter_context(replacing(path, "corpus")) for path in paths]
        streams = [
            stack.enter_context(packing(part, path))
            for part, path in zip(parts, paths, strict=True)
        ]

        def write(raw: Sequence[str | bytes]) -> None:
            for stream, piece in zip(streams, raw, strict=True):
                if isinstance(piece, str):
                    piece = f"{piece}\n".encode(errors="surrogateescape")  # noqa: PLW2901
                stream.write(piece)

        yield write


def write_removed(numbered: Iterable[tuple[int, Pair]], found: Checked, removed: Path) -> None:
    """Write the pairs that break a rule as tab-separated rule, line, source and target.

    Tabs and line breaks in a text become spaces.
    """
    rows = zip(numbered, found.first(), strict=True)
    with writing([removed]) as write:
        for (number, pair), rule in rows:
            if rule < len(EVERY):
                write([in_cells((EVERY[rule], str(number), *pair))])


def in_cells(texts: Iterable[str]) -> str:
    """Return the texts as a line of a TSV; their tabs and line breaks become spaces."""
    return "\t".join(_BREAK.sub(" ", text) for text in texts)
