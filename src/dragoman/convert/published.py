"""A folder of Hugging Face as a model folder of our own, and back: weights, tokenizers, defaults.

The proof is in the loading (every tensor used, every parameter set, ties as the config has them)
and, where transformers is installed, in its class: the same logits for made-up ids (`verify`).
"""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from dragoman.convert.limits import check_installed
from dragoman.convert.probe import Proof
from dragoman.convert.verify import LENGTHS, compare_with_class, digest
from dragoman.errors import InputError
from dragoman.files.writing import creating
from dragoman.folder.foreign import family
from dragoman.folder.format import CONFIG, save_model
from dragoman.folder.opening import ModelFolder
from dragoman.folder.origin import give_back, keep_origin
from dragoman.models.config import EncoderOnlyConfig
from dragoman.tasks.folders import read_folder


def take_over(model: Path, out: Path) -> float | None:
    """Write the folder `model` of Hugging Face as the new model folder `out`.

    Returns how far our logits are from their class's, relative to the largest; None where
    transformers is not installed. Raises InputError for a folder that is not of Hugging Face or
    cannot be read, DragomanError where the logits differ; then there is no folder `out`.
    """
    folder = read_folder(model, device="cpu")
    published = folder.config.published
    if not folder.config.as_it_is or published is None:
        raise InputError(f"{model} is a dragoman folder already; choose a target with --to")
    alone = folder if folder.adapters is None else replace(folder, adapters=None)
    worst = None if find_spec("transformers") is None else compare_with_class(alone, folder.path)
    probe = () if worst is None else digest(folder)  # which nobody has compared
    config = replace(folder.config, published=replace(published, probe=probe))
    files = keep_origin(folder, folder.model.state_dict())
    with creating(out, "converted model") as part:
        save_model(part, folder.model, config, tokenizers=files)
    return worst


def hand_back(folder: ModelFolder, out: Path, shard_size: str) -> Proof:
    """Write a model from Hugging Face as the folder `out` that it came from, proven by logits.

    Weights that have not changed are the same bit for bit, and so are all other files. Raises
    InputError where the folder still is one of Hugging Face, and without transformers;
    DragomanError where the logits differ; then there is no folder `out`.
    """
    if not (folder.path / CONFIG).exists():
        raise InputError(
            f"{folder.path} is a folder of Marian's own; convert it to a dragoman folder first "
            "(dragoman convert FOLDER OURS), then convert that"
        )
    if folder.config.as_it_is:
        raise InputError(
            f"{folder.path} is a folder of Hugging Face already: copy it, or merge its adapters "
            "first (dragoman convert ADAPTERS MERGED)"
        )
    check_installed("transformers")
    from huggingface_hub import save_torch_state_dict

    theirs = family(folder.hf).config(folder.hf)
    ours = folder.config.model
    if isinstance(ours, EncoderOnlyConfig) and ours.head != getattr(theirs, "head", None):
        raise InputError(
            f"{folder.path} has another head than the Hugging Face folder that it came from, whose "
            "class and labels would be restored; use it with dragoman"
        )
    tensors, files = give_back(folder.origin, folder.model.state_dict(), folder.config.model)
    with creating(out, "converted model") as part:
        save_torch_state_dict(tensors, part, max_shard_size=shard_size)
        for name, content in files.items():
            content.save(part / name)
        return Proof(sentences=len(LENGTHS), worst=compare_with_class(folder, part))
