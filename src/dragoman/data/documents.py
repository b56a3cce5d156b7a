r"""Texts for language models: files, split into documents, tokenised once into one stream of ids.

In the stream a document is bos, its pieces, eos. Characters are counted as well as tokens, so that
a loss can be stated per character, which does not depend on the tokenizer:

.. math:: \text{nats per character} = \frac{\text{sum of the losses}}{\text{characters}}

The sources of Python's own standard library are a text that every machine has: ten million
characters of code and of English about code. They differ between versions of Python.
"""

import os
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from zlib import crc32

from dragoman.data.dataset import TextDataset
from dragoman.data.prepare import RaggedWriter, TextEncoder, id_type, kept, special_ids
from dragoman.errors import InputError
from dragoman.files.reading import longest_line, read_text
from dragoman.ranges import Range, check_ranges
from dragoman.wording import counted

FORMAT = 1
"""Incremented when the ids of a tokenised text change their meaning."""

FRAME = (2, 3)
"""The bos and eos ids of our own tokenizers."""

BLOCK = 1 << 20
"""Approximate number of characters of a long document that are tokenised at a time."""

Split = Literal["file", "line", "blank-line"]
"""What a document is: a file, a line, or lines up to the next blank one."""

SEPARATORS: Mapping[Split, int] = {"file": 0, "line": 1, "blank-line": 2}
"""Number of line feeds at the end of a document, which count as its characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOut:
    """The part of the text that is kept for validation."""

    share: Annotated[float, Range(above=0, below=1)] = 0.1
    """Fraction to hold out: of each file's characters, or of the documents."""
    by: Literal["end", "documents"] = "end"
    """"end": the last part of each file; "documents": randomly chosen documents."""

    def __post_init__(self) -> None:
        check_ranges(self)


class DocumentPart(NamedTuple):
    """A document, or a block of a long one."""

    text: str
    held: bool
    """Whether it is held out."""
    opens: bool = True
    """Whether it begins a sequence of ids."""
    inside: bool = False
    """Whether it begins in the middle of a text."""
    closes: bool = True
    """Whether it ends the document."""


def read_documents(
    paths: Sequence[Path], split: Split, hold_out: HoldOut | None = None
) -> Iterator[DocumentPart]:
    """Yield the documents of all files, marking those to hold out.

    With `by = "end"` a file of n characters is cut at character `int(n * (1 - share))`: exactly
    there if the file is one document, otherwise before the first document that starts there or
    later. With `by = "documents"` a document is chosen by a checksum of its text, so equal
    documents are on the same side.
    """
    for path in paths:
        cut = None
        if hold_out is not None and hold_out.by == "end":
            cut = int(sum(map(len, read_text(path))) * (1.0 - hold_out.share))
        if split == "file":
            held = _drawn(read_text(path), hold_out)
            yield from _file_parts(read_text(path), cut, held=held)
        else:
            splitter = _by_line if split == "line" else _by_blank_line
            for start, text in splitter(read_text(path)):
                held = _drawn([text], hold_out) if cut is None else start >= cut
                yield DocumentPart(text, held)


def _drawn(text: Iterable[str], hold_out: HoldOut | None) -> bool:
    """Return whether the document is among those held out by checksum."""
    if hold_out is None or hold_out.by != "documents":
        return False
    checksum = 0
    for line in text:
        checksum = crc32(line.encode(), checksum)
    return checksum < hold_out.share * (1 << 32)


def _file_parts(lines: Iterable[str], cut: int | None, *, held: bool) -> Iterator[DocumentPart]:
    """Yield a file as one document, in blocks; the part after the cut begins its own sequence.

    Blocks end after a single line feed, where tokenising them separately changes nothing.
    """
    sides = groupby(_sided(lines, cut), key=itemgetter(0))
    for behind, group in sides:
        is_held = behind or held
        block, size, opens = list[str](), 0, True
        for _, line in group:
            if size >= BLOCK and line[:1].strip() and block[-1][-2:-1].strip():
                yield DocumentPart(
                    "".join(block), is_held, opens, behind or not opens, closes=False
                )
                block, size, opens = [], 0, False
            block.append(line)
            size += len(line)
        ends = behind or cut is None
        yield DocumentPart("".join(block), is_held, opens, behind or not opens, closes=ends)


def _sided(lines: Iterable[str], cut: int | None) -> Iterator[tuple[bool, str]]:
    """Yield each line and whether it is after the cut, which may split a line."""
    place = 0
    for line in lines:
        before = len(line) if cut is None else min(max(cut - place, 0), len(line))
        place += len(line)
        if before:
            yield False, line[:before]
        if before < len(line):
            yield True, line[before:]


def _by_line(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield start and text of each line that is not blank."""
    start = 0
    for line in lines:
        if line.strip():
            yield start, line.removesuffix("\n")
        start += len(line)


def _by_blank_line(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield start and text of each run of lines that are not blank."""
    start, run, size, most = 0, "", 0, longest_line()
    for line in chain(lines, [""]):
        if line.strip():
            run += line
            size += len(line.encode())
            if size > most:
                raise InputError(
                    f"The document that begins with {run[:40]!r} has more than {most:,} bytes "
                    'before a blank line; set data.split to "file", or raise the limit by the '
                    "environment variable DRAGOMAN_MAX_LINE_BYTES."
                )
            continue
        if run:
            yield start, run.removesuffix("\n")
        start, run, size = start + len(run) + len(line), "", 0


@dataclass(frozen=True, slots=True)
class DocumentTexts:
    """The texts that are not held out, read anew in each iteration, to train a tokenizer."""

    paths: Sequence[Path]
    split: Split
    hold_out: HoldOut | None = None

    def __iter__(self) -> Iterator[str]:
        parts = read_documents(self.paths, self.split, self.hold_out)
        return (part.text for part in parts if not part.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDataset(TextDataset):
    """Documents, each a text of bos, its pieces, eos; a part of one may lack eos."""

    num_chars: int
    """Number of characters that the tokens represent."""
    roles: tuple[int, int] | None = None
    """The ids before a user's and a model's turn, if only the latter is predicted."""

    def report(self) -> Iterator[str]:
        """Describe the dataset in a sentence."""
        tokens, documents = len(self.texts.ids), len(self)
        yield (
            f"{self.name}: {counted(documents, 'document')}, "
            f"{counted(self.num_chars, 'character')}, {counted(tokens, 'token')} "
            f"({self.num_chars / tokens:.2f} characters a token)."
        )


def prepare_documents(
    paths: Sequence[Path],
    split: Split,
    encoder: TextEncoder,
    cache: Path,
    hold_out: HoldOut | None = None,
) -> tuple[DocumentDataset, DocumentDataset | None]:
    """Return the training texts as ids, and those held out, if any; tokenised once and cached.

    Raises InputError for anything wrong with the files, and DragomanError if the cache cannot be
    written.
    """
    held_out = None if hold_out is None else astuple(hold_out)
    parts = ["documents", FORMAT, encoder.content_hash, split, held_out]
    if (frame := (encoder.bos_id, encoder.eos_id)) != FRAME:
        parts.append(frame)  # only the models of one publisher change these
    sides = ("train",) if hold_out is None else ("train", "held")
    types = dict.fromkeys(sides, id_type(encoder))
    write = partial(_write, read_documents(paths, split, hold_out), SEPARATORS[split], encoder)
    content_hash, arrays, num_chars = kept(cache, (parts, paths), types, write)
    name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    datasets = [
        DocumentDataset(
            name=name if side == "train" else f"{name}, held out",
            texts=arrays[side],
            num_chars=num_chars[side],
            special=special_ids(encoder),
            content_hash=f"{content_hash} {side}",
        )
        for side in sides
    ]
    for dataset in datasets:
        if not len(dataset):
            raise InputError(
                f"There is no text for {dataset.name}: too little for one document on each side; "
                "give more, hold out another share, or set another split."
            )
    return datasets[0], datasets[1] if hold_out else None


def _write(
    parts: Iterator[DocumentPart],
    separator: int,
    encoder: TextEncoder,
    writers: Mapping[str, RaggedWriter],
) -> dict[str, int]:
    """Tokenise all documents; return the number of characters on each side."""
    bos, eos = [encoder.bos_id], [encoder.eos_id]
    num_chars = dict.fromkeys(writers, 0)
    while chunk := _chunk(parts):
        rows: dict[str, list[list[int]]] = {side: [] for side in writers}
        fresh = iter(encoder.encode_batch([part.text for part in chunk if not part.inside]))
        rest = iter(encoder.encode_rest([part.text for part in chunk if part.inside]))
        for part in chunk:
            side = "held" if part.held else "train"
            ids = next(rest) if part.inside else next(fresh)
            ids = bos * part.opens + ids + eos * part.closes
            if part.opens:
                rows[side].append(ids)
            else:
                writers[side].extend(ids)  # it is first in its chunk: the previous block filled one
            num_chars[side] += len(part.text) + separator * part.closes
        for side, writer in writers.items():
            writer.append(rows[side])
    return num_chars


def _chunk(parts: Iterator[DocumentPart]) -> list[DocumentPart]:
    """Return the next parts, up to about the size of a block."""
    chunk: list[DocumentPart] = []
    size = 0
    for part in parts:
        chunk.append(part)
        size += len(part.text)
        if size >= BLOCK:
            break
    return chunk


LEFT_OUT = {"dist-packages", "encodings", "idle_test", "site-packages", "test", "tests"}
"""Folders of third-party packages, tables and tests, which not every system installs."""


def standard_library() -> list[Path]:
    """Return the files in a fixed order; raises InputError for a Python without its sources."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in _sources(folder) if path.stat().st_size)
    if not files:
        raise InputError(
            f"this Python has no sources of its standard library in {folder}; give files of your "
            "own (data.train, or data.src and data.tgt)"
        )
    return files


def _sources(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = set(folders) - LEFT_OUT  # do not descend into these
        yield from (Path(parent, name) for name in names if name.endswith(".py"))
