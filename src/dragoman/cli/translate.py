"""``dragoman translate``: lines to lines."""

import json
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options as opt
from dragoman.cli.output import each_line

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
    model: opt.ModelFolder,
    file: opt.FileOrText = None,
    *,
    beam_size: opt.BeamSize = None,
    n_best: Annotated[
        int,
        opt.option("Number of translations of each line: LINE<tab>SCORE<tab>TEXT, best first."),
    ] = 1,
    length_penalty: opt.LengthPenalty = None,
    max_batch_tokens: Annotated[int | None, opt.BATCH_TOKENS] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print a JSON object per line: scores, tokens, alignment, flags."
        ),
    ] = False,
    device: opt.Device = "auto",
    output: opt.OutputFile = None,
    resume: opt.Resume = False,
) -> None:
    """Translate lines of text. Prints one line for each, in the same order.

    dragoman translate runs/en-zh < lines.en > lines.zh
    """
    decoding = {
        "--beam-size": beam_size,
        "--n-best": n_best,
        "--length-penalty": length_penalty,
        "--json": as_json,
    }
    starts = _is_next if n_best > 1 and not as_json else None
    with each_line(model, file, decoding, output=output, resume=resume, starts=starts) as given:
        from dragoman.tasks.translate.translator import Translator

        translator = Translator.load(model, device=device)
        base = translator.options
        options = opt.override(
            base,
            {
                "beam_size": max(base.beam_size, n_best) if beam_size is None else beam_size,
                "n_best": n_best,
                "length_penalty": length_penalty,
                "max_batch_tokens": max_batch_tokens,
            },
        )
        results = translator.stream(given.rest, options, window=given.window)
        numbers = count(given.out.results + 1)
        given.write(
            results,
            lambda result: _shown(result, next(numbers), n_best, as_json=as_json),
            lambda result: (FLAGS[flag] for flag in result.flags),
        )


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
