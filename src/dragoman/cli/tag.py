"""``dragoman tag``: lines to tagged words."""

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.pipes import (
    check_output,
    is_typed,
    lines_from,
    progress_of,
    say,
    to_file_or_stdout,
)
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.tagging import Tagger, Tagging


class Form(StrEnum):
    """How the texts are written."""

    TEXT = "text"
    WORDS = "words"
    COLUMNS = "columns"


def tag(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    file: Annotated[
        Path | None, typer.Argument(help="Texts to tag (.gz, .xz, .zst too); else stdin.")
    ] = None,
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
    output: Annotated[Path | None, typer.Option(help="Write to this file, not stdout.")] = None,
) -> None:
    """Tag the words of texts: WORD<tab>TAG, and a blank line after each text, in the same order.

    dragoman tag runs/conll2003 < news.txt
    """
    check_output(output, model, file)
    with lines_from(file) as lines:
        from dragoman.tasks.tagging import Tagger

        tagger = Tagger.load(model, device=device)
        window = 1 if is_typed(file) else 4096
        results = _tagged(tagger, lines, form, max_batch_tokens=max_batch_tokens, window=window)
        start, texts, spans = perf_counter(), 0, 0
        with (
            to_file_or_stdout(output) as write,
            progress_of(results, "texts", quiet=window == 1) as shown,
        ):
            for result in shown:
                texts += 1
                spans += len(result.spans)
                for line in _lines(result, as_json=as_json):
                    write(line)
        taken = perf_counter() - start
        say(f"{counted(texts, 'text')} in {taken:.1f} s, {counted(spans, 'span')}")


def _tagged(
    tagger: "Tagger", lines: Iterator[str], form: Form, *, max_batch_tokens: int, window: int
) -> Iterator["Tagging"]:
    """Tag a window of texts after another."""
    if form is Form.TEXT:
        return tagger.stream(lines, max_batch_tokens=max_batch_tokens, window=window)
    sentences = _columns(lines) if form is Form.COLUMNS else (line.split() for line in lines)
    return tagger.stream_words(sentences, max_batch_tokens=max_batch_tokens, window=window)


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


def _lines(result: "Tagging", *, as_json: bool) -> list[str]:
    """What is printed for one text."""
    if as_json:
        return [json.dumps(result.to_dict(), ensure_ascii=False)]
    return [*(f"{word.text}\t{word.tag}" for word in result.words), ""]
