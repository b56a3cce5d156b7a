"""A folder of Hugging Face as a model folder of our own: the same weights, tokenizers and defaults.

The proof is in the loading (every tensor used, every parameter set, ties as the config has them)
and, where transformers is installed, in its class: the same logits for made-up ids.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import DragomanError, InputError
from dragoman.files.writing import creating
from dragoman.models import EncoderDecoder
from dragoman.models.adapters import base_of
from dragoman.models.folder import AS_IT_IS, CONFIG, save_model
from dragoman.models.foreign.files import read_object
from dragoman.tasks.folders import Folder, read_folder, tokenizer_files

TOLERANCE = 1e-5
"""Greatest difference of logits in fp32, relative to the largest."""
LENGTH = 12
"""Tokens of the probe's rows."""


def take_over(model: Path, out: Path) -> float | None:
    """Write the folder `model` of Hugging Face as the new model folder `out`.

    Returns how far our logits are from their class's, relative to the largest; None where
    transformers is not installed. Raises InputError for a folder that is not of Hugging Face or
    cannot be read, DragomanError where the logits differ; then there is no folder `out`.
    """
    folder = read_folder(model, device="cpu")
    if folder.config.format != AS_IT_IS:
        raise InputError(
            f"{model} is a dragoman folder already; say for what to convert it by --to"
        )
    worst = verify(folder if base_of(model) is None else read_folder(folder.path, device="cpu"))
    tokenizers = (folder.src_tokenizer, folder.tgt_tokenizer)
    files = tokenizer_files(folder.path, tokenizers)
    with creating(out, "converted model") as part:
        save_model(part, folder.model, folder.config, tokenizers=files)
    return worst


@torch.inference_mode()
def verify(folder: Folder) -> float | None:
    """Compare the logits with those of transformers' class; see `take_over`."""
    if find_spec("transformers") is None:
        return None
    theirs = _their_model(folder)
    ids_BL, ours = _probe(folder), folder.model
    if isinstance(ours, EncoderDecoder):
        found = ours(ids_BL, ids_BL)
        expected = theirs(input_ids=ids_BL, decoder_input_ids=ids_BL).logits
    else:
        found, expected = ours(ids_BL), theirs(input_ids=ids_BL).logits
    worst = float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-9))
    if not worst <= TOLERANCE:
        raise DragomanError(
            f"{folder.path} computes other logits here than in transformers, by {worst:.1e} of "
            "the largest, so it is not used; tell the maintainers its config.json"
        )
    return worst


def _probe(folder: Folder) -> Tensor:
    """Ids of one row, none of them padding: the same for the same model."""
    config = folder.config.model
    size = min(folder.src_tokenizer.vocab_size, folder.tgt_tokenizer.vocab_size)
    draw = torch.Generator().manual_seed(0)
    ids_BL = torch.randint(0, size, (1, LENGTH), generator=draw)
    return ids_BL.masked_fill(ids_BL == config.pad_id, (config.pad_id + 1) % size)


def _their_model(folder: Folder) -> Any:  # noqa: ANN401 (their class)
    """Load their class, which the config names, in fp32."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    (name, *_) = read_object(folder.path / CONFIG).get("architectures") or ["AutoModel"]
    kind = getattr(transformers, str(name), None)
    if kind is None:
        raise InputError(f"transformers has no class {name}, which {folder.path / CONFIG} names")
    loaded = kind.from_pretrained(folder.path, local_files_only=True, dtype=torch.float32)
    return loaded.eval()
