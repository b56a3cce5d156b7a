"""`dragoman evaluate`: how good a model is, by what its task is for."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.loading import Loading, decoding_options, with_loading
from dragoman.cli.options import with_options
from dragoman.cli.output import PlainLines, option, print_found
from dragoman.cli.pipes import check_output, say, telling_interrupt
from dragoman.cli.progress import progress_of
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.errors import InputError, did_you_mean
from dragoman.files.documents import reject_document
from dragoman.files.resuming import check_new
from dragoman.files.writing import replacing
from dragoman.tasks.evaluation import EvaluationData, holds_lines


@with_options("test", EvaluationData())
@decoding_options(TRANSLATING, only=("beam_size", "length_penalty", "max_batch_tokens"))
@with_loading
@telling_interrupt()
def evaluate(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder, or a file of its translations.")],
    *,
    test: EvaluationData,
    hyp: Annotated[Path | None, option("Write the translations to this file.")] = None,
    overwrite: Annotated[
        bool, option("Replace the file of --hyp if it exists.", "--overwrite")
    ] = False,
    decoding: Decoding,
    as_json: Annotated[bool, option("Print one JSON object with all figures.", "--json")] = False,
    loading: Loading,
    plain: PlainLines = False,
) -> None:
    """Evaluate a model on a test set: translations, texts to predict, labels or tags.

    Translators get BLEU and chrF, with signatures:

    dragoman evaluate runs/en-zh --src test.en --ref test.zh --hyp test.out

    With several references, or compared with another model or its translations in a file:

    dragoman evaluate runs/b --against runs/a --src test.en --ref test.zh --ref test2.zh

    dragoman evaluate b.out --against a.out --ref test.zh --tgt-lang zh

    Generators get the perplexity of a text, and its nats per token and per character:

    dragoman evaluate runs/shakespeare --text test.txt

    Dialogue models get the same for their answers, and the share of correct final answers:

    dragoman evaluate runs/town --text dialogues.txt

    Classifiers and taggers get accuracy, precision, recall and F1:

    dragoman evaluate runs/sst2 --data test.tsv
    """
    from dragoman.folder.opening import open_folder
    from dragoman.tasks.task import evaluation_of

    for path in filter(None, (model, test.against)) if test.ref else ():
        _check_there(path)
    if holds_lines(model) and (test.against is None or holds_lines(test.against)):
        _check_no_model(model, decoding, loading)
    system = model if holds_lines(model) else open_folder(model)
    measure = evaluation_of(system, test)
    for file in () if plain else filter(None, (test.src, *test.ref)):
        reject_document(file)
    check_output(hyp, model, test.src, *test.ref, test.against, option="--hyp")
    if hyp is not None and not overwrite:
        check_new(hyp, "--hyp")
    if not holds_lines(model):
        loading.check(model)
    test = replace(
        test,
        decoding=decoding,
        device=loading.device,
        precision=loading.precision,
        progress=progress_of,
    )
    report = measure(system, test)
    try:
        if hyp is not None and report.answers:
            with replacing(hyp, "output") as part:
                lines = "".join(f"{answer}\n" for answer in report.answers)
                part.write_text(lines, encoding="utf-8", newline="\n")
    finally:  # a full disk does not lose the scores
        print_found(report.figures, report.lines, as_json=as_json)
        for remark in (*(() if as_json else report.remarks), *report.warnings):
            say(remark)
        if hyp is not None and not report.answers:
            say(f"{hyp} is not written: this evaluation makes no texts.")


def _check_there(path: Path) -> None:
    """Raise InputError unless there is a file of translations or a model folder."""
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = did_you_mean(path.name, [each.name for each in beside]) or "."
        raise InputError(f"There is no model folder or file of translations {path}{hint}")


def _check_no_model(file: Path, decoding: Decoding, loading: Loading) -> None:
    """Raise InputError for model options if only files of translations are compared."""
    asked = [each.name for each in fields(Loading) if getattr(loading, each.name) != each.default]
    if given := [f"--{name.replace('_', '-')}" for name in (*decoding.given(), *asked)]:
        raise InputError(
            f"No model translates here, since {file} is a file of translations; leave out "
            f"{' and '.join(given)}."
        )
