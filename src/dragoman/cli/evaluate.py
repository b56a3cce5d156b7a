"""`dragoman evaluate`: how good a model is, by what its task is for."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dragoman.cli.output import BATCH_TOKENS, BeamSize, Device, LengthPenalty, ModelFolder, option
from dragoman.cli.pipes import check_output, progress_of, say, to_stdout
from dragoman.errors import InputError
from dragoman.files.writing import replacing

if TYPE_CHECKING:
    from dragoman.tasks.task import Report, Task


def evaluate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    *,
    src: Annotated[Path | None, option("Source lines (.gz, .xz, .zst too).")] = None,
    ref: Annotated[Path | None, option("Reference translations, line by line.")] = None,
    hyp: Annotated[Path | None, option("Write the translations to this file.")] = None,
    tokenize: Annotated[
        str | None, option("BLEU's tokenizer; by default that of the language.")
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    max_batch_tokens: Annotated[int | None, BATCH_TOKENS] = None,
    text: Annotated[Path | None, option("Text for a generator to predict.")] = None,
    split: Annotated[
        Literal["file", "line", "blank-line"], option("What a document in the text is.")
    ] = "file",
    data: Annotated[Path | None, option("Labelled texts, or words with tags.")] = None,
    layout: Annotated[
        list[str] | None, option("Layout of the data as KEY=VALUE; may be repeated.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with all figures.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Measure a model on a test set: translations, texts to predict, labels or tags.

    A translator by BLEU and chrF, with signatures:

    dragoman evaluate runs/en-zh --src test.en --ref test.zh --hyp test.out

    A generator by the perplexity of a text, and its nats per token and per character:

    dragoman evaluate runs/shakespeare --text test.txt

    A classifier or a tagger by accuracy, precision, recall and F1:

    dragoman evaluate runs/sst2 --data test.tsv
    """
    from dragoman.models.folder import read_config
    from dragoman.tasks.task import EvaluationData, task_of

    files = {"src": src, "ref": ref, "text": text, "data": data}
    task = task_of(read_config(model))
    if task is None or task.evaluate is None:
        raise InputError(f"{model} holds a model that answers nothing, so nothing is measured.")
    _check_files(model, task, [name for name, file in files.items() if file is not None])
    check_output(hyp, model, src, ref, option="--hyp")
    decoding = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "max_batch_tokens": max_batch_tokens,
    }
    test = EvaluationData(
        **files,
        tokenize=tokenize,
        decoding=decoding,
        split=split,
        layout=layout or (),
        device=device,
        progress=progress_of,
    )
    report = task.evaluate(model, test)
    try:
        if hyp is not None and report.answers:
            with replacing(hyp, "output") as part:
                answers = "".join(f"{answer}\n" for answer in report.answers)
                part.write_text(answers, encoding="utf-8", newline="\n")
    finally:  # a full disk takes no scores along
        _print(report, as_json=as_json)


def _check_files(model: Path, task: "Task", given: list[str]) -> None:
    """Raise InputError unless the files that the task is measured on are given, and no others."""
    if given != list(task.measured_on):
        files = " and ".join(f"--{name}" for name in task.measured_on)
        raise InputError(f"{model} is measured on {files}; give {files} and nothing else.")


def _print(report: "Report", *, as_json: bool) -> None:
    figures = json.dumps(report.figures, ensure_ascii=False)
    with to_stdout() as write:
        for line in [figures] if as_json else report.lines:
            write(line)
    for remark in (*(() if as_json else report.remarks), *report.warnings):
        say(remark)
