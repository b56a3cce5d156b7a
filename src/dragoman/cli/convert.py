"""`dragoman convert`: a model folder as a folder of another library, proven equal."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.output import ModelFolder, option
from dragoman.cli.pipes import say


def convert(
    model: ModelFolder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write, which must not exist yet.")
    ],
    *,
    to: Annotated[
        Literal["huggingface", "ctranslate2", "onnx", "int8"] | None,
        option(
            "The library to convert for (huggingface, ctranslate2, onnx), or int8: our own "
            "folder, with 8-bit weights. If omitted, a Hugging Face folder is converted to our "
            "own.",
            metavar="NAME",
        ),
    ] = None,
    probe: Annotated[
        Path | None,
        option(
            "Lines that both sides translate, continue or read: another library must give the "
            "same results (default: made-up lines); for int8, the translations that change are "
            "counted."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        option("Reference translations of the probe, for BLEU before and after; with --to int8."),
    ] = None,
    shard_size: Annotated[
        str | None, option("Maximum size of a weight file, such as 5GB; with --to huggingface.")
    ] = None,
) -> None:
    """Convert a model for another library, if the outputs stay the same, or to 8 bits.

    dragoman convert opus-mt-en-de en-de

    dragoman convert runs/en-zh en-zh-hf --to huggingface

    dragoman convert runs/en-zh en-zh-ct2 --to ctranslate2 --probe dev.en

    dragoman convert runs/en-zh en-zh-onnx --to onnx

    dragoman convert runs/en-zh en-zh-int8 --to int8 --probe dev.en --references dev.zh
    """
    from dragoman.convert.targets import converted

    for sentence in converted(
        model, out, to, probe=probe, references=references, shard_size=shard_size
    ):
        say(sentence)
