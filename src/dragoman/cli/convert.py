"""`dragoman convert`: a model folder as a folder of another library, proven equal."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.output import ModelFolder, option
from dragoman.cli.pipes import say
from dragoman.errors import InputError
from dragoman.files.reading import read_lines
from dragoman.wording import counted


def convert(
    model: ModelFolder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write, which must not exist yet.")
    ],
    *,
    to: Annotated[
        Literal["huggingface", "ctranslate2", "int8"],
        option("The library to convert for; or int8: a folder of ours, of a quarter of the size."),
    ],
    probe: Annotated[
        Path | None,
        option(
            "Source lines that both sides translate: alike, or for int8 to count those that "
            "changed; default: some made up, and none for int8."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        option("Translations of the probe, for the BLEU before and after; with --to int8."),
    ] = None,
) -> None:
    """Write a translator for another library, if it then computes the same; or one in 8 bits.

    dragoman convert runs/en-zh en-zh-hf --to huggingface

    dragoman convert runs/en-zh en-zh-ct2 --to ctranslate2 --probe dev.en

    dragoman convert runs/en-zh en-zh-int8 --to int8 --probe dev.en --references dev.zh
    """
    from dragoman.convert.eight_bits import quantize
    from dragoman.convert.targets import convert as convert_model

    sentences = None if probe is None else list(read_lines(probe))
    if references is not None and (to != "int8" or probe is None):
        raise InputError("--references goes with --to int8 and --probe; add them or leave it out")
    if to != "int8":
        proof = convert_model(model, out, to, sentences)
        say(
            f"{out} holds the model for {to}: {counted(proof.sentences, 'sentence')} of the probe "
            f"translated alike, logits within {proof.worst:.1e}."
        )
        return
    drift = quantize(
        model, out, sentences or (), list(read_lines(references)) if references else ()
    )
    say(f"{out} holds the model in 8 bits.")
    if sentences:
        say(f"{drift.changed} of {counted(drift.sentences, 'translation')} changed.")
    if drift.bleu:
        say(f"BLEU {drift.bleu[0]:.2f} before, {drift.bleu[1]:.2f} after.")
    if drift.worst:
        number, before, after = drift.worst
        say(f"The most changed is line {number}, from\n  {before}\nto\n  {after}")
