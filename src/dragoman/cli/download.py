"""`dragoman download`: a model of the Hugging Face Hub as a folder."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.pipes import say


def download(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model's name on the Hub.")],
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="The folder to write; default: the last part of the name."
        ),
    ] = None,
) -> None:
    """Fetch a published model from the Hugging Face Hub into a folder.

    dragoman download Helsinki-NLP/opus-mt-en-de

    Prints size and licence first. Takes the weights as safetensors; if the main revision has none,
    those that the Hub's conversion bot proposed for it; otherwise pytorch_model.bin, which is
    stored as safetensors. No other command opens a connection. After an interruption, repeat the
    command to continue; the folder appears once it is complete.
    """
    from dragoman.folder.foreign.hub import fetch

    out = out or Path(name.rpartition("/")[2] or name)
    fetch(name, out, say)
    say(f"{out} holds the model; it is used without a connection.")
