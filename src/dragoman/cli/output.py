"""What several verbs share: their options, and how each line of a file is answered.

The file of `--output` is complete or absent: until the end its results are in `FILE.partial`.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TypeVar

import typer

from dragoman.cli.flags import LISTED
from dragoman.cli.pipes import (
    InputLines,
    Write,
    check_free,
    check_output,
    file_or_text,
    is_typed,
    lines_from,
    open_stdout,
    say,
    to_stdout,
)
from dragoman.cli.progress import progress_of
from dragoman.data.corpus import Finding
from dragoman.errors import InputError, escaped
from dragoman.files.reading import read_file
from dragoman.files.writing import locked, replacing
from dragoman.plain import Plain, without_nan
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.nn import Arithmetic

T = TypeVar("T")
Item = str | Sequence[Sequence[str]]
"""A sentence, or the rows of a table, its head first."""
WINDOW = 4096
"""Lines taken at a time: bounds the memory, whatever the size of the file."""


def option(text: str, *names: str) -> Any:  # noqa: ANN401 -- as typer's own
    """An option with this help; it is named after its parameter unless names are given."""
    return typer.Option(*names, help=text)


ModelFolder = Annotated[Path, typer.Argument(help="The model folder.")]
FileOrText = Annotated[
    str | None,
    typer.Argument(
        help="A file of lines (also .gz, .xz, .zst) or a text; standard input if omitted."
    ),
]
BATCH_TOKENS = option("Maximum number of tokens per batch; fewer need less memory.")
BeamSize = Annotated[int | None, option("Beam size; 1 is greedy search.")]
SrcLang = Annotated[
    str | None, option("Language of the source, by its code in a multilingual model.")
]
TgtLang = Annotated[
    str | None, option("Language to translate into, by its code in a multilingual model.")
]
LengthPenalty = Annotated[
    float | None, option("Exponent of the length penalty; larger values favour longer texts.")
]
Device = Annotated[str, option("Device: cpu, cuda or auto.")]
Compute = Annotated[
    Literal["auto", "float32", "fp32", "bfloat16", "bf16", "int8"],
    option(
        "Arithmetic: int8 is the fastest on most CPUs and rounds the most, bfloat16 is faster than "
        "float32 where there are units for it; auto takes the fastest that is safe here."
    ),
]
OutputFile = Annotated[Path | None, option("Write to this file instead of standard output.")]
Overwrite = Annotated[bool, option("Replace the file of --output if it exists.", "--overwrite")]
Resume = Annotated[bool, option("Continue an interrupted --output where it stopped.", "--resume")]


def precision_of(compute: str, device: str) -> "Arithmetic":
    """The arithmetic that `--compute` asks for; what `auto` chooses is reported."""
    from dragoman.tasks.folders import arithmetic_of

    chosen = arithmetic_of(compute, device)
    if compute == "auto":
        say(f"computing in {chosen}")
    return chosen


def to_json(result: Plain | Mapping[str, Any]) -> str:
    """A result as one line of JSON; control characters and lone surrogates are escaped."""
    plain = result.to_dict() if isinstance(result, Plain) else without_nan(dict(result))
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    return re.sub("[\x7f-\x9f\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def print_items(items: Iterable[Item]) -> None:
    """Print on standard output: tables have lines on a terminal, tabs between columns elsewhere."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    with to_stdout(styled=True) as write:
        for item in items:
            if isinstance(item, str):
                write(item)
            elif not console.is_terminal:
                write("\n".join("\t".join(row) for row in item))
            else:
                table = Table(*item[0])
                for column in table.columns:
                    column.overflow = "fold"  # no digit is left out
                for column in table.columns[1:]:
                    column.justify = "right"
                for row in item[1:]:
                    table.add_row(*map(escaped, row))
                with console.capture() as captured:
                    console.print(table)
                write(captured.get().rstrip("\n"))


def digest_of(model: Path) -> str:
    """Tell one model folder from another: its `config.json` has the hash of its weights."""
    try:
        config = read_file(model / "config.json")
    except InputError:  # loading says what is wrong
        config = b""
    known = b'"weights_sha256"' in config
    return sha256(config).hexdigest() if known else os.path.realpath(model)


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go, and how many an interrupted command has left there."""

    file: Path | None
    """None is standard output."""
    command: Mapping[str, object]
    """What the results depend on beside the input: the model and options."""
    results: int = 0
    """How many are kept."""
    size: int = 0
    """Bytes that they take."""
    found: int = 0
    """Bytes that the command has left."""

    @classmethod
    def find(
        cls,
        file: Path | None,
        command: Mapping[str, object],
        *,
        resume: bool,
        starts: Callable[[bytes, bytes], bool] | None,
    ) -> "Output":
        """Look for what an interrupted command has left.

        `starts` tells whether the second of two lines starts another result; None where a result
        is a line. The last result may have been cut short, so it is computed again. Raises
        InputError for results that would be overwritten without `resume`, that another model or
        other options gave, or that another process is writing.
        """
        new = cls(file, command)
        if file is None and resume:
            raise InputError("--resume continues a file; name it with --output.")
        if file is None or not new._partial.is_file():
            return new
        try:
            with locked(new._partial, wait=False):
                return new._look(resume=resume, starts=starts)
        except BlockingIOError as error:
            raise InputError(
                f"Another dragoman is writing {file}; wait for it, or give another --output."
            ) from error

    def _look(self, *, resume: bool, starts: Callable[[bytes, bytes], bool] | None) -> "Output":
        """Count the results in the partial file."""
        if not (found := self._partial.stat().st_size):
            return self
        if not resume:
            raise InputError(
                f"{self._partial} has results of an interrupted command; add --resume to continue, "
                "or remove it."
            )
        self._check()
        results = size = place = 0
        before = b""
        with self._partial.open("rb") as stream:
            for line in stream:
                if place and (starts is None or starts(before, line)):
                    results, size = results + 1, place
                before, place = line, place + len(line)
        return replace(self, results=results, size=size, found=found)

    def _check(self) -> None:
        """Raise InputError unless the same model and options gave what is kept."""
        try:
            before = json.loads(self._record.read_bytes())
        except (OSError, ValueError):  # an older dragoman wrote none
            return
        for name, value in self.command.items():
            if before.get(name) != value:
                raise InputError(
                    f"{self._partial} was written with another {name}; give the same model and "
                    "options to --resume, or remove the file to start again."
                )

    @property
    def _partial(self) -> Path:
        return Path(f"{os.path.realpath(self.file or '')}.partial")

    @property
    def _record(self) -> Path:
        """The command that writes the partial file."""
        return Path(f"{self._partial}.json")

    def skip(self, items: Iterator[T]) -> Iterator[T]:
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
            with to_stdout() as write:
                yield write
            return
        with replacing(self.file, "output") as part:
            if part == self.file:  # a pipe or a device: nothing can replace it
                with part.open("wb") as stream:
                    yield lambda result: _write(stream, result)
                return
            if (self._partial.stat().st_size if self._partial.is_file() else 0) != self.found:
                raise InputError(
                    f"Another dragoman has written to {self._partial} in the meantime; run the "
                    "command again."
                )
            with self._keeping() as write:
                yield write
            self._partial.replace(part)
            self._record.unlink(missing_ok=True)

    @contextmanager
    def _keeping(self) -> Iterator[Write]:
        """Write to the partial file, which stays when there is something in it."""
        done = self.results

        def write(result: str) -> None:
            nonlocal done
            _write(stream, result)
            done += 1

        try:
            if not self.size:
                self._record.write_text(json.dumps(self.command), encoding="utf-8")
            with (
                self._partial.open("r+b" if self.size else "wb") as stream,
                locked(self._partial, wait=True),  # only somebody who looks can hold it
            ):
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
                self._record.unlink(missing_ok=True)
            raise


def _write(stream: BinaryIO, result: str) -> None:
    stream.write(f"{result}\n".encode(errors="replace"))
    stream.flush()


@dataclass(frozen=True, slots=True)
class Lines:
    """The input of a verb, and where its results go."""

    lines: InputLines[str]
    """All lines."""
    typed: bool
    """Whether somebody types them, and waits for each answer."""
    out: Output = Output(None, {})
    """Where the results go."""
    share: Callable[[], float | None] = lambda: None
    """Fraction of the input that has been read; None if unknown."""

    @property
    def rest(self) -> InputLines[str]:
        """The lines whose results are not in the output yet."""
        return self.lines.through(self.out.skip)

    @property
    def window(self) -> int:
        """Number of lines to take at a time."""
        return 1 if self.typed else WINDOW

    def write(
        self,
        results: Iterable[T],
        show: Callable[[T], str],
        count: Callable[[T], Iterable[str]],
        *,
        what: str = "line",
    ) -> None:
        """Write each result as it comes, then report how many there were and how long it took.

        `show` makes the text of a result. `count` names what to count of it, such as its flags; of
        those in `LISTED` the first numbers are reported.
        When the command fails or is interrupted, it says how many are on standard output.
        """
        start, number, out = perf_counter(), 0, self.out
        findings = defaultdict[str, Finding](Finding)
        seen = self.typed or (out.file is None and open_stdout().isatty())
        progress = partial(progress_of, before=out.results, share=self.share, quiet=seen)
        try:
            with out.writing() as write, progress(results, f"{what}s") as shown:
                for result in shown:
                    write(show(result))
                    number += 1
                    for name in count(result):
                        findings[name].add(out.results + number)
        except BaseException as error:
            reader_left = isinstance(error, typer.Exit)
            if number and out.file is None and not (self.typed or reader_left):
                say(_printed(number, what))
            raise
        taken = perf_counter() - start
        counts = (
            f", {found.told(what) if name in LISTED else format(found.count, ',')} {name}"
            for name, found in sorted(findings.items())
        )
        say(f"{counted(number, what)} in {taken:.1f} s{''.join(counts)}")


def _printed(number: int, what: str) -> str:
    """What was printed of a command that has ended too early, and where the rest begins."""
    following = number + 1
    rest = f"; the rest begins with line {following} of the input (tail -n +{following})"
    return f"{counted(number, what)} printed{rest if what == 'line' else ''}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The options of a verb that say where its results go."""

    output: Path | None
    resume: bool
    overwrite: bool
    spares: Path | None = None
    """Another file that is read, which the output must not be."""


@contextmanager
def each_line(
    model: Path,
    file: str | None,
    options: Mapping[str, object],
    *,
    to: Destination,
    starts: Callable[[bytes, bytes], bool] | None = None,
) -> Iterator[Lines]:
    """Open the input, and the output or what an interrupted command has left of it.

    `options` are those that results depend on, by their names; `starts` as `Output.find` has
    it. Raises InputError for an input that cannot be read, an output that cannot be wanted, and one
    that exists unless it may be overwritten.
    """
    given = file_or_text(file)
    check_output(to.output, model, given, *([] if to.spares is None else [to.spares]))
    command = {"model": digest_of(model), **options}
    out = Output.find(to.output, command, resume=to.resume, starts=starts)
    if not (to.overwrite or out.found):
        check_free(to.output)
    with lines_from(given, strict=False) as lines:
        yield Lines(lines, is_typed(given), out, lines.share)
