"""`dragoman evaluate`: how good a model is, by what its task is for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from dragoman.cli.decoding import decoding_options
from dragoman.cli.lines import PlainLines
from dragoman.cli.output import (
    Compute,
    Device,
    ModelFolder,
    SrcLang,
    TgtLang,
    option,
    precision_of,
    print_items,
    to_json,
)
from dragoman.cli.pipes import check_output, say
from dragoman.cli.progress import progress_of
from dragoman.cli.verify import Verify, check
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.errors import InputError
from dragoman.files.documents import reject_document
from dragoman.files.resuming import check_new
from dragoman.files.writing import replacing

if TYPE_CHECKING:
    from dragoman.tasks.task import Report


@decoding_options(TRANSLATING, only=("beam_size", "length_penalty", "max_batch_tokens"))
def evaluate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    *,
    src: Annotated[Path | None, option("Source lines (.gz, .xz, .zst too).")] = None,
    ref: Annotated[Path | None, option("Reference translations, line by line.")] = None,
    hyp: Annotated[Path | None, option("Write the translations to this file.")] = None,
    overwrite: Annotated[
        bool, option("Replace the file of --hyp if it exists.", "--overwrite")
    ] = False,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    tokenize: Annotated[
        str | None, option("BLEU's tokenizer; by default that of the language.")
    ] = None,
    decoding: Decoding,
    text: Annotated[Path | None, option("Text for a generator to predict.")] = None,
    split: Annotated[
        Literal["file", "line", "blank-line"], option("What a document in the text is.")
    ] = "file",
    data: Annotated[Path | None, option("Labelled texts, or words with tags.")] = None,
    layout: Annotated[
        list[str] | None, option("Layout of the data as KEY=VALUE; may be repeated.")
    ] = None,
    as_json: Annotated[bool, option("Print one JSON object with all figures.", "--json")] = False,
    device: Device = "auto",
    compute: Compute = "float32",
    verify: Verify = False,
    plain: PlainLines = False,
) -> None:
    """Measure a model on a test set: translations, texts to predict, labels or tags.

    A translator by BLEU and chrF, with signatures:

    dragoman evaluate runs/en-zh --src test.en --ref test.zh --hyp test.out

    A generator by the perplexity of a text, and its nats per token and per character:

    dragoman evaluate runs/shakespeare --text test.txt

    A dialogue model by the same for its answers, and by the share of correct last ones:

    dragoman evaluate runs/town --text dialogues.txt

    A classifier or a tagger by accuracy, precision, recall and F1:

    dragoman evaluate runs/sst2 --data test.tsv
    """
    from dragoman.folder.opening import open_folder
    from dragoman.tasks.task import EvaluationData, task_of

    files = {"src": src, "ref": ref, "text": text, "data": data}
    folder = open_folder(model)
    task = task_of(folder.config)
    if task is None or task.evaluate is None:
        raise InputError(f"{model} holds a model that answers nothing, so nothing is measured.")
    if [name for name, file in files.items() if file is not None] != list(task.measured_on):
        needed = " and ".join(f"--{name}" for name in task.measured_on)
        raise InputError(f"{model} is measured on {needed}; give {needed} and nothing else.")
    for file in () if plain else filter(None, (src, ref)):
        reject_document(file)
    check_output(hyp, model, src, ref, option="--hyp")
    if hyp is not None and not overwrite:
        check_new(hyp, "--hyp")
    test = EvaluationData(
        **files,
        tokenize=tokenize,
        languages=(src_lang, tgt_lang),
        decoding=decoding,
        split=split,
        layout=layout or (),
        device=device,
        precision=precision_of(compute, device),
        progress=progress_of,
    )
    check(model, verify=verify)
    report = task.evaluate(folder, test)
    try:
        if hyp is not None and report.answers:
            with replacing(hyp, "output") as part:
                lines = "".join(f"{answer}\n" for answer in report.answers)
                part.write_text(lines, encoding="utf-8", newline="\n")
    finally:  # a full disk takes no scores along
        _print(report, as_json=as_json)


def _print(report: "Report", *, as_json: bool) -> None:
    print_items([to_json(report.figures)] if as_json else report.lines)
    for remark in (*(() if as_json else report.remarks), *report.warnings):
        say(remark)
