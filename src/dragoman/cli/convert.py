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
        Literal["huggingface", "ctranslate2", "onnx", "int8"] | None,
        option(
            "The library to convert for, or int8: our own folder, with 8-bit weights. Omitted: our "
            "own folder, of a folder of Hugging Face."
        ),
    ] = None,
    probe: Annotated[
        Path | None,
        option(
            "Lines that both sides translate, continue or read: another library must do so alike "
            "(default: some made up), for int8 the translations that change are counted."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        option("Reference translations of the probe, for BLEU before and after; with --to int8."),
    ] = None,
    shard_size: Annotated[
        str | None, option("Size of a file of weights at most, such as 5GB; with --to huggingface.")
    ] = None,
) -> None:
    """Write a model for another library, if it then computes the same; or in 8 bits.

    dragoman convert opus-mt-en-de en-de

    dragoman convert runs/en-zh en-zh-hf --to huggingface

    dragoman convert runs/en-zh en-zh-ct2 --to ctranslate2 --probe dev.en

    dragoman convert runs/en-zh en-zh-onnx --to onnx

    dragoman convert runs/en-zh en-zh-int8 --to int8 --probe dev.en --references dev.zh
    """
    if references is not None and (to != "int8" or probe is None):
        raise InputError("--references requires --to int8 and --probe; add them, or remove it")
    if shard_size is not None and to != "huggingface":
        raise InputError("--shard-size requires --to huggingface; remove it")
    if to is None:
        _take_over(model, out, probe)
        return
    sentences = None if probe is None else list(read_lines(probe))
    if to == "int8":
        from dragoman.convert.eight_bits import quantize

        drift = quantize(
            model, out, sentences, None if references is None else list(read_lines(references))
        )
        say(f"{out} holds the model in 8 bits" + ("." if drift is None else f": {drift}."))
        if drift is not None and drift.worst is not None:
            number, before, after = drift.worst
            say(f"The translation that changed most is that of line {number}:")
            say(f"  before: {before}\n  after:  {after}")
        return
    from dragoman.convert.targets import TARGETS
    from dragoman.convert.targets import convert as convert_model

    proof = convert_model(model, out, to, sentences, shard_size=shard_size)
    say(
        f"{out} holds the model for {TARGETS[to].name}: {counted(proof.sentences, 'sentence')} of "
        f"the probe answered alike, logits within {proof.worst:.1e}."
    )


def _take_over(model: Path, out: Path, probe: Path | None) -> None:
    """Convert a Hugging Face folder to a dragoman folder."""
    if probe is not None:
        raise InputError("--probe requires --to; add it, or remove --probe")
    from dragoman.convert.published import take_over

    worst = take_over(model, out)
    proof = "every tensor has its place"
    if worst is None:
        proof += " (install transformers to compare logits)"
    else:
        proof += f", logits within {worst:.1e} of those of transformers"
    say(f"{out} holds the model of {model}: {proof}.")
