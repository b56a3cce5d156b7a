"""`dragoman data back-translate` and `distill`: pairs that a model makes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, repeat, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.data import Json, check_kept, print_report, progress_of_pairs, with_corpus
from dragoman.cli.loading import Loading, decoding_options, with_loading
from dragoman.cli.options import with_options
from dragoman.cli.output import (
    Destination,
    ModelFolder,
    content_hash,
    digest_of,
    keep_all,
    option,
    say_kept,
    telling_kept,
    with_destination,
)
from dragoman.cli.pipes import check_output, say
from dragoman.cli.translate import (
    TranslateOptions,
    command_of,
    languages_of,
    load_translator,
    with_ensemble,
)
from dragoman.corpus.config import CleaningConfig, PairFiles
from dragoman.data.memory import ending_of
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.errors import InputError
from dragoman.files.resuming import ResumableFile
from dragoman.files.writing import names_device
from dragoman.languages import LangCodes
from dragoman.ranges import UNSET
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.data.checks import Pair

_Read = Callable[[], Iterable[tuple[str, str | None]]]
"""Reads texts, and their references if there are any."""
with_thresholds = with_options("config", replace(CleaningConfig(), max_surprise=UNSET))


@decoding_options(replace(TRANSLATING, n_best=UNSET))
@with_ensemble
@with_loading
@with_thresholds
@with_destination
def back_translate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    file: Annotated[Path, typer.Argument(help="A file of lines in the target language.")],
    *,
    decoding: Decoding,
    tag: Annotated[
        str | None, option("Write this in front of each source, such as '<BT>', and a space.")
    ] = None,
    src_lang: Annotated[
        str | None, option("Language of the sources, by its code in a multilingual model.")
    ] = None,
    tgt_lang: Annotated[
        str | None, option("Language of the file, by its code in a multilingual model.")
    ] = None,
    asked: TranslateOptions,
    config: CleaningConfig,
    as_json: Json = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Make sources for lines of the target language by a model of the other direction.

    Writes a TSV of source and target, without the pairs that break a rule of `data check`.

    dragoman data back-translate runs/de-en mono.de --temperature 1 --tag '<BT>' --output bt.tsv
    """
    from dragoman.files.reading import read_lines

    between, read = (tgt_lang, src_lang), partial(_alone, file)
    out = _translated(
        model,
        asked,
        [file],
        read,
        to,
        between=between,
        decoding=decoding,
        loading=loading,
        config=config,
    )
    sides = partial(read_lines, out.partial), partial(_texts, read)
    languages = languages_of(model, between)[::-1]
    _write(out, sides, languages, config, as_json=as_json, tag=tag)


@decoding_options(TRANSLATING)
@with_corpus
@with_ensemble
@with_loading
@with_thresholds
@with_destination
def distill(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    *,
    files: PairFiles,
    decoding: Decoding,
    asked: TranslateOptions,
    config: CleaningConfig,
    as_json: Json = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Make targets for the sources of a corpus by a teacher, for a smaller model to learn from.

    With references, --n-best takes the translation nearest to them by chrF. Writes a TSV without
    the pairs that break a rule of `data check`; --src alone is enough.

    dragoman data distill runs/big --src a.en --output easy.tsv

    dragoman data distill runs/big --src a.en --tgt a.de --n-best 8 --output easy.tsv
    """
    from dragoman.corpus.writing import read_of
    from dragoman.files.reading import read_lines

    alone = files.src if files.tgt is None else None
    corpus = (replace(files, tgt=alone) if alone else files).corpus()
    layout = [each for each in ("src", "tsv", "jsonl", "tm") if getattr(files, each)]
    if alone and decoding.given().get("n_best", 1) > 1:
        raise InputError("--n-best chooses by references; name them with --tgt.")
    read: _Read = partial(_alone, alone) if alone else read_of(corpus, say)
    between = files.src_lang, files.tgt_lang
    out = _translated(
        model,
        asked,
        corpus.paths,
        read,
        to,
        layout=[*layout, files.src_key, files.tgt_key],
        between=between,
        decoding=decoding,
        loading=loading,
        config=config,
    )
    sides = partial(_texts, read), partial(read_lines, out.partial)
    _write(out, sides, languages_of(model, between), config, as_json=as_json)


VERBS = (back_translate, distill)


def _translated(  # noqa: PLR0913 -- the options of both verbs
    model: Path,
    asked: TranslateOptions,
    files: Sequence[Path],
    read: _Read,
    to: Destination,
    *,
    layout: Sequence[str] = (),
    between: LangCodes,
    decoding: Decoding,
    loading: Loading,
    config: CleaningConfig,
) -> ResumableFile:
    """Translate each text to a line of a partial file, or those that are not there yet.

    Of the n best it is the nearest to the reference that `read` has beside the text. What `layout`
    says of the files is the same in a command that continues. Raises InputError for texts in the
    language that the model writes.
    """
    from dragoman.corpus.making import are_written, nearest
    from dragoman.corpus.merging import LAYOUTS

    if to.output is None or names_device(to.output):
        raise InputError("Name the file to write with --output.")
    check_output(to.output, model, *files)
    if LAYOUTS.get(ending := ending_of(to.output)) and ending != ".tsv":
        raise InputError(f"{to.output} would contain a TSV despite its name; name it .tsv.")
    command = command_of(decoding, asked.ensemble, between, loading) | {
        "model": digest_of(model),
        "input": [content_hash(file) for file in files],
        "layout": [*layout],
    }
    out = ResumableFile(to.output, command)
    out.find(overwrite=to.overwrite, resume=to.resume)
    total = sum(1 for _ in read())
    if not total:
        raise InputError(f"{files[0]} has no text to translate; give another file.")
    src, tgt = known = languages_of(model, between)
    languages = (None, None) if between == languages_of(model) else between
    if "language" not in config.skip and are_written(_texts(read), known, config.min_language):
        reads, cure = f"{model} reads {src}", "use a model of the other direction"
        if all(languages):
            reads = f"by the options {model} is to read {src}"
            cure = "swap --src-lang and --tgt-lang, the languages of the pairs that are written"
        raise InputError(f"{files[0]} looks like {tgt}, but {reads}; {cure}, or --skip language.")
    translator, options = load_translator(model, loading, decoding, languages, asked)
    texts, references = out.skip(_texts(read)), out.skip(ref for _, ref in read())
    results = zip(translator.stream(texts, options), references, strict=True)
    keep_all(out, starmap(nearest, results), total)
    return out


def _alone(file: Path) -> Iterator[tuple[str, None]]:
    from dragoman.files.reading import read_lines

    return zip(read_lines(file, strict=False), repeat(None), strict=False)


def _texts(read: _Read) -> Iterator[str]:
    return (text for text, _ in read())


def _write(
    out: ResumableFile,
    sides: tuple[Callable[[], Iterator[str]], Callable[[], Iterator[str]]],
    languages: LangCodes,
    config: CleaningConfig,
    *,
    as_json: bool,
    tag: str | None = None,
) -> None:
    """Write the pairs that break no rule as a TSV, and report on the others.

    Raises DragomanError if there is none; what was translated is kept then, for other thresholds.
    """
    from dragoman.corpus.checking import check
    from dragoman.corpus.writing import in_cells

    def read() -> "Iterator[Pair]":
        return zip(sides[0](), sides[1](), strict=True)

    with progress_of_pairs() as progress:
        found = check(read, config, languages, progress=progress)
    report, start = found.report(read), f"{tag} " if tag else ""
    print_report(report, as_json=as_json)
    if not report.kept:
        say_kept(out, "and --skip RULE to the same command, which translates nothing again")
    check_kept(report)
    good = (in_cells((start + src, tgt)) for src, tgt in compress(read(), found.kept))
    with telling_kept(out):
        out.finish(f"{row}\n".encode(errors="surrogateescape") for row in good)
    say(f"wrote {counted(report.kept, 'pair')}")
