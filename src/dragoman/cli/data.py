"""`dragoman data`: a corpus of pairs checked, cleaned, split and sampled."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.loading import Loading, with_device
from dragoman.cli.options import with_options
from dragoman.cli.output import Item, option, print_found
from dragoman.cli.pipes import say, telling_interrupt
from dragoman.cli.progress import progress_of
from dragoman.corpus.config import MEANING, CleaningConfig, PairFiles
from dragoman.errors import DragomanError, InputError
from dragoman.files.resuming import check_writable
from dragoman.languages import LangCodes
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.corpus.checking import Checked, CorpusReport, Progress, Read, Score
    from dragoman.corpus.counting import CorpusStats
    from dragoman.data.checks import Pair

Out = Annotated[Path, option("Folder for the output files.")]
Json = Annotated[bool, option("Print one JSON object with everything.", "--json")]
Seed = Annotated[int, option("Random seed.")]
HeldOut = Annotated[
    list[Path] | None,
    option(
        "File of texts that no pair may contain, such as one side of a test set, or a table, JSON "
        "lines or a translation memory with both. May be repeated."
    ),
]
Removed = Annotated[
    Path | None,
    option("Write the removed pairs to this TSV file: rule, line or unit, source, target."),
]
ScoreBy = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="MODEL",
        help="Model that scores the pairs that break no other rule; a second one scores the other "
        "direction. May be repeated.",
    ),
]

with_corpus = with_options("files", PairFiles())
with_thresholds = with_options("config", CleaningConfig())


@with_corpus
@with_thresholds
@with_device
@telling_interrupt()
def check(  # noqa: PLR0913 -- the options of the verb
    *,
    files: PairFiles,
    held_out: HeldOut = None,
    score_by: ScoreBy = None,
    config: CleaningConfig,
    loading: Loading,
    html: Annotated[
        Path | None,
        option("Write a page with histograms and examples to this HTML file.", "--report"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report the problems of a corpus of pairs, with counts and examples.

    dragoman data check --src a.en --tgt a.zh --report a.html
    """
    from dragoman.corpus.writing import check_unused
    from dragoman.data.corpus import numbered_pairs

    corpus = files.corpus()
    if html is not None:
        to_read = [*corpus.paths, *(held_out or ())]
        check_writable(html, to_read, "--report")
        check_unused(html, to_read, "--report")
    found = _checked(files, config, held_out, score_by, loading)
    report = found.report(numbered_pairs(corpus))
    if html is not None:
        from dragoman.corpus.page import page
        from dragoman.files.writing import replacing

        with replacing(html, "page") as part:
            part.write_text(page(found, report, corpus.label), "utf-8", newline="\n")
    print_report(report, corpus.unit, as_json=as_json)
    if html is not None:
        say(f"wrote {html}")


@with_corpus
@with_thresholds
@with_device
@telling_interrupt()
def clean(  # noqa: PLR0913 -- the options of the verb
    *,
    files: PairFiles,
    out: Out,
    held_out: HeldOut = None,
    keep_removed: Removed = None,
    score_by: ScoreBy = None,
    config: CleaningConfig,
    loading: Loading,
    as_json: Json = False,
) -> None:
    """Write the pairs that break no rule of `data check` to files of the same names.

    dragoman data clean --src a.en --tgt a.zh --out clean
    """
    from dragoman.corpus.writing import check_removed, files_of, write_removed, write_sets
    from dragoman.data.corpus import numbered_pairs

    corpus = files.corpus()
    (paths,) = files_of(corpus, out, [""])
    if keep_removed is not None:
        check_removed(keep_removed, [*corpus.paths, *(held_out or ())], paths)
    found = _checked(files, config, held_out, score_by, loading)
    report = found.report(numbered_pairs(corpus))
    print_report(report, corpus.unit, as_json=as_json)
    check_kept(report)
    (written,) = write_sets(corpus, found.kept - 1, [paths])
    if keep_removed is not None:
        write_removed(numbered_pairs(corpus), found, keep_removed)
    rest = report.kept - written
    also = f" without {counted(rest, 'pair')} of pieces that have a bad one too" * bool(rest)
    say(f"wrote {' and '.join(map(str, paths))}{also}")


@with_corpus
def split(
    *,
    files: PairFiles,
    out: Out,
    dev: Annotated[int, option("Number of pairs in the validation set.")] = 1000,
    test: Annotated[int, option("Number of pairs in the test set.")] = 1000,
    document: Annotated[
        str | None,
        option(
            "Column or key of each pair's document name, or with --src and --tgt a file of these "
            "names, one per line; no document is in two sets."
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Split a corpus into train, dev and test sets that share no sentence.

    dragoman data split --src a.en --tgt a.zh --out parts --dev 500 --test 500
    """
    from dragoman.corpus import choosing
    from dragoman.corpus.writing import documents_of, files_of, read_of, write_sets

    corpus, names = files.corpus(), ("train", "dev", "test")
    paths, read = files_of(corpus, out, names), read_of(corpus, say)
    documents = None if document is None else documents_of(corpus, document)
    with progress_of_pairs() as progress:
        chosen = choosing.split(read, (dev, test), seed, progress, documents=documents)
    counts = write_sets(corpus, chosen, paths)
    for name, each, count in zip(names, paths, counts, strict=True):
        say(f"{name}: {counted(count, 'pair')} in {' and '.join(map(str, each))}")
    if left := int((chosen < 0).sum()):
        say(f"{counted(left, 'pair')} left out: they have a sentence of dev or test.")
    _say_torn(len(chosen) - left - sum(counts))


@with_corpus
def sample(
    *,
    files: PairFiles,
    out: Out,
    size: Annotated[int, option("Number of pairs to draw.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Draw pairs at random, keeping the order of the corpus.

    dragoman data sample --src a.en --tgt a.zh --size 10000 --out part
    """
    from dragoman.corpus import choosing
    from dragoman.corpus.writing import files_of, read_of, write_sets

    corpus = files.corpus()
    paths, read = files_of(corpus, out, [""]), read_of(corpus, say)
    with progress_of_pairs() as progress:
        chosen = choosing.sample(read, size, seed, progress)
    (written,) = write_sets(corpus, chosen, paths)
    say(f"{counted(written, 'pair')} of {len(chosen):,} in {' and '.join(map(str, paths[0]))}")
    _say_torn(size - written)


@with_corpus
def stats(*, files: PairFiles, as_json: Json = False) -> None:
    """Count pairs, words, characters, lengths, the vocabulary and scripts.

    dragoman data stats --src a.en --tgt a.zh
    """
    from dragoman.corpus.counting import count
    from dragoman.corpus.writing import read_of
    from dragoman.data.corpus import named_languages

    corpus, languages = files.corpus(), (files.src_lang, files.tgt_lang)
    named = named_languages(corpus)
    with progress_of_pairs() as progress:
        found = count(read_of(corpus, say), languages, named=named, progress=progress)
    print_found(found, _counts(found), as_json=as_json)


def _counts(found: "CorpusStats") -> Iterator[Item]:
    languages = _languages(found.src.language, found.tgt.language)
    yield f"{counted(found.pairs, 'pair')}, languages {languages}."
    src, tgt = dict(found.src.rows()), dict(found.tgt.rows(found.ratios))
    rows = ((name, src.get(name, ""), tgt.get(name, "")) for name in tgt | src)
    yield [("", "source", "target"), *rows]


@with_options("files", PairFiles(), only=("src_key", "tgt_key", "src_lang", "tgt_lang"))
def merge(
    corpora: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS...",
            help="A file (TSV, CSV, JSONL, TMX, XLIFF, PO), followed by its own keys if it has "
            "any: a.jsonl,en,de; or source and target: a.en,a.de",
        ),
    ],
    *,
    files: PairFiles,
    out: Out,
    weight: Annotated[
        list[float] | None,
        option(
            "Number of times that a corpus is used; 0.5 draws half of it. Repeat it, once per "
            "corpus."
        ),
    ] = None,
    unique: Annotated[
        bool, option("Skip pairs that occurred before, compared by letters and digits.", "--unique")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Concatenate corpora in the layout of the first, or as TSV if that is a translation memory.

    dragoman data merge a.en,a.de bt.tsv --weight 2 --weight 1 --out all
    """
    from dragoman.corpus import choosing
    from dragoman.corpus.merging import corpora_of, layout_of, write_merged
    from dragoman.corpus.writing import files_of, read_of

    each = corpora_of(corpora, files)
    (paths,) = files_of(layout_of(each[0]), out, ["merged"])
    with progress_of_pairs() as progress:
        times, repeated = choosing.times(
            [read_of(corpus, say) for corpus in each],
            weight or [1.0] * len(each),
            seed,
            unique=unique,
            progress=progress,
        )
    count = write_merged(each, times, paths)
    say(f"{counted(count, 'pair')} in {' and '.join(map(str, paths))}")
    if repeated:
        left = "left out" if unique else "taken all the same; --unique leaves them out"
        aside = "Weights aside, " if weight else ""
        say(f"{aside}{counted(repeated, 'pair was', 'pairs were')} there before: {left}.")


VERBS = (check, clean, split, sample, merge, stats)


def check_kept(report: "CorpusReport") -> None:
    """Raise DragomanError, with the rules that removed pairs, if no pair is left."""
    if not report.kept:
        rules = [f"{each.rule} {each.removed:,}" for each in report.rules if each.removed]
        removed = f"rules removed all, {', '.join(rules)}; --skip leaves a rule out"
        why = removed if rules else "the corpus has none"
        raise DragomanError(f"No pair is left to write: {why}.")


def _say_torn(left: int) -> None:
    if left:
        say(
            f"{counted(left, 'pair')} left out: others of the same piece, such as a message with "
            "plural forms, are in another set or in none."
        )


def _checked(
    files: PairFiles,
    config: CleaningConfig,
    held_out: list[Path] | None,
    score_by: list[Path] | None,
    loading: Loading,
) -> "Checked":
    from dragoman.corpus.checking import check as check_pairs
    from dragoman.corpus.merging import texts_of
    from dragoman.corpus.writing import read_of

    if not score_by and config.max_surprise != CleaningConfig().max_surprise:
        raise InputError("--max-surprise needs --score-by.")
    read, languages = read_of(files.corpus(), say), (files.src_lang, files.tgt_lang)
    score = _score_by(score_by, read, languages, loading) if score_by else None
    held = (text for path in held_out or () for text in texts_of(path, files))
    with progress_of_pairs() as progress:
        return check_pairs(read, config, languages, held, score=score, progress=progress)


def _score_by(models: Sequence[Path], read: "Read", given: LangCodes, loading: Loading) -> "Score":
    """Return what scores pairs: a model of their direction, and perhaps one of the other."""
    from dragoman.cli.score import load_scorer
    from dragoman.corpus.checking import tell_languages
    from dragoman.corpus.scoring import cross_entropies
    from dragoman.folder.opening import open_folder
    from dragoman.languages import base_of
    from dragoman.tasks.translate.translator import Translator

    if len(models) > 2:
        raise InputError("--score-by takes one model, or one of each direction.")
    scorers, told = [], tell_languages(read(), given)
    languages = [code or told[n] for n, code in enumerate(given)]
    for model in models:
        scorer = load_scorer(model, loading)
        if isinstance(scorer, Translator) and scorer.is_multilingual:
            if None in given:
                raise InputError(
                    f"{model} has several languages; say by --src-lang and --tgt-lang which two "
                    "the corpus has."
                )
            scorer = scorer.between(*languages)
        elif isinstance(scorer, Translator):
            own = open_folder(model).config
            if own.published is not None and None in {own.src_lang, own.tgt_lang}:
                scorer.between(*languages)  # refuses T5, which reads its task in the text
            for n, known in enumerate((own.src_lang, own.tgt_lang)):
                if (wanted := languages[n]) and known and base_of(known) != base_of(wanted):
                    raise InputError(
                        f"{model} translates {own.src_lang} to {own.tgt_lang}, and here a model "
                        f"is needed that translates {' to '.join(x or '?' for x in languages)}."
                    )
                languages[n] = languages[n] or known
        scorers.append(scorer)
        languages.reverse()
    return partial(cross_entropies, scorers)


@contextmanager
def progress_of_pairs() -> "Iterator[Progress]":
    """Show how many pairs have been read, and in which pass once their number is known."""
    passes = itertools.count(2)

    def show(pairs: "Iterable[Pair]", total: int | None = None) -> "Iterable[Pair]":
        what = f"pair in pass {next(passes)}" if total else "pair"
        return stack.enter_context(progress_of(pairs, what, total=total))

    with ExitStack() as stack:
        yield show


def print_report(report: "CorpusReport", what: str = "pair", *, as_json: bool) -> None:
    """Print a report as sentences and a table, or as one JSON object."""
    print_found(report, _shown(report, what), as_json=as_json)


def _languages(*codes: str | None) -> str:
    return ", ".join(code or "not known" for code in codes)


def _shown(report: "CorpusReport", what: str) -> Iterator[Item]:
    """Yield the content of a report: a table of the rules, then examples of each."""
    yield (
        f"{counted(report.pairs, 'pair')}, {report.words[0]:,} and {report.words[1]:,} words, "
        f"languages {_languages(*report.languages)}: "
        f"{counted(report.kept, 'is good', 'are good')}, "
        f"{counted(report.pairs - report.kept, 'is not', 'are not')}."
    )
    found = [each for each in report.rules if each.broken]
    if found:
        rows = [(each.rule, f"{each.removed:,}", f"{each.broken:,}") for each in found]
        yield [("rule", "removed", "of"), *rows]
    for each in found:
        for number, src, tgt in each.examples:
            yield f"{what} {number:,} {MEANING[each.rule]}: {src!r} with {tgt!r}"
