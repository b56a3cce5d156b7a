"""`dragoman tag`: texts to the tags of their words."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from dragoman.cli.flags import FLAGS
from dragoman.cli.loading import Loading, check_input, with_device
from dragoman.cli.options import with_options
from dragoman.cli.output import (
    Destination,
    FileOrText,
    ModelFolder,
    each_line,
    option,
    to_json,
    with_destination,
)
from dragoman.decoding import READING, Decoding

if TYPE_CHECKING:
    from dragoman.tasks.tag.tagger import Tagging


@with_options("decoding", READING)
@with_device
@with_destination
def tag(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    file: FileOrText = None,
    *,
    form: Annotated[
        Literal["text", "words", "columns"],
        option(
            "text: one text per line. words: the same, already split into words by spaces. "
            "columns: one word per line, in the first column, and a blank line after each text.",
            "--input",
            metavar="FORM",
        ),
    ] = "text",
    decoding: Decoding,
    as_json: Annotated[
        bool, option("Print a JSON object per text: words, spans, flags.", "--json")
    ] = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Tag the words of texts. Prints WORD<tab>TAG for each word, and a blank line after each text.

    dragoman tag runs/conll2003 < news.txt
    """
    options = {"--input": form, "--json": as_json}
    starts = None if as_json else _follows_blank
    check_input(file, model, "tag")
    with each_line(model, file, options, to=to, starts=starts) as given:
        from dragoman.data.tagged import first_columns
        from dragoman.tasks.tag.tagger import Tagger

        loading.check(model)
        tagger = Tagger.load(model, device=loading.device)
        sizes = {**decoding.given(), "window": given.window}
        if form == "text":
            results = tagger.stream(given.rest, **sizes)
        else:
            words = first_columns if form == "columns" else partial(map, str.split)
            results = tagger.stream_words(given.rest_of(given.lines.through(words)), **sizes)
        given.write(results, to_json if as_json else _tagged, _counted, what="text")


def _tagged(result: "Tagging") -> str:
    return "".join(f"{word.text}\t{word.tag}\n" for word in result.words)


def _counted(result: "Tagging") -> Iterator[str]:
    """What the summary counts: spans by their labels, and texts that were not read in full."""
    yield from (span.label for span in result.spans)
    yield from (FLAGS[flag] for flag in result.flags if flag in ("max_length", "unreadable"))


def _follows_blank(before: bytes, _line: bytes) -> bool:
    """Whether a line belongs to another text than the one before."""
    return before == b"\n"
