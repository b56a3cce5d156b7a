"""`dragoman classify`, `tag` and `embed`: texts to what an encoder says of each."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from dragoman.cli.loading import Loading, check_input, with_device
from dragoman.cli.options import with_options
from dragoman.cli.output import (
    FLAGS,
    Destination,
    FileOrText,
    ModelFolder,
    each_line,
    names_of_flags,
    option,
    to_json,
    with_destination,
)
from dragoman.cli.pipes import say
from dragoman.cli.progress import progress_of
from dragoman.decoding import READING, Decoding
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.classify.classifier import Classification
    from dragoman.tasks.embedder import Embedding
    from dragoman.tasks.tag.tagger import Tagging

with_sizes = with_options("decoding", READING)


@with_sizes
@with_device
@with_destination
def classify(
    model: ModelFolder,
    file: FileOrText = None,
    *,
    decoding: Decoding,
    as_json: Annotated[
        bool, option("Print a JSON object per line: each label's probability, flags.", "--json")
    ] = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Classify lines of text. Prints LABEL<tab>PROBABILITY for each line, in the same order.

    dragoman classify runs/sst2 < reviews.txt
    """
    check_input(file, model, "classify")
    with each_line(model, file, {"--json": as_json}, to=to) as given:
        from dragoman.tasks.classify.classifier import Classifier

        loading.check(model)
        classifier = Classifier.load(model, device=loading.device)
        results = classifier.stream(given.rest, **decoding.given(), window=given.window)
        show = to_json if as_json else _labelled
        given.write(results, show, lambda one: [one.label] if one.label else one.flags)


def _labelled(result: "Classification") -> str:
    """Return what is printed for one text; an empty line for an empty text."""
    return f"{result.label}\t{result.probability:.4f}" if result.label else ""


@with_sizes
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
    """Yield what the summary counts: spans by label, and texts that were not read in full."""
    yield from (span.label for span in result.spans)
    yield from (FLAGS[flag] for flag in result.flags if flag in ("max_length", "unreadable"))


def _follows_blank(before: bytes, _line: bytes) -> bool:
    """Return whether a line belongs to another text than the one before."""
    return before == b"\n"


@with_sizes
@with_device
@with_destination
def embed(
    model: ModelFolder,
    file: FileOrText = None,
    *,
    decoding: Decoding,
    as_json: Annotated[
        bool, option("Print a JSON object per line: vector, flags.", "--json")
    ] = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Embed lines of text. Prints a vector for each line, its numbers separated by spaces.

    An --output that ends in .npy becomes a NumPy array of float32, with one row per line.

    dragoman embed all-MiniLM-L6-v2 questions.txt --output questions.npy
    """
    array = to.output if to.output is not None and to.output.suffix == ".npy" else None
    if array is not None and (as_json or to.resume):
        raise InputError("A .npy file goes without --json and --resume; choose another --output.")
    with each_line(model, file, {"--json": as_json}, to=to) as given:
        from dragoman.tasks.embedder import Embedder, save_vectors

        loading.check(model)
        embedder = Embedder.load(model, device=loading.device)
        if not embedder.pooling.published:
            say(f"{model} does not say how to pool: a vector is the mean of the hidden states.")
        results = embedder.stream(given.rest, **decoding.given(), window=given.window)
        if array is None:
            given.write(results, to_json if as_json else _as_text, names_of_flags)
            return
        with progress_of(results, "line", share=given.lines.share, quiet=given.typed) as shown:
            number, flags = save_vectors(shown, embedder.dim, array)
        flagged = (f"{count:,} {FLAGS[flag]}" for flag, count in flags.items())
        say(", ".join([counted(number, "line"), *flagged]))


def _as_text(result: "Embedding") -> str:
    """Return the numbers with nine digits, from which float32 is read back exactly."""
    return " ".join(f"{number:.9g}" for number in result.vector)
