"""``dragoman classify``: lines to labels; ``dragoman tag``: lines to tagged words."""

import json
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options as opt
from dragoman.cli.output import each_line
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.classify.classifier import Classification
    from dragoman.tasks.tag.tagger import Tagging


def classify(  # noqa: PLR0913 -- the options of the verb
    model: opt.ModelFolder,
    file: opt.FileOrText = None,
    *,
    max_batch_tokens: Annotated[int, opt.BATCH_TOKENS] = 8192,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print a JSON object per line: the probability of each label, flags."
        ),
    ] = False,
    device: opt.Device = "auto",
    output: opt.OutputFile = None,
    resume: opt.Resume = False,
) -> None:
    """Classify lines of text. Prints LABEL<tab>PROBABILITY for each line, in the same order.

    dragoman classify runs/sst2 < reviews.txt
    """
    with each_line(model, file, {"--json": as_json}, output=output, resume=resume) as given:
        from dragoman.tasks.classify.classifier import Classifier

        classifier = Classifier.load(model, device=device)
        results = classifier.stream(
            given.rest, max_batch_tokens=max_batch_tokens, window=given.window
        )
        show = partial(_label, as_json=as_json)
        given.write(results, show, lambda result: [result.label] if result.label else [])


def _label(result: "Classification", *, as_json: bool) -> str:
    """What is printed for one text; an empty line for an empty one."""
    if as_json:
        return json.dumps(result.to_dict(), ensure_ascii=False)
    return f"{result.label}\t{result.probability:.4f}" if result.label else ""


class Form(StrEnum):
    """How the texts are written."""

    TEXT = "text"
    WORDS = "words"
    COLUMNS = "columns"


def tag(  # noqa: PLR0913 -- the options of the verb
    model: opt.ModelFolder,
    file: opt.FileOrText = None,
    *,
    form: Annotated[
        Form,
        typer.Option(
            "--input",
            help="text: one text per line. words: the same, already split into words by spaces. "
            "columns: one word per line, in the first column, and a blank line after each text.",
        ),
    ] = Form.TEXT,
    max_batch_tokens: Annotated[int, opt.BATCH_TOKENS] = 8192,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per text: words, spans, flags.")
    ] = False,
    device: opt.Device = "auto",
    output: opt.OutputFile = None,
    resume: opt.Resume = False,
) -> None:
    """Tag the words of texts. Prints WORD<tab>TAG for each word, and a blank line after each text.

    dragoman tag runs/conll2003 < news.txt
    """
    options = {"--input": form, "--json": as_json}
    starts = None if as_json else _follows_blank
    with each_line(model, file, options, output=output, resume=resume, starts=starts) as given:
        from dragoman.tasks.tag.tagger import Tagger

        tagger = Tagger.load(model, device=device)
        if form is Form.TEXT:
            results = tagger.stream(
                given.rest, max_batch_tokens=max_batch_tokens, window=given.window
            )
        else:
            sentences = (
                _columns(given.lines)
                if form is Form.COLUMNS
                else (line.split() for line in given.lines)
            )
            results = tagger.stream_words(
                given.out.skip(sentences), max_batch_tokens=max_batch_tokens, window=given.window
            )
        given.write(
            results,
            partial(_tags, as_json=as_json),
            lambda result: ["span"] * len(result.spans),
            what="text",
            summary=lambda counts: f", {counted(counts['span'], 'span')}",
        )


def _columns(lines: Iterator[str]) -> Iterator[list[str]]:
    """The words of each text: the first column; the others are ignored."""
    words: list[str] = []
    for line in lines:
        if columns := line.split(maxsplit=1):
            words.append(columns[0])
        elif words:
            yield words
            words = []
    if words:
        yield words


def _tags(result: "Tagging", *, as_json: bool) -> str:
    """What is printed for one text."""
    if as_json:
        return json.dumps(result.to_dict(), ensure_ascii=False)
    return "".join(f"{word.text}\t{word.tag}\n" for word in result.words)


def _follows_blank(before: bytes, _line: bytes) -> bool:
    """Whether a line belongs to another text than the one before."""
    return before == b"\n"
