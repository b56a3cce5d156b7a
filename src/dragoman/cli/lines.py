"""The verbs that answer line by line: `translate`, `classify` and `tag`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dragoman.cli.flags import FLAGS
from dragoman.cli.output import (
    BATCH_TOKENS,
    BeamSize,
    Compute,
    Destination,
    Device,
    FileOrText,
    LengthPenalty,
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
from dragoman.cli.pipes import InputLines, lines_from
from dragoman.cli.verify import Verify, check
from dragoman.errors import InputError
from dragoman.files.documents import lines_of_text

if TYPE_CHECKING:
    from dragoman.tasks.classify.classifier import Classification
    from dragoman.tasks.results import Translation
    from dragoman.tasks.tag.tagger import Tagging
    from dragoman.tasks.translate.translator import Translator

PlainLines = Annotated[
    bool,
    option("Read a document (HTML, subtitles, PO, ...) line by line as it is.", "--plain"),
]
NoSplit = Annotated[
    bool,
    option("Translate each line as one text, even if it has several sentences.", "--no-split"),
]
NoRetry = Annotated[
    bool,
    option(
        "Do not search again where a translation loops, is empty or reaches its limit.",
        "--no-retry",
    ),
]
AsPublished = Annotated[
    bool,
    option("Return what the publisher's class generates: --no-split --no-retry.", "--as-published"),
]
NBest = Annotated[
    int, option("Translations per line; above 1, printed as LINE<tab>SCORE<tab>TEXT, best first.")
]
BeamGroups = Annotated[
    int | None, option("Cut the beam into groups, each of which avoids the others' tokens.")
]
Diversity = Annotated[
    float | None,
    option(
        "What a token loses for each time that another group took it in a step; 0.5 if omitted."
    ),
]
Mbr = Annotated[
    int | None,
    option("Choose among this many hypotheses or samples by minimum Bayes risk (chrF)."),
]
Temperature = Annotated[
    float | None, option("Sample at this temperature; by default beam search or greedy search.")
]
TopK = Annotated[int | None, option("Sample only from the k most likely tokens.")]
TopP = Annotated[float | None, option("Nucleus sampling threshold.")]
MinP = Annotated[
    float | None, option("Sample tokens at least this fraction as likely as the top one.")
]
Seed = Annotated[int | None, option("Random seed of --temperature; 0 if omitted.")]
MinLength = Annotated[int | None, option("Minimum number of tokens of a translation.")]
RepetitionPenalty = Annotated[
    float | None, option("Above 1 makes tokens less likely that a translation already has.")
]
NoRepeatNgrams = Annotated[int | None, option("Never repeat an n-gram of this length.")]
TranslationJson = Annotated[
    bool, option("Print a JSON object per line: scores, tokens, alignment, flags.", "--json")
]
Shortlist = Annotated[
    bool,
    option(
        "Write only tokens that the folder's shortlist has for the words of the source: faster.",
        "--shortlist",
    ),
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


def translate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    file: FileOrText = None,
    *,
    beam_size: BeamSize = None,
    n_best: NBest = 1,
    beam_groups: BeamGroups = None,
    diversity: Diversity = None,
    mbr: Mbr = None,
    length_penalty: LengthPenalty = None,
    min_length: MinLength = None,
    repetition_penalty: RepetitionPenalty = None,
    no_repeat_ngrams: NoRepeatNgrams = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    seed: Seed = None,
    shortlist: Shortlist = False,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    prefixes: Prefixes = None,
    ensemble: Ensemble = None,
    no_split: NoSplit = False,
    no_retry: NoRetry = False,
    as_published: AsPublished = False,
    max_batch_tokens: Annotated[int | None, BATCH_TOKENS] = None,
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
    beam = {"beam_size": beam_size, "n_best": n_best, "beam_groups": beam_groups, "mbr": mbr}
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    chosen = {
        **beam,
        "diversity": diversity,
        "length_penalty": length_penalty,
        "min_length": min_length,
        "repetition_penalty": repetition_penalty,
        "no_repeat_ngrams": no_repeat_ngrams,
        **sampling,
        "seed": seed,
        "shortlist": shortlist or None,
        **{name: False for name, no in (("split_sentences", no_split), ("retry", no_retry)) if no},
        "max_batch_tokens": max_batch_tokens,
    }
    others = (src_lang, tgt_lang, compute, as_json, as_published)
    command = _command(chosen, prefixes, ensemble or (), others)
    starts = _is_next if n_best > 1 and not as_json else None
    to = Destination(output=output, resume=resume, overwrite=overwrite, spares=prefixes)
    with each_line(model, file, command, to=to, starts=starts) as given, _given(prefixes) as begun:
        lines = given if plain else _checked(given, file)
        models = [model, *(ensemble or ())]
        translator = _loaded(models, compute, device, verify=verify, as_published=as_published)
        _translate(lines, begun, translator.between(src_lang, tgt_lang), chosen, as_json=as_json)


def _checked(given: Lines, file: str | None) -> Lines:
    """The same lines. Raises InputError for those of a document."""
    return replace(given, lines=given.lines.through(partial(lines_of_text, file)))


def _given(prefixes: Path | None) -> AbstractContextManager[InputLines[str] | None]:
    """The lines of a file of prefixes, if there is one."""
    return nullcontext() if prefixes is None else lines_from(prefixes)


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


def _command(
    chosen: Mapping[str, Any],
    prefixes: Path | None,
    ensemble: Sequence[Path],
    others: tuple[str | None, str | None, str, bool, bool],
) -> dict[str, object]:
    """The options that translations depend on, by their names on the command line.

    `others` are the two languages, the arithmetic, and the flags --json and --as-published.
    """
    src_lang, tgt_lang, compute, as_json, as_published = others
    if chosen["seed"] is not None and not chosen["temperature"]:
        raise InputError("--seed requires sampling; give --temperature, or leave it out.")
    renamed = {"split_sentences": "--no-split", "retry": "--no-retry"}
    named = {name: f"--{name.replace('_', '-')}" for name in chosen if name != "max_batch_tokens"}
    command = {option: chosen[name] for name, option in named.items() if name not in renamed}
    command |= {no: True if name in chosen else None for name, no in renamed.items()}
    return command | {
        "--prefixes": None if prefixes is None else str(prefixes),
        "--ensemble": [digest_of(other) for other in ensemble] or None,
        "--src-lang": src_lang,
        "--tgt-lang": tgt_lang,
        "--compute": None if compute == "float32" else compute,
        "--json": as_json,
        "--as-published": as_published or None,
    }


def _translate(
    given: Lines,
    prefixes: Iterator[str] | None,
    translator: "Translator",
    chosen: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Translate the lines with the options that were chosen; a beam is as wide as they need."""
    from dragoman.tasks.options import with_given

    n_best = chosen["n_best"]
    width = max(translator.options.beam_size, n_best, chosen["mbr"] or 0)
    width = 1 if chosen["temperature"] else width + -width % (chosen["beam_groups"] or 1)
    beam_size = width if chosen["beam_size"] is None else chosen["beam_size"]
    results = translator.stream(
        given.rest,
        with_given(translator.options, {**chosen, "beam_size": beam_size}),
        prefixes=None if prefixes is None else given.out.skip(prefixes),
        window=given.window,
    )
    numbers = count(given.out.results + 1)
    given.write(
        results,
        lambda result: _translated(result, next(numbers), n_best, as_json=as_json),
        lambda result: (FLAGS[flag] for flag in result.flags),
    )


def _translated(result: "Translation", number: int, n_best: int, *, as_json: bool) -> str:
    """What is printed for one translation; as JSON also its source tokens and alignment."""
    if as_json:
        src_tokens: list[str] = []
        alignment: list[list[int]] = []
        written = 0
        for part in result.alignments:
            alignment += [[len(src_tokens) + s, written + t] for s, t in part.links]
            src_tokens += part.src_tokens[:-1]
            written += len(part.tgt_tokens) - 1
        return to_json(result.to_dict() | {"src_tokens": src_tokens, "alignment": alignment})
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
            parted = given.lines.through(words).through(given.out.skip)
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
