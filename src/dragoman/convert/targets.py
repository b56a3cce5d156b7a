"""The libraries that a model can be converted for, and the conversion.

A target writes a folder, and opens one as a function that answers a text. `convert` lets it do the
first in a temporary folder and the second on the sentences of a probe, and gives the folder its
name if the answers are those of our model.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, get_args

from dragoman.convert.ctranslate import CTranslate2
from dragoman.convert.huggingface import HuggingFace
from dragoman.convert.onnx import Onnx
from dragoman.convert.probe import Answers, Proof, built_in_probe, compare
from dragoman.convert.published import hand_back
from dragoman.errors import InputError
from dragoman.files.writing import creating
from dragoman.folder.opening import ModelFolder
from dragoman.tasks.folders import read_folder

TargetName = Literal["huggingface", "ctranslate2", "onnx"]


class Target(Protocol):
    """A library whose folders we write."""

    name: str
    """As users know it."""

    def check(self, folder: ModelFolder) -> None:
        """Raise InputError for what it cannot express, naming the key of the config."""

    def write(self, folder: ModelFolder, out: Path) -> None:
        """Write into the folder `out`, which is empty."""

    def open(self, folder: ModelFolder, out: Path) -> Answers:
        """Load what was written, by the library itself, on a CPU in fp32."""


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
    """Write the model folder `model` as the new folder `out` of another library, if it is equal.

    `sentences` are what both sides answer, by default some made of the vocabulary; `shard_size`,
    such as "5GB", is how large a file of weights is at most, for Hugging Face. Raises InputError
    for what the target cannot express and where its package is missing, DragomanError where the
    sides differ; then there is no folder `out`.
    """
    if to not in TARGETS:
        *others, last = get_args(TargetName)
        known = f"{', '.join(others)} or {last}"
        raise InputError(f"there is no target {to}; a model is converted to {known}")
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
    if folder.config.directions and not isinstance(target, CTranslate2):
        raise InputError(
            f"{model} has several languages, and {target.name} would not write the target's in "
            "front of a source; convert it --to ctranslate2, where it is the first token"
        )
    target.check(folder)
    probe = built_in_probe(folder) if sentences is None else sentences
    with creating(out, "converted model") as part:
        target.write(folder, part)
        return compare(folder, target.open(folder, part), probe, target.name)
