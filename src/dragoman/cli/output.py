"""What several verbs share: their options, and how each line of a file is answered."""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dragoman.cli.options import DOCUMENTS, with_options
from dragoman.cli.pipes import (
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
from dragoman.files.arriving import InputLines
from dragoman.files.documents import lines_of_text
from dragoman.files.reading import read_file
from dragoman.files.resuming import ResumableFile, Starts
from dragoman.languages import LanguagePair
from dragoman.plain import Plain, without_nan
from dragoman.tasks.evaluation import Item as Item  # noqa: PLC0414 -- for the verbs
from dragoman.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.tasks.embedder import Embedding
    from dragoman.tasks.results import Translation

T = TypeVar("T")
WINDOW = 4096
"""Lines processed at a time: bounds the memory, whatever the size of the file."""
MANY = 6
"""Most columns of a table that is squeezed into a terminal too narrow for its words."""

FLAGS = {
    "broken_characters": "with broken characters",
    "empty": "empty",
    "empty_tag": "with a tag whose words are missing",
    "kept": "with protected text changed",
    "loop": "with endless repetition",
    "max_length": "cut at the length limit",
    "memory": "taken over from the memory",
    "no_output": "with a sentence without output",
    "numbers": "with other numbers",
    "placeholders": "with other placeholders",
    "retried": "searched again",
    "several_sentences": "with fewer sentences than given",
    "short": "much shorter than the source",
    "split": "translated in parts",
    "symbols": "with other emoji or symbols",
    "tags": "with other tags",
    "terms_apart": "with a term that may stand in a sentence of its own",
    "terms_missed": "with a term that was missed",
    "unknown_characters": "with unknown characters",
    "untranslated_forms": "with plural or other forms that were copied",
    "unreadable": "unreadable",
    "urls": "with other URLs",
}
"""What the summary calls the flags."""

LISTED = {FLAGS[flag] for flag in FLAGS if flag not in ("empty", "memory", "retried", "split")}
"""The flags whose lines it lists, since somebody should look at them."""


def option(text: str, *names: str, panel: str | None = None, metavar: str | None = None) -> Any:  # noqa: ANN401
    """Return an option with this help; it is named after its parameter unless names are given."""
    return typer.Option(*names, help=text, rich_help_panel=panel, metavar=metavar)


ModelFolder = Annotated[Path, typer.Argument(help="The model folder.")]
FileOrText = Annotated[
    str | None,
    typer.Argument(
        help="A file of lines (also .gz, .bz2, .xz, .zst) or a text; standard input if omitted."
    ),
]
FilesOrText = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="file",
        help="A file of lines (also .gz, .bz2, .xz, .zst), a text, or documents; standard input if "
        "omitted.",
    ),
]
PlainLines = Annotated[
    bool,
    option(
        "Read a document (HTML, subtitles, PO, ...) as plain lines of text.",
        "--plain",
        panel=DOCUMENTS,
    ),
]
with_languages = with_options("pair", LanguagePair())
"""Decorator for a verb that takes --src-lang and --tgt-lang as `pair`."""


def to_json(result: Plain | Mapping[str, Any]) -> str:
    """Return a result as one line of JSON; control characters and lone surrogates are escaped."""
    plain = result.to_dict() if isinstance(result, Plain) else dict(result)
    text = json.dumps(without_nan(plain), ensure_ascii=False, allow_nan=False)
    return re.sub("[\x7f-\x9f\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def print_items(items: Iterable[Item]) -> None:
    """Print on standard output: tables have borders on a terminal, and tabs elsewhere."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    with to_stdout(styled=True) as write:
        for item in items:
            if isinstance(item, str):
                write(item)
            elif not console.is_terminal:
                write("\n".join("\t".join(row) for row in item))
            else:
                write(_drawn([item[0], *(tuple(map(escaped, row)) for row in item[1:])], console))


def _drawn(rows: Sequence[Sequence[str]], console: "Console") -> str:
    """Draw a table; if more than `MANY` columns do not fit, a paragraph for each row."""
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(*rows[0])
    for column in table.columns:
        column.overflow = "fold"  # no digit is cut off
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows[1:]:
        table.add_row(*row)
    unbound = console.options.update(max_width=10**6)
    words = Measurement.get(console, unbound, table).minimum
    if len(table.columns) > MANY and words > console.width:
        return "\n".join(_paragraph(rows[0], row, console.width) for row in rows[1:])
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip("\n")


def _paragraph(head: Sequence[str], row: Sequence[str], width: int) -> str:
    """Return a row as lines: its first cell, then each other cell after the name of its column."""
    cells = (f"{name} {cell}".replace(" ", "\xa0") for name, cell in zip(head, row, strict=True))
    next(cells)
    indent = "  "
    rest = fill(
        "; ".join(cells),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{row[0]}\n{rest}".replace("\xa0", " ")


def print_found(found: Plain | Mapping[str, Any], shown: Iterable[Item], *, as_json: bool) -> None:
    """Print a result as one JSON object, or as it is shown to people."""
    print_items([to_json(found)] if as_json else shown)


def digest_of(model: Path) -> str:
    """Return what identifies a model folder: its `config.json` contains the hash of its weights."""
    try:
        config = read_file(model / "config.json")
    except InputError:  # loading reports what is wrong
        config = b""
    known = b'"weights_sha256"' in config
    return sha256(config).hexdigest() if known else os.path.realpath(model)


def content_hash(file: Path | None) -> str | None:
    """Return the hash of a file's content; of a pipe, which can be read only once, the name."""
    if file is None:
        return None
    try:
        if file.is_file():
            with file.open("rb") as stream:
                return file_digest(stream, "sha256").hexdigest()
    except OSError:  # reading it reports what is wrong
        pass
    return str(file)


def names_of_flags(result: "Translation | Embedding") -> Iterator[str]:
    """Yield what the summary counts for a result."""
    return (FLAGS[flag] for flag in result.flags)


@dataclass(frozen=True, slots=True)
class Lines:
    """The input of a verb, and where its results go."""

    lines: InputLines[str]
    """All lines."""
    typed: bool
    """Whether somebody types them and waits for each answer."""
    out: ResumableFile | None = None
    """Where the results go: standard output if None."""

    @property
    def before(self) -> int:
        """Number of results that an interrupted command has left."""
        return 0 if self.out is None else self.out.results

    @property
    def rest(self) -> InputLines[str]:
        """The lines whose results are not in the output yet."""
        return self.rest_of(self.lines)

    def rest_of(self, texts: InputLines[T]) -> InputLines[T]:
        """Return the texts, made from the lines, whose results are not in the output yet."""
        return texts if self.out is None else texts.through(self.out.continued)

    def skip(self, items: Iterator[T]) -> Iterator[T]:
        """Drop the items whose results are already in the output."""
        return items if self.out is None else self.out.skip(items)

    @property
    def window(self) -> int:
        """Number of lines to process at a time."""
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

        `show` returns the text of a result. `count` names what to count in it, such as its flags;
        for those in `LISTED`, the first line numbers are reported. If the command fails or is
        interrupted, it says how many results there are, and where.
        """
        start, before, number = perf_counter(), self.before, 0
        findings = defaultdict[str, Finding](Finding)
        seen = self.typed or (self.out is None and open_stdout().isatty())
        progress = partial(progress_of, before=before, share=self.lines.share, quiet=seen)
        with to_stdout() if self.out is None else self.out.writing() as write:
            try:
                with progress(results, what) as shown:
                    for result in shown:
                        write(show(result))
                        number += 1
                        for name in count(result):
                            findings[name].add(before + number)
            except BaseException as error:
                if not isinstance(error, typer.Exit):  # the reader is still there
                    self._say_written(number, what)
                    if isinstance(error, KeyboardInterrupt) and not (before + number or self.typed):
                        say(f"Interrupted before a {what} was finished.")
                raise
        taken = perf_counter() - start
        counts = (
            f", {found.told(what) if name in LISTED else format(found.count, ',')} {name}"
            for name, found in sorted(findings.items())
        )
        say(f"{counted(number, what)} in {taken:.1f} s{''.join(counts)}")

    def _say_written(self, number: int, what: str) -> None:
        """Say what a command that ended too early has written, and where the rest begins."""
        if self.out is not None:
            say_kept(self.out)
        elif number and not self.typed:
            following = number + 1
            rest = f"; the rest begins with line {following} of the input (tail -n +{following})"
            say(f"{counted(number, what)} printed{rest if what == 'line' else ''}.")


def say_kept(out: ResumableFile, more: str = "to the same command to continue") -> None:
    """Say where the results of an interrupted command are, if there are any."""
    if out.results:
        say(f"{counted(out.results, 'result')} kept in {out.partial}; add --resume {more}.")


def keep_all(out: ResumableFile, results: Iterable[str], total: int) -> None:
    """Keep the results of `total` texts as they come, and show the progress.

    If the command fails or is interrupted, it says how many there are, and where.
    """
    progress = progress_of(results, "text", total=total, before=out.results)
    with telling_kept(out), out.keeping() as keep, progress as shown:
        for result in shown:
            keep(result)


@contextmanager
def telling_kept(out: ResumableFile) -> Iterator[None]:
    """On failure or interruption, say how many results there are, and where."""
    try:
        yield
    except BaseException:
        say_kept(out)
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where the results of a verb go."""

    to: str | None = field(default=None, metadata={"flag": "--output", "metavar": "PATH"})
    """Write to this file instead of standard output."""
    overwrite: bool = False
    """Replace the file of --output if it exists."""
    resume: bool = False
    """Continue an interrupted --output where it stopped."""

    @property
    def output(self) -> Path | None:
        """The file; None for standard output, which `-` is too."""
        return None if self.to in {None, "-"} else Path(self.to or "")

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, or named like one."""
        is_named = (self.to or "").endswith(("/", os.sep))
        return is_named or (self.output is not None and self.output.is_dir())


with_destination = with_options("to", Destination())
"""Decorator for a verb that takes these options as `to`."""


@contextmanager
def each_line(
    model: Path,
    file: str | None,
    options: Mapping[str, object],
    *,
    to: Destination,
    starts: Starts | None = None,
    plain: bool = True,
) -> Iterator[Lines]:
    """Open the input, and the output or what an interrupted command has left of it.

    `options` are those that results depend on, by name; `starts` is that of `ResumableFile.find`.
    Raises InputError for an input that cannot be read, a document unless it is read as `plain`
    lines, an output that cannot be intended, and one that exists unless it may be overwritten.
    """
    given, out = file_or_text(file), None
    check_output(to.output, model, given)
    if to.output is not None:
        out = ResumableFile(to.output, {"model": digest_of(model), **options})
        out.find(overwrite=to.overwrite, resume=to.resume, starts=starts)
    elif to.resume:
        raise InputError("--resume continues a file; name it with --output.")
    with lines_from(given, strict=False) as lines:
        if not plain:
            lines = lines.through(partial(lines_of_text, file))  # noqa: PLW2901 -- checked
        yield Lines(lines, is_typed(given), out)
