"""Pairs written to new files in the layout of their corpus, which appear when they are whole."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dragoman.corpus.checking import Checked, Pair, Read
from dragoman.corpus.config import EVERY
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.errors import InputError
from dragoman.files.reading import COMPRESSED
from dragoman.files.writing import names_device, replacing

_BREAK = re.compile("\r\n|[\t-\r\x1c-\x1e\x85\u2028\u2029]")
Add = Callable[[Pair, int], None]
"""Writes a pair to one of several sets."""


def files_of(corpus: CorpusConfig, out: Path, parts: Sequence[str]) -> list[list[Path]]:
    """The files of each part of a corpus in a folder: `train.en` for a part, `a.en` for none.

    Raises InputError for a corpus whose two files have one name, and for a file that exists.
    """
    names = []
    for path in corpus.paths:
        while path.suffix in COMPRESSED:
            path = path.with_suffix("")  # noqa: PLW2901 -- what is left of it
        names.append(path.name)
    if len(set(names)) < len(names):
        raise InputError(
            f"Both files are named {names[0]}, and would be one in {out}; rename one, such as to "
            f"{names[0]}.src."
        )
    ends = [Path(name).suffix for name in names]
    if len(set(ends)) < len(names) or not all(ends):
        ends = [f".{name}" for name in names]
    found = [
        [out / (f"{part}{end}" if part else name) for name, end in zip(names, ends, strict=True)]
        for part in parts
    ]
    for path in (path for files in found for path in files):
        _check_output(path, corpus.paths, "--out")
    return found


def check_removed(removed: Path, to_read: Iterable[Path], to_write: Iterable[Path]) -> None:
    """Raise InputError for a file of removed pairs in whose place another is, or will be."""
    _check_output(removed, to_read, "--keep-removed")
    if removed.resolve() in {each.resolve() for each in to_write}:
        raise InputError(f"{removed} is written to --out; give another --keep-removed.")


def _check_output(output: Path, to_read: Iterable[Path], option: str) -> None:
    if output.resolve() in {each.resolve() for each in to_read}:
        raise InputError(f"{output} is a file to read; give another {option}.")
    if output.exists() and not names_device(output):
        raise InputError(f"{output} exists already; give another {option}.")


@contextmanager
def writing(corpus: CorpusConfig, files: Sequence[Sequence[Path]]) -> Iterator[Add]:
    """Open the files of each set; they get their names when all pairs are written."""
    with ExitStack() as stack:
        streams: list[list[BinaryIO]] = []
        for paths in files:
            opened = [stack.enter_context(replacing(path, "corpus")) for path in paths]
            streams.append([stack.enter_context(part.open("wb")) for part in opened])

        def add(pair: Pair, number: int) -> None:
            for stream, line in zip(streams[number], _lines(corpus, pair), strict=True):
                stream.write(f"{line}\n".encode(errors="surrogateescape"))

        yield add


def _lines(corpus: CorpusConfig, pair: Pair) -> tuple[str, ...]:
    """The line of a pair in each file."""
    if corpus.src is not None:
        return pair
    if corpus.tsv is not None:
        return ("\t".join(pair),)
    record: dict[str, object] = {}
    for key, text in zip((corpus.src_key, corpus.tgt_key), pair, strict=True):
        *outer, last = key.split(".")
        inner = record
        for name in outer:
            inner = inner.setdefault(name, {})  # type: ignore[assignment]
        inner[last] = text
    return (json.dumps(record, ensure_ascii=False),)


def read_of(corpus: CorpusConfig) -> Read:
    """What reads the pairs of a corpus; a byte that is not UTF-8 becomes a lone surrogate."""
    return partial(read_pairs, corpus, strict=False)


def write_sets(
    read: Read, chosen: Iterable[int], corpus: CorpusConfig, files: Sequence[Sequence[Path]]
) -> list[int]:
    """Write each pair to the files of its set, if it is in one; return how many are in each."""
    counts = [0] * len(files)
    with writing(corpus, files) as add:
        for pair, number in zip(read(), chosen, strict=True):
            if number >= 0:
                add(pair, number)
                counts[number] += 1
    return counts


def write_clean(
    read: Read,
    found: Checked,
    corpus: CorpusConfig,
    files: Sequence[Path],
    removed: Path | None = None,
) -> None:
    """Write the pairs that break no rule, and the others with the rule that removed them.

    A line of `removed` is rule, line, source, target, with tabs between them; tabs and line breaks
    of a text become spaces.
    """
    first = found.first()
    with ExitStack() as stack:
        add = stack.enter_context(writing(corpus, [files]))
        rest = None
        if removed is not None:
            part = stack.enter_context(replacing(removed, "removed pairs"))
            rest = stack.enter_context(part.open("wb"))
        for number, (pair, rule) in enumerate(zip(read(), first, strict=True), start=1):
            if rule == len(EVERY):
                add(pair, 0)
            elif rest is not None:
                cells = (EVERY[rule], str(number), *(_BREAK.sub(" ", text) for text in pair))
                rest.write(("\t".join(cells) + "\n").encode(errors="surrogateescape"))
