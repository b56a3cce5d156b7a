"""``dragoman translate``: lines to lines."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.output import Output, OutputOption, ResumeOption, digest_of
from dragoman.cli.pipes import (
    FileOrText,
    Write,
    check_output,
    file_or_text,
    is_typed,
    lines_from,
    progress_of,
    say,
)
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.results import Translation

FLAGS = {
    "empty": "empty",
    "max_length": "cut at the length limit",
    "no_output": "without output",
    "several_sentences": "with several sentences (parts may be missing)",
    "split": "translated in parts",
}
"""What the summary calls the flags."""


def translate(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    file: FileOrText = None,
    *,
    beam_size: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    n_best: Annotated[
        int, typer.Option(help="Translations of each line: LINE<tab>SCORE<tab>TEXT, best first.")
    ] = 1,
    length_penalty: Annotated[float | None, typer.Option(help="Above 0 favours length.")] = None,
    max_batch_tokens: Annotated[int | None, typer.Option(help="Less needs less memory.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a line: scores, tokens, alignment, flags.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    output: OutputOption = None,
    resume: ResumeOption = False,
) -> None:
    """Translate lines: as many lines out as in, in the same order.

    dragoman translate runs/en-zh < lines.en > lines.zh
    """
    given = file_or_text(file)
    check_output(output, model, given)
    starts = _is_next if n_best > 1 and not as_json else None
    command = {
        "model": digest_of(model),
        "--beam-size": beam_size,
        "--n-best": n_best,
        "--length-penalty": length_penalty,
        "--json": as_json,
    }
    out = Output.find(output, command, resume=resume, starts=starts)
    with lines_from(given) as lines:
        from dragoman.tasks.translate.translator import Translator

        translator = Translator.load(model, device=device)
        base = translator.options
        budget = base.max_batch_tokens if max_batch_tokens is None else max_batch_tokens
        options = replace(
            base,
            beam_size=max(base.beam_size, n_best) if beam_size is None else beam_size,
            n_best=n_best,
            length_penalty=base.length_penalty if length_penalty is None else length_penalty,
            max_batch_tokens=budget,
        )
        typed = is_typed(given)
        results = translator.stream(out.skip(lines), options, window=1 if typed else 4096)
        with out.writing() as write, progress_of(results, "lines", quiet=typed) as shown:
            summary = _print(shown, write, n_best=n_best, as_json=as_json, before=out.results)
        say(summary)


def _print(
    results: Iterable["Translation"], write: Write, *, n_best: int, as_json: bool, before: int
) -> str:
    """Write all lines, numbered from ``before``; gives how many there were, and their flags."""
    start = perf_counter()
    count = 0
    flagged: Counter[str] = Counter()
    for count, translation in enumerate(results, start=1):
        write(_shown(translation, before + count, n_best, as_json=as_json))
        flagged.update(translation.flags)
    notes = "".join(f", {count:,} {FLAGS[flag]}" for flag, count in sorted(flagged.items()))
    return f"{counted(count, 'line')} in {perf_counter() - start:.1f} s{notes}"


def _shown(translation: "Translation", number: int, n_best: int, *, as_json: bool) -> str:
    """What is printed for one translation."""
    if as_json:
        return json.dumps(_to_json(translation), ensure_ascii=False)
    if n_best == 1:
        return translation.text
    best = (translation, *translation.alternatives)
    return "\n".join(f"{number}\t{one.score:.6f}\t{one.text}" for one in best)


def _is_next(before: bytes, line: bytes) -> bool:
    """Whether a line of n best has another number than the one before."""
    return before.split(b"\t")[0] != line.split(b"\t")[0]


def _to_json(translation: "Translation") -> dict[str, Any]:
    """The translation with its source pieces and the links between the two."""
    src_tokens: list[str] = []
    links: list[list[int]] = []
    written = 0
    for part in translation.alignments:
        links += [[len(src_tokens) + s, written + t] for s, t in part.links]
        src_tokens += part.src_tokens[:-1]
        written += len(part.tgt_tokens) - 1
    return translation.to_dict() | {"src_tokens": src_tokens, "alignment": links}
