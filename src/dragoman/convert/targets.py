"""The libraries that a model can be converted for, and the conversion.

A target writes a folder, and opens it as a function that answers a text. `convert` writes to a
temporary folder, runs the sentences of a probe through it, and renames it to its final name if the
answers are those of our model.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from dragoman.convert.ctranslate import CTranslate2
from dragoman.convert.eight_bits import quantize
from dragoman.convert.huggingface import HuggingFace
from dragoman.convert.onnx import Onnx
from dragoman.convert.probe import Answers, Proof, built_in_probe, compare
from dragoman.convert.published import hand_back, take_over
from dragoman.errors import InputError
from dragoman.files.reading import read_lines
from dragoman.files.writing import creating
from dragoman.folder.opening import ModelFolder
from dragoman.tasks.folders import read_folder
from dragoman.wording import counted

TargetName = Literal["huggingface", "ctranslate2", "onnx"]


class Target(Protocol):
    """A library for which we write folders."""

    name: str
    """Its name in messages."""

    def check(self, folder: ModelFolder) -> None:
        """Raise InputError for an unsupported model, naming the key of the config."""

    def write(self, folder: ModelFolder, out: Path) -> None:
        """Write into the empty folder `out`."""

    def open(self, folder: ModelFolder, out: Path) -> Answers:
        """Load what was written with the library itself, on a CPU in fp32."""


TARGETS: Mapping[TargetName, Target] = {
    "huggingface": HuggingFace(),
    "ctranslate2": CTranslate2(),
    "onnx": Onnx(),
}


def convert(
    model: Path,
    out: Path,
    to: TargetName,
    sentences: Sequence[str] | None = None,
    *,
    shard_size: str | None = None,
) -> Proof:
    """Convert the model folder `model` to the new folder `out` of another library, if equivalent.

    `sentences` are answered by both sides, by default random ones from the vocabulary;
    `shard_size`, such as "5GB", is the maximum size of a weight file, for Hugging Face. Raises
    InputError for an unsupported model or if the target's package is missing, DragomanError if the
    sides differ; then `out` is not created.
    """
    target, folder = TARGETS[to], read_folder(model, device="cpu")
    if shard_size is not None:
        if not isinstance(target, HuggingFace):
            raise InputError("--shard-size requires --to huggingface; remove it")
        target = HuggingFace(shard_size=shard_size)
    if folder.config.published is not None and isinstance(target, HuggingFace):
        if sentences is not None:
            raise InputError(
                "--probe cannot be combined with --to huggingface for a model from Hugging Face, "
                "which is compared by logits: leave it out"
            )
        return hand_back(folder, out, target.shard_size)
    tokenizer = folder.src_tokenizer
    told = tokenizer.lang_in_source and tokenizer.frame().before  # SMaLL-100
    if (folder.config.directions or told) and not isinstance(target, CTranslate2):
        raise InputError(
            f"{model} has several languages, and {target.name} would not write the target's in "
            "front of a source; convert it --to ctranslate2, where it is the first token"
        )
    target.check(folder)
    probe = built_in_probe(folder) if sentences is None else sentences
    with creating(out, "converted model") as part:
        target.write(folder, part)
        return compare(folder, target.open(folder, part), probe, target.name)


def converted(
    model: Path,
    out: Path,
    to: TargetName | Literal["int8"] | None,
    *,
    probe: Path | None = None,
    references: Path | None = None,
    shard_size: str | None = None,
) -> Iterator[str]:
    """Convert a model folder for a library, to 8 bits or to our format; yield the messages.

    `probe` and `references` are files of lines. Raises InputError for incompatible options, and
    the errors of `convert`, `quantize` and `take_over`.
    """
    if references is not None and (to != "int8" or probe is None):
        raise InputError("--references requires --to int8 and --probe; add them, or remove it")
    if shard_size is not None and to != "huggingface":
        raise InputError("--shard-size requires --to huggingface; remove it")
    if probe is not None and to is None:
        raise InputError("--probe requires --to; add it, or remove --probe")
    sentences, right = (
        None if file is None else [*read_lines(file)] for file in (probe, references)
    )
    if to == "int8":
        drift = quantize(model, out, sentences, right)
        yield f"{out} holds the model in 8 bits" + ("." if drift is None else f": {drift}.")
        if drift is not None and drift.worst is not None:
            number, before, after = drift.worst
            yield f"The translation that changed most is that of line {number}:"
            yield f"  before: {before}\n  after:  {after}"
    elif to is not None:
        proof = convert(model, out, to, sentences, shard_size=shard_size)
        yield (
            f"{out} holds the model for {TARGETS[to].name}: "
            f"{counted(proof.sentences, 'sentence')} of the probe answered alike, logits within "
            f"{proof.worst:.1e}."
        )
    else:
        worst, proven = take_over(model, out), "every tensor has its place"
        if worst is None:
            proven += " (install transformers to compare logits)"
        else:
            proven += f", logits within {worst:.1e} of those of transformers"
        yield f"{out} holds the model of {model}: {proven}."
