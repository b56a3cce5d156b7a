"""The file of ``--output``: whole in the end; until then its results are in ``FILE.partial``."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from dragoman.cli.pipes import Write, say, to_file_or_stdout
from dragoman.data.output import replacing
from dragoman.errors import InputError
from dragoman.wording import counted

__all__ = ["Output", "OutputOption", "ResumeOption"]

OutputOption = Annotated[Path | None, typer.Option(help="Write to this file, not stdout.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted --output where it stopped.")
]

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go, and how many an interrupted command has left there."""

    file: Path | None
    """None is standard output."""
    results: int = 0
    """How many are kept."""
    size: int = 0
    """Bytes that they take."""

    @classmethod
    def find(
        cls, file: Path | None, *, resume: bool, starts: Callable[[bytes, bytes], bool] | None
    ) -> "Output":
        """Look for what an interrupted command has left.

        ``starts`` tells whether the second of two lines starts another result; None where a result
        is a line. The last result may have been cut short, so it is computed again. Raises
        InputError for results that would be overwritten without ``resume``.
        """
        new = cls(file)
        if file is None and resume:
            raise InputError("--resume continues a file; name it with --output.")
        if file is None or not (new._partial.is_file() and new._partial.stat().st_size):
            return new
        if not resume:
            raise InputError(
                f"{new._partial} has results of an interrupted command; add --resume to continue, "
                "or remove it."
            )
        results = size = place = 0
        before = b""
        with new._partial.open("rb") as stream:
            for line in stream:
                if place and (starts is None or starts(before, line)):
                    results, size = results + 1, place
                before, place = line, place + len(line)
        return cls(file, results, size)

    @property
    def _partial(self) -> Path:
        return Path(f"{os.path.realpath(self.file or '')}.partial")

    def skip(self, items: Iterator[Item]) -> Iterator[Item]:
        """Drop the items whose results are kept. Raises InputError where there are fewer."""
        if sum(1 for _ in islice(items, self.results)) < self.results:
            raise InputError(
                f"{self._partial} has more results than the input has lines; give the input that "
                "it was made from, or remove it."
            )
        return items

    @contextmanager
    def writing(self) -> Iterator[Write]:
        """Write results, of one line or more, one after another.

        The file is there when all are; until then an old one stays as it was. When the command
        fails or is interrupted, the results are kept and it says how to continue.
        """
        if self.file is None:
            with to_file_or_stdout(None) as write:
                yield write
            return
        with replacing(self.file, "output") as part:
            if part == self.file:  # a pipe or a device: nothing can replace it
                with part.open("w", encoding="utf-8", newline="\n") as stream:
                    yield lambda result: print(result, file=stream)
                return
            with self._keeping() as write:
                yield write
            self._partial.replace(part)

    @contextmanager
    def _keeping(self) -> Iterator[Write]:
        """Write to the partial file, which stays when there is something in it."""
        done = self.results

        def write(result: str) -> None:
            nonlocal done
            stream.write(f"{result}\n".encode())
            stream.flush()
            done += 1

        try:
            with self._partial.open("r+b" if self.size else "wb") as stream:
                stream.seek(self.size)
                stream.truncate()
                yield write
        except BaseException:
            if done:
                say(
                    f"{counted(done, 'result')} kept in {self._partial}; add --resume to the same "
                    "command to continue."
                )
            else:
                self._partial.unlink(missing_ok=True)
            raise
