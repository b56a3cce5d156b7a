"""``dragoman tag``: lines to tagged words."""

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.output import Output, OutputOption, ResumeOption, digest_of
from dragoman.cli.pipes import (
    FileOrText,
    check_output,
    file_or_text,
    is_typed,
    lines_from,
    progress_of,
    say,
)
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.tag.tagger import Tagger, Tagging


class Form(StrEnum):
    """How the texts are written."""

    TEXT = "text"
    WORDS = "words"
    COLUMNS = "columns"


def tag(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    file: FileOrText = None,
    *,
    form: Annotated[
        Form,
        typer.Option(
            "--input",
            help="text: a text a line. words: the same, its words parted by blanks. columns: a "
            "word a line (the first column counts) and a blank line after each text.",
        ),
    ] = Form.TEXT,
    max_batch_tokens: Annotated[int, typer.Option(help="Less needs less memory.")] = 8192,
    as_json: Annotated[
        bool, typer.Option("--json", help="An object for each text: words, spans, flags.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    output: OutputOption = None,
    resume: ResumeOption = False,
) -> None:
    """Tag the words of texts: WORD<tab>TAG, and a blank line after each text, in the same order.

    dragoman tag runs/conll2003 < news.txt
    """
    given = file_or_text(file)
    check_output(output, model, given)
    command = {"model": digest_of(model), "--input": form, "--json": as_json}
    out = Output.find(output, command, resume=resume, starts=None if as_json else _follows_blank)
    with lines_from(given) as lines:
        from dragoman.tasks.tag.tagger import Tagger

        tagger = Tagger.load(model, device=device)
        window = 1 if is_typed(given) else 4096
        results = _tagged(
            tagger, lines, out, form, max_batch_tokens=max_batch_tokens, window=window
        )
        start, texts, spans = perf_counter(), 0, 0
        with (
            out.writing() as write,
            progress_of(results, "texts", quiet=window == 1) as shown,
        ):
            for result in shown:
                texts += 1
                spans += len(result.spans)
                write(_shown(result, as_json=as_json))
        taken = perf_counter() - start
        say(f"{counted(texts, 'text')} in {taken:.1f} s, {counted(spans, 'span')}")


def _tagged(
    tagger: "Tagger",
    lines: Iterator[str],
    out: Output,
    form: Form,
    *,
    max_batch_tokens: int,
    window: int,
) -> Iterator["Tagging"]:
    """Tag the texts that remain, a window after another."""
    if form is Form.TEXT:
        return tagger.stream(out.skip(lines), max_batch_tokens=max_batch_tokens, window=window)
    sentences = _columns(lines) if form is Form.COLUMNS else (line.split() for line in lines)
    return tagger.stream_words(
        out.skip(sentences), max_batch_tokens=max_batch_tokens, window=window
    )


def _columns(lines: Iterator[str]) -> Iterator[list[str]]:
    """The words of each text; what is behind a word is not looked at."""
    words: list[str] = []
    for line in lines:
        if columns := line.split(maxsplit=1):
            words.append(columns[0])
        elif words:
            yield words
            words = []
    if words:
        yield words


def _shown(result: "Tagging", *, as_json: bool) -> str:
    """What is printed for one text."""
    if as_json:
        return json.dumps(result.to_dict(), ensure_ascii=False)
    return "".join(f"{word.text}\t{word.tag}\n" for word in result.words)


def _follows_blank(before: bytes, _line: bytes) -> bool:
    """Whether a line belongs to another text than the one before."""
    return before == b"\n"
