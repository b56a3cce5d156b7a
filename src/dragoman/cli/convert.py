"""`dragoman convert`: a model folder as a folder of another library, proven equal."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.output import ModelFolder, option
from dragoman.cli.pipes import say
from dragoman.files.reading import read_lines
from dragoman.wording import counted


def convert(
    model: ModelFolder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write, which must not exist yet.")
    ],
    *,
    to: Annotated[Literal["huggingface", "ctranslate2"], option("The library to convert for.")],
    probe: Annotated[
        Path | None,
        option("Source lines that both sides must translate alike; default: some made up."),
    ] = None,
) -> None:
    """Write a translator for another library, if it then computes the same.

    dragoman convert runs/en-zh en-zh-hf --to huggingface

    dragoman convert runs/en-zh en-zh-ct2 --to ctranslate2 --probe dev.en
    """
    from dragoman.convert.targets import convert as convert_model

    sentences = None if probe is None else list(read_lines(probe))
    proof = convert_model(model, out, to, sentences)
    say(
        f"{out} holds the model for {to}: {counted(proof.sentences, 'sentence')} of the probe "
        f"translated alike, logits within {proof.worst:.1e}."
    )
