"""The verbs that answer line by line: `translate`, `classify` and `tag`."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dragoman.cli.decoding import decoding_options, flags_of
from dragoman.cli.flags import FLAGS
from dragoman.cli.output import (
    BATCH_TOKENS,
    Compute,
    Destination,
    Device,
    FileOrText,
    Lines,
    ModelFolder,
    OutputFile,
    Overwrite,
    Resume,
    SrcLang,
    TgtLang,
    digest_of,
    each_line,
    option,
    precision_of,
    to_json,
)
from dragoman.cli.pipes import lines_from
from dragoman.cli.verify import Verify, check
from dragoman.decoding import TRANSLATING, Decoding, wide_enough
from dragoman.errors import InputError
from dragoman.files.arriving import InputLines
from dragoman.ranges import UNSET

if TYPE_CHECKING:
    from dragoman.tasks.classify.classifier import Classification
    from dragoman.tasks.results import Translation
    from dragoman.tasks.tag.tagger import Tagging
    from dragoman.tasks.translate.translator import Translator

PlainLines = Annotated[
    bool,
    option("Read a document (HTML, subtitles, PO, ...) line by line as it is.", "--plain"),
]
AsPublished = Annotated[
    bool,
    option("Return what the publisher's class generates: --no-split --no-retry.", "--as-published"),
]
TranslationJson = Annotated[
    bool, option("Print a JSON object per line: scores, tokens, alignment, flags.", "--json")
]
Prefixes = Annotated[
    Path | None, option("What each translation begins with, line by line; empty lines are free.")
]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="MODEL",
        help="Another model that decodes with it, by the mean of the probabilities; repeatable.",
    ),
]


@decoding_options(TRANSLATING)
def translate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    file: FileOrText = None,
    *,
    decoding: Decoding,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    prefixes: Prefixes = None,
    ensemble: Ensemble = None,
    as_published: AsPublished = False,
    as_json: TranslationJson = False,
    device: Device = "auto",
    compute: Compute = "float32",
    verify: Verify = False,
    plain: PlainLines = False,
    output: OutputFile = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Translate lines of text. Prints one line for each, in the same order.

    dragoman translate runs/en-zh < lines.en > lines.zh
    """
    n_best = decoding.given().get("n_best", 1)
    command = flags_of(TRANSLATING, replace(decoding, max_batch_tokens=UNSET)) | {
        "--n-best": n_best,
        "--prefixes": None if prefixes is None else str(prefixes),
        "--ensemble": [digest_of(other) for other in ensemble or ()] or None,
        "--src-lang": src_lang,
        "--tgt-lang": tgt_lang,
        "--compute": None if compute == "float32" else compute,
        "--json": as_json,
        "--as-published": as_published or None,
    }
    starts = _is_next if n_best > 1 and not as_json else None
    to = Destination(output=output, resume=resume, overwrite=overwrite, spares=prefixes)
    begun = nullcontext() if prefixes is None else lines_from(prefixes)
    lines = each_line(model, file, command, to=to, starts=starts, plain=plain)
    with lines as given, begun as prefix_lines:
        translator = _loaded(
            [model, *(ensemble or ())], compute, device, verify=verify, as_published=as_published
        )
        between = translator.between(src_lang, tgt_lang)
        _translate(given, prefix_lines, between, decoding, as_json=as_json)


def _loaded(
    models: list[Path], compute: str, device: str, *, verify: bool, as_published: bool
) -> "Translator":
    """The first model, with the others as its ensemble."""
    check(models[0], verify=verify)
    from dragoman.tasks.translate.translator import Translator

    precision = precision_of(compute, device)
    load = partial(Translator.load, device=device, precision=precision, as_published=as_published)
    first, *others = map(load, models)
    return first.ensemble(*others)


def _translate(
    given: Lines,
    prefixes: InputLines[str] | None,
    translator: "Translator",
    decoding: Decoding,
    *,
    as_json: bool,
) -> None:
    """Translate the lines."""
    chosen, folder = decoding.given(), translator.options
    n_best, temperature = chosen.get("n_best", 1), chosen.get("temperature", folder.temperature)
    if "seed" in chosen and temperature == 0:
        raise InputError("--seed requires sampling; give --temperature, or leave it out.")
    results = translator.stream(
        given.rest,
        wide_enough(decoding, folder),
        prefixes=None if prefixes is None else given.skip(prefixes),
        window=given.window,
    )
    numbers = count(given.before + 1)
    given.write(
        results,
        lambda result: _translated(result, next(numbers), n_best, as_json=as_json),
        lambda result: (FLAGS[flag] for flag in result.flags),
    )


def _translated(result: "Translation", number: int, n_best: int, *, as_json: bool) -> str:
    """What is printed for one translation; as JSON also its source tokens and alignment."""
    if as_json:
        return to_json(result.to_dict() | result.linked())
    if n_best == 1:
        return result.text
    best = (result, *result.alternatives)
    return "\n".join(f"{number}\t{one.score:.6f}\t{one.text}" for one in best)


def _is_next(before: bytes, line: bytes) -> bool:
    """Whether a line of n best has another number than the one before."""
    return before.split(b"\t")[0] != line.split(b"\t")[0]


def classify(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    file: FileOrText = None,
    *,
    max_batch_tokens: Annotated[int, BATCH_TOKENS] = 8192,
    as_json: Annotated[
        bool, option("Print a JSON object per line: each label's probability, flags.", "--json")
    ] = False,
    device: Device = "auto",
    verify: Verify = False,
    output: OutputFile = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Classify lines of text. Prints LABEL<tab>PROBABILITY for each line, in the same order.

    dragoman classify runs/sst2 < reviews.txt
    """
    to = Destination(output=output, resume=resume, overwrite=overwrite)
    with each_line(model, file, {"--json": as_json}, to=to) as given:
        from dragoman.tasks.classify.classifier import Classifier

        check(model, verify=verify)
        classifier = Classifier.load(model, device=device)
        results = classifier.stream(
            given.rest, max_batch_tokens=max_batch_tokens, window=given.window
        )
        show = to_json if as_json else _labelled
        given.write(results, show, lambda one: [one.label] if one.label else one.flags)


def _labelled(result: "Classification") -> str:
    """What is printed for one text; an empty line for an empty one."""
    return f"{result.label}\t{result.probability:.4f}" if result.label else ""


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
        ),
    ] = "text",
    max_batch_tokens: Annotated[int, BATCH_TOKENS] = 8192,
    as_json: Annotated[
        bool, option("Print a JSON object per text: words, spans, flags.", "--json")
    ] = False,
    device: Device = "auto",
    verify: Verify = False,
    output: OutputFile = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Tag the words of texts. Prints WORD<tab>TAG for each word, and a blank line after each text.

    dragoman tag runs/conll2003 < news.txt
    """
    options = {"--input": form, "--json": as_json}
    starts = None if as_json else _follows_blank
    to = Destination(output=output, resume=resume, overwrite=overwrite)
    with each_line(model, file, options, to=to, starts=starts) as given:
        from dragoman.tasks.tag.tagger import Tagger

        check(model, verify=verify)
        tagger = Tagger.load(model, device=device)
        sizes = {"max_batch_tokens": max_batch_tokens, "window": given.window}
        if form == "text":
            results = tagger.stream(given.rest, **sizes)
        else:
            words = _columns if form == "columns" else partial(map, str.split)
            parted = given.lines.through(words).through(given.skip)
            results = tagger.stream_words(parted, **sizes)
        show = to_json if as_json else _tagged
        given.write(results, show, _counted, what="text")


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


def _tagged(result: "Tagging") -> str:
    """What is printed for one text."""
    return "".join(f"{word.text}\t{word.tag}\n" for word in result.words)


def _counted(result: "Tagging") -> Iterator[str]:
    """What the summary counts: spans by their labels, and texts that were not read in full."""
    yield from (span.label for span in result.spans)
    yield from (FLAGS[flag] for flag in result.flags if flag in ("max_length", "unreadable"))


def _follows_blank(before: bytes, _line: bytes) -> bool:
    """Whether a line belongs to another text than the one before."""
    return before == b"\n"
