"""``dragoman classify``: lines to labels."""

import json
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.output import Output, OutputOption, ResumeOption, digest_of
from dragoman.cli.pipes import (
    FileOrText,
    check_output,
    file_or_text,
    is_typed,
    lines_from,
    progress_of,
    say,
)
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.classify.classifier import Classification


def classify(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    file: FileOrText = None,
    *,
    max_batch_tokens: Annotated[int, typer.Option(help="Less needs less memory.")] = 8192,
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a line: the probability of each label, flags.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    output: OutputOption = None,
    resume: ResumeOption = False,
) -> None:
    """Classify lines: as many lines out as in, LABEL<tab>PROBABILITY each, in the same order.

    dragoman classify runs/sst2 < reviews.txt
    """
    given = file_or_text(file)
    check_output(output, model, given)
    command = {"model": digest_of(model), "--json": as_json}
    out = Output.find(output, command, resume=resume, starts=None)
    with lines_from(given) as lines:
        from dragoman.tasks.classify.classifier import Classifier

        classifier = Classifier.load(model, device=device)
        typed = is_typed(given)
        results = classifier.stream(
            out.skip(lines), max_batch_tokens=max_batch_tokens, window=1 if typed else 4096
        )
        start, counts = perf_counter(), Counter[str]()
        with out.writing() as write, progress_of(results, "lines", quiet=typed) as shown:
            for result in shown:
                write(_line(result, as_json=as_json))
                counts[result.label] += 1
        shares = "".join(f", {n:,} {label}" for label, n in sorted(counts.items()) if label)
        say(f"{counted(counts.total(), 'line')} in {perf_counter() - start:.1f} s{shares}")


def _line(result: "Classification", *, as_json: bool) -> str:
    """What is printed for one text; an empty line for an empty one."""
    if as_json:
        return json.dumps(result.to_dict(), ensure_ascii=False)
    return f"{result.label}\t{result.probability:.4f}" if result.label else ""
