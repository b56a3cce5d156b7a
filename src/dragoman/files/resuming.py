"""A command's output file: checked before the command begins, continued after an interruption."""

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from dragoman.errors import InputError
from dragoman.files.reading import COMPRESSED
from dragoman.files.writing import (
    COMPUTING,
    failure_told,
    hold,
    is_written_to,
    locked,
    names_device,
    opened_device,
    opened_part,
    own,
    replacing,
    sync,
)

T = TypeVar("T")
Write = Callable[[str], None]
"""Writes one result: a line or a piece of text."""
GLANCE = 0.5
"""Seconds to wait for a command that only looks at what is kept."""
Starts = Callable[[bytes, bytes], bool]
"""Whether the second of two lines starts another result."""


def check_writable(output: Path, to_read: Iterable[Path | str | None], option: str) -> None:
    """Validate an output path before anything is read or written; `option` names it.

    Raises InputError if it is one of the files to read, which would be lost (None means standard
    input, a string is a text), a folder, in a folder that does not exist, read-only, or named like
    a compressed file, because the output is not compressed.
    """
    try:
        wrong = _wrong_output(output, to_read)
    except OSError as error:
        wrong = f"Cannot write {output}: {error.strerror}"
    if wrong:
        raise InputError(f"{wrong}; give another {option}.")
    if output.suffix in COMPRESSED:
        raise InputError(
            f"{output} would contain plain text despite its name; give {option} without "
            f"{output.suffix}."
        )


def _wrong_output(output: Path, to_read: Iterable[Path | str | None]) -> str | None:
    """Return why the file cannot be an output, or None if it can."""
    if output.is_dir():
        return f"Cannot write {output}: it is a folder"
    if not output.parent.is_dir():
        return f"Cannot write {output}: there is no folder {output.parent}"
    if output.is_file() and any(_is_of(file, output) for file in to_read):
        return f"{output} is the file to read"
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        return f"Cannot write {output}: it is read-only"
    return None


def check_new(output: Path, option: str) -> None:
    """Raise InputError for a file with content, which would be lost."""
    if output.is_file() and not names_device(output) and output.stat().st_size:
        raise InputError(
            f"{output} exists already; add --overwrite to replace it, or give another {option}."
        )


def _is_of(file: Path | str | None, output: Path) -> bool:
    """Return whether an input, which may be standard input, is the output."""
    if file is not None:
        return isinstance(file, Path) and file.exists() and output.samefile(file)
    with suppress(OSError):  # a replacement of stdin may have no descriptor
        return sys.stdin is not None and os.path.samestat(
            os.fstat(sys.stdin.fileno()), output.stat()
        )
    return False


class ResumableFile:
    """A file of results, each of one or more lines, that appears when all are complete.

    Until then the results are in `FILE.partial`, each as soon as it is known, and an old file stays
    unchanged. `FILE.partial.json` contains the `command`, on which the results depend, and a line
    for the text of each result, which identifies it.
    """

    def __init__(self, file: Path, command: Mapping[str, object]) -> None:
        self.results = 0
        """Number of results in the partial file."""
        self.partial = Path(f"{os.path.realpath(file)}.partial")
        self._file, self._command = file, command
        self._record = Path(f"{self.partial}.json")
        self._size = 0  # bytes of all results
        self._found = 0  # bytes left by an interrupted command
        self._is_new = False  # whether the file has no content that may be replaced
        self._digests = list[bytes]()  # of the texts whose results are kept
        self._read = deque[bytes]()  # of those whose results are not written yet

    def find(self, *, overwrite: bool, resume: bool, starts: Starts | None = None) -> None:
        """Find the results of an interrupted command.

        A result is a line, unless `starts` tells where results start. The last one may be
        incomplete, so it is computed again. Raises InputError for results that would be overwritten
        without `resume`, that are from another command or that another process is writing, for a
        file with content that would be replaced without `overwrite`, and as `own` does.
        """
        for beside in filter(os.path.lexists, (self.partial, self._record)):
            open(beside, "rb", opener=own).close()
        if self.partial.is_file():
            try:
                with locked(self.partial, wait=False):
                    self._look(resume=resume, starts=starts)
            except BlockingIOError as error:
                raise self._in_use() from error
        self._is_new = not (overwrite or self._found)
        if self._is_new:
            check_new(self._file, "--output")

    def _in_use(self) -> InputError:
        return InputError(
            f"Another dragoman is writing {self._file}; wait for it, or give another --output."
        )

    def _look(self, *, resume: bool, starts: Starts | None) -> None:
        """Count the results in the partial file."""
        self._found = self.partial.stat().st_size
        if self._found and not resume:
            raise InputError(
                f"{self.partial} has results of an interrupted command; add --resume to continue, "
                "or remove it."
            )
        if self._found:
            self._check()
        place, before = 0, b""
        with open(self.partial, "rb", opener=own) as stream:
            for line in stream:
                if place and (starts is None or starts(before, line)):
                    self.results, self._size = self.results + 1, place
                before, place = line, place + len(line)

    def _check(self) -> None:
        """Raise InputError unless the kept results are from the same command."""
        try:
            first, *self._digests = self._record.read_bytes().splitlines()
            before = json.loads(first)
        except (OSError, ValueError):  # lost, as in a power failure
            return
        for name, value in self._command.items():
            if before.get(name) != value:
                raise InputError(
                    f"{self.partial} was written with another {name}; give the same model, input "
                    "and options to --resume, or remove the file to start again."
                )

    def skip(self, items: Iterator[T]) -> Iterator[T]:
        """Drop the items whose results are kept. Raises InputError if there are fewer items."""
        if sum(1 for _ in islice(items, self.results)) < self.results:
            raise self._other(f"{self.partial} has more results than the input has lines")
        return items

    def continued(self, texts: Iterator[T]) -> Iterator[T]:
        """`skip` the texts that have a result, in order, and check them.

        Also raises InputError if a result was made from another text.
        """
        if names_device(self._file) or not self._all_known:
            return self.skip(texts)

        def checked() -> Iterator[T]:
            for number, text in enumerate(texts):
                digest = blake2b(repr(text).encode(), digest_size=8).hexdigest().encode()
                if number >= self.results:
                    self._read.append(digest)
                elif self._digests[number] != digest:
                    raise self._other(f"Result {number + 1} of {self.partial} is of another text")
                yield text

        return self.skip(checked())

    @property
    def _all_known(self) -> bool:
        """Whether the record identifies the text of each result."""
        return len(self._digests) >= self.results

    def _other(self, what: str) -> InputError:
        return InputError(
            f"{what}; give the input that the results were made from, or remove that file to start "
            "again."
        )

    @contextmanager
    def writing(self) -> Iterator[Write]:
        """Write results after the kept ones; they are kept if the command is interrupted."""
        with replacing(self._file, "output") as part:
            if part == self._file:  # a pipe, or another file that cannot be replaced
                with self._opened(part) as stream:
                    yield lambda result: _write(stream, result)
                return
            with self.keeping() as write:
                yield write
            sync(self.partial)  # a full disk may be reported only now
            self.partial.replace(part)
            self._record.unlink(missing_ok=True)

    def kept(self) -> list[str]:
        """Return the results in the partial file."""
        if not self._size:
            return []
        with open(self.partial, "rb", opener=own) as stream:
            return stream.read(self._size).decode(errors="replace").split("\n")[:-1]

    def finish(self, content: Iterable[bytes]) -> None:
        """Write the file made from the results, and remove these."""
        with replacing(self._file, "output") as part, self._opened(part) as stream:
            stream.writelines(content)
        self.partial.unlink(missing_ok=True)
        self._record.unlink(missing_ok=True)

    def _opened(self, part: Path) -> AbstractContextManager[BinaryIO]:
        is_device = names_device(self._file)
        return opened_device(part) if is_device else opened_part(part, self._file)

    @contextmanager
    def keeping(self) -> Iterator[Write]:
        """Write results to the partial file, which is kept, even when interrupted, if it has any.

        A pipe or a device has no partial file, nor does a file in a folder without write access.
        """
        if is_written_to(self._file):
            yield lambda _: None
            return
        with failure_told("results", self.partial), ExitStack() as held:
            try:
                hold(self.partial, held, GLANCE, own)
            except BlockingIOError as error:
                raise self._in_use() from error
            write = held.enter_context(self._kept())
            try:
                yield write
            except OSError as error:
                error.add_note(COMPUTING)
                raise

    @contextmanager
    def _kept(self) -> Iterator[Write]:
        """Write results to the partial file, which is locked."""
        if (size := self.partial.stat().st_size) != self._found:
            if not size:  # the other has finished, and this one created it again
                self.partial.unlink()
            raise InputError(
                f"Another dragoman has written to {self.partial} in the meantime; run the "
                "command again."
            )

        def write(result: str) -> None:
            with failure_told("results", self.partial):
                if self._read:
                    record.write(self._read.popleft() + b"\n")
                    record.flush()
                _write(stream, result)
            self.results += 1

        try:
            if self._is_new:  # another command may have finished meanwhile
                check_new(self._file, "--output")
            with (
                open(self.partial, "r+b", opener=own) as stream,
                open(self._record, "a+b", opener=own) as record,
            ):
                stream.seek(self._size)
                stream.truncate()
                if not self.results:
                    record.truncate(0)
                    record.write(json.dumps(self._command).encode() + b"\n")
                    record.flush()
                elif self._all_known:
                    record.seek(0)
                    record.truncate(sum(len(record.readline()) for _ in range(1 + self.results)))
                yield write
        except BaseException:
            if not self.results:
                self.partial.unlink(missing_ok=True)
                self._record.unlink(missing_ok=True)
            raise


def _write(stream: BinaryIO, result: str) -> None:
    stream.write(f"{result}\n".encode(errors="replace"))
    stream.flush()
