"""`dragoman data back-translate` and `distill`: pairs that a model makes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.errors import InputError
from dragoman.files.reading import ending_of
from dragoman.files.resuming import ResumableFile
from dragoman.files.writing import names_device
from dragoman.languages import LangCodes
from dragoman.ranges import UNSET
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.data.checks import Pair

_Read = Callable[[], Iterable[tuple[str, str | None]]]
"""Reads texts, and their references if there are any."""
OPTIONS = replace(TRANSLATING, terms=UNSET)
"""Decoding options with their defaults; there is no glossary."""
with_thresholds = with_options("config", replace(CleaningConfig(), max_surprise=UNSET))


@decoding_options(replace(OPTIONS, n_best=UNSET))
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
        str | None, option("Tag to write before each source, such as '<BT>', followed by a space.")
    ] = None,
    src_lang: Annotated[
        str | None, option("Language of the sources, as its code in a multilingual model.")
    ] = None,
    tgt_lang: Annotated[
        str | None, option("Language of the file, as its code in a multilingual model.")
    ] = None,
    asked: TranslateOptions,
    config: CleaningConfig,
    as_json: Json = False,
    loading: Loading,
    to: Destination,
) -> None:
    """Create sources for lines of the target language with a model of the other direction.

    Writes a TSV of source and target, without the pairs that break a rule of `data check`.

    dragoman data back-translate runs/de-en mono.de --temperature 1 --tag '<BT>' --output bt.tsv
    """
    making = _Making(model, (tgt_lang, src_lang), decoding, asked, loading, config, to)
    read, start = partial(_alone, file), f"{tag} " if tag else ""
    out = making.translate(read, [file], [])
    making.write(out, read, as_json=as_json, backwards=True, start=start)


@decoding_options(OPTIONS)
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
    """Create targets for the sources of a corpus with a teacher, for a smaller model to learn from.

    With references, --n-best selects the translation closest to them by chrF. Writes a TSV without
    the pairs that break a rule of `data check`; --src alone is enough.

    dragoman data distill runs/big --src a.en --output easy.tsv

    dragoman data distill runs/big --src a.en --tgt a.de --n-best 8 --output easy.tsv
    """
    from dragoman.corpus.writing import read_of

    alone = files.src if files.tgt is None else None
    corpus = (replace(files, tgt=alone) if alone else files).corpus()
    layout = [each for each in ("src", "tsv", "jsonl", "tm") if getattr(files, each)]
    if alone and decoding.given().get("n_best", 1) > 1:
        raise InputError("--n-best chooses by references; name them with --tgt.")
    read: _Read = partial(_alone, alone) if alone else read_of(corpus, say)
    between = files.src_lang, files.tgt_lang
    making = _Making(model, between, decoding, asked, loading, config, to)
    out = making.translate(read, corpus.paths, [*layout, files.src_key, files.tgt_key])
    making.write(out, read, as_json=as_json)


VERBS = (back_translate, distill)


@dataclass(frozen=True, slots=True)
class _Making:
    """The options of both verbs."""

    model: Path
    between: LangCodes
    """The given languages: that of the input, and that of its translation."""
    decoding: Decoding
    asked: TranslateOptions
    loading: Loading
    config: CleaningConfig
    to: Destination

    def translate(self, read: _Read, files: Sequence[Path], layout: Sequence[str]) -> ResumableFile:
        """Translate each text to a line of a partial file, or only those that are missing.

        Of the n best, the nearest to the reference that `read` returns with the text is taken. A
        command that continues must have the same `layout` of the files.
        """
        from dragoman.corpus.making import nearest
        from dragoman.corpus.merging import LAYOUTS

        output = self.to.output
        if output is None or names_device(output):
            raise InputError("Name the file to write with --output.")
        check_output(output, self.model, *files)
        if LAYOUTS.get(ending := ending_of(output)) and ending != ".tsv":
            raise InputError(f"{output} would contain a TSV despite its name; name it .tsv.")
        command = command_of(self.decoding, self.asked.ensemble, self.between, self.loading) | {
            "model": digest_of(self.model),
            "input": [content_hash(file) for file in files],
            "layout": [*layout],
        }
        out = ResumableFile(output, command)
        out.find(overwrite=self.to.overwrite, resume=self.to.resume)
        total = sum(1 for _ in read())
        if not total:
            raise InputError(f"{files[0]} has no text to translate; give another file.")
        languages = self._checked_languages(read, files[0])
        translator, options = load_translator(
            self.model, self.loading, self.decoding, languages, self.asked
        )
        texts, references = out.skip(_texts(read)), out.skip(ref for _, ref in read())
        results = zip(translator.stream(texts, options), references, strict=True)
        keep_all(out, starmap(nearest, results), total)
        return out

    def _checked_languages(self, read: _Read, file: Path) -> LangCodes:
        """Return those to translate by. Raises InputError for texts in the target language."""
        from dragoman.corpus.making import are_written

        src, tgt = known = languages_of(self.model, self.between)
        own = (None, None) if self.between == languages_of(self.model) else self.between
        is_checked = "language" not in self.config.skip
        if is_checked and are_written(_texts(read), known, self.config.min_language):
            reads, cure = f"{self.model} reads {src}", "use a model of the other direction"
            if all(own):
                reads = f"by the options {self.model} is to read {src}"
                cure = "swap --src-lang and --tgt-lang, the languages of the pairs that are written"
            raise InputError(f"{file} looks like {tgt}, but {reads}; {cure}, or --skip language.")
        return own

    def write(
        self,
        out: ResumableFile,
        read: _Read,
        *,
        as_json: bool,
        backwards: bool = False,
        start: str = "",
    ) -> None:
        """Write the pairs that break no rule as a TSV, and report on the others.

        `backwards` puts the translations first, with `start` before each. Raises DragomanError if
        no pair is left; the translations are kept then, for other thresholds.
        """
        from dragoman.corpus.checking import check
        from dragoman.corpus.writing import in_cells
        from dragoman.files.reading import read_lines

        def pairs() -> "Iterator[Pair]":
            sides = _texts(read), read_lines(out.partial)
            return zip(*(reversed(sides) if backwards else sides), strict=True)

        src, tgt = languages_of(self.model, self.between)
        languages = (tgt, src) if backwards else (src, tgt)
        with progress_of_pairs() as progress:
            found = check(pairs, self.config, languages, progress=progress)
        report = found.report(enumerate(pairs(), start=1))
        print_report(report, as_json=as_json)
        if not report.kept:
            say_kept(out, "and --skip RULE to the same command, which translates nothing again")
        check_kept(report)
        good = (in_cells((start + src, tgt)) for src, tgt in compress(pairs(), found.kept))
        with telling_kept(out):
            out.finish(f"{row}\n".encode(errors="surrogateescape") for row in good)
        say(f"wrote {counted(report.kept, 'pair')}")


def _alone(file: Path) -> Iterator[tuple[str, None]]:
    from dragoman.files.reading import read_lines

    return zip(read_lines(file, strict=False), repeat(None), strict=False)


def _texts(read: _Read) -> Iterator[str]:
    return (text for text, _ in read())
