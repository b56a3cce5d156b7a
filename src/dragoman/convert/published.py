"""Converting a Hugging Face folder to a model folder of ours and back, verified by logits.

Loading already checks that every tensor is used, every parameter set, and all ties are as in the
config. If transformers is installed, its class must compute the same logits for two rows of random
ids, one of them padded. Some of these logits are stored in the new folder's config, so that
`verify` does not need transformers.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.convert.huggingface import load_theirs
from dragoman.convert.limits import check_installed
from dragoman.convert.probe import Proof
from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import read_object
from dragoman.files.writing import creating
from dragoman.folder.foreign import family
from dragoman.folder.format import CONFIG, save_model
from dragoman.folder.opening import ModelFolder
from dragoman.folder.origin import LAYOUT, give_back, keep_origin
from dragoman.models import EncoderDecoder
from dragoman.models.build import Model
from dragoman.models.config import DecoderOnlyConfig, EncoderOnlyConfig, ModelConfig
from dragoman.nn.layers import Stack
from dragoman.tasks.folders import read_folder

SUBLAYERS = 3
"""Maximum per layer: self-attention, cross-attention, feed-forward."""
LEAST, MOST = 1e-5, 1e-4
"""Bounds of the tolerance."""
LENGTHS = (12, 8)
"""Lengths of the probe's rows."""
DIGITS = 32
"""Number of logits that a converted folder stores."""


def take_over(model: Path, out: Path) -> float | None:
    """Convert the Hugging Face folder `model` to the new model folder `out`.

    Returns how far our logits are from their class's, relative to the largest; None if transformers
    is not installed. Raises InputError if the folder is not of Hugging Face or cannot be read,
    DragomanError if the logits differ; then `out` is not created.
    """
    folder = read_folder(model, device="cpu")
    published = folder.config.published
    if not folder.config.as_it_is or published is None:
        raise InputError(f"{model} is a dragoman folder already; choose a target with --to")
    alone = folder if folder.adapters is None else replace(folder, adapters=None)
    worst = None if find_spec("transformers") is None else compare_with_class(alone, folder.path)
    probe = () if worst is None else digest(folder)  # they were not compared
    config = replace(folder.config, published=replace(published, probe=probe))
    files = keep_origin(folder, folder.model.state_dict())
    with creating(out, "converted model") as part:
        save_model(part, folder.model, config, tokenizers=files)
    return worst


def hand_back(folder: ModelFolder, out: Path, shard_size: str) -> Proof:
    """Convert a model from Hugging Face back to its original format, verified by logits.

    Unchanged weights are the same bit for bit, and so are all other files. Raises InputError if the
    folder is unconverted, or without transformers; DragomanError if the logits differ; then `out`
    is not created.
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

    _check_head(folder)
    tensors, files = give_back(folder.origin, folder.model.state_dict(), folder.config.model)
    with creating(out, "converted model") as part:
        save_torch_state_dict(tensors, part, max_shard_size=shard_size)
        for name, content in files.items():
            content.save(part / name)
        return Proof(sentences=len(LENGTHS), worst=compare_with_class(folder, part))


def _check_head(folder: ModelFolder) -> None:
    """Raise InputError for an encoder whose head is not that of its Hugging Face folder."""
    ours, kind = folder.config.model, family(folder.hf)
    if not isinstance(ours, EncoderOnlyConfig):
        return
    hf = kind.stored(folder.hf, read_object(folder.origin / LAYOUT))  # which looks at names only
    if ours.head != getattr(kind.config(hf), "head", None):
        raise InputError(
            f"{folder.path} has another head than the Hugging Face folder that it came from, whose "
            "class and labels would be restored; use it with dragoman"
        )


# ---------------------------------------------------------------- the proof


@dataclass(frozen=True, slots=True)
class Probe:
    """The ids that both sides read."""

    ids_BL: Tensor
    real_BL: Tensor
    """False at padding."""

    @classmethod
    def of(cls, folder: ModelFolder) -> "Probe":
        """Draw ids from a model's vocabulary, the same in each call."""
        model, sides = folder.config.model, (folder.src_tokenizer, folder.tgt_tokenizer)
        pad_id, rows = model.pad_id, [side.vocab_size for side in sides]
        size = min([*rows, model.vocab_size] if isinstance(model, DecoderOnlyConfig) else rows)
        draw = torch.Generator().manual_seed(0)
        ids_BL = torch.randint(0, size, (len(LENGTHS), LENGTHS[0]), generator=draw)
        ids_BL = ids_BL.masked_fill(ids_BL == pad_id, (pad_id + 1) % size)
        real_BL = torch.arange(LENGTHS[0]) < torch.tensor(LENGTHS)[:, None]
        return cls(ids_BL.masked_fill(~real_BL, max(0, pad_id)), real_BL)

    @property
    def targets_BL(self) -> Tensor:
        """The decoder's ids in an encoder-decoder: rows without padding."""
        return self.ids_BL[:1].expand_as(self.ids_BL)


def tolerance(config: ModelConfig) -> float:
    r"""Return the largest relative difference of logits that rounding in fp32 explains.

    Two libraries add the same products in different orders. Since independent errors add up like a
    random walk, a sum of `n` products then differs by about `sqrt(n) eps`, and the output of `k`
    sub-layers, each of which adds its error to the residual stream, by `sqrt(k n) eps`. With the
    longest sum of a sub-layer, `d_ff`, the tolerance is

        eps \cdot \sqrt{3 \cdot layers \cdot d_{ff}},    eps = 2^{-23}

    but at least 1e-5 and at most 1e-4, which a wrong activation or epsilon would exceed. For
    six and six layers with `d_ff` 2,048 it is 3.2e-5.
    """
    walk = math.sqrt(SUBLAYERS * config.depth * config.d_ff)
    return min(MOST, max(LEAST, torch.finfo(torch.float32).eps * walk))


def verify(folder: ModelFolder) -> float:
    """Return how far a folder's logits are from its publisher's, relative to the largest.

    Raises DragomanError, naming the first layer that differs if transformers is used; InputError if
    there is nothing to compare with: the model is not from Hugging Face, or transformers is not
    installed.
    """
    published = folder.config.published
    if folder.config.as_it_is:
        check_installed("transformers")
        return compare_with_class(folder, folder.path)
    if published is None or not published.probe:
        raise InputError(
            f"{folder.path} has no logits of its publisher, since its weights were modified after "
            "publication or it was converted without transformers: remove --verify (weights are "
            "checked by their hash whenever they are loaded), or install transformers and convert "
            "the published folder again"
        )
    expected = torch.tensor(published.probe)
    worst = _difference(torch.tensor(digest(folder)), expected)
    if not worst <= tolerance(folder.config.model):
        raise DragomanError(
            f"the logits of {folder.path} differ from those at its conversion by {worst:.1e} of "
            "the largest, so it is not used; convert it again, and report it if that does not help"
        )
    return worst


@torch.inference_mode()
def digest(folder: ModelFolder) -> tuple[float, ...]:
    """Return some logits of the probe, to be stored in a converted folder's config."""
    flat = _ours(folder.model, Probe.of(folder)).flatten()
    return tuple(flat[:: max(1, len(flat) // DIGITS)][:DIGITS].tolist())


@torch.inference_mode()
def compare_with_class(folder: ModelFolder, theirs_at: Path) -> float:
    """Compare with the class of transformers for the folder `theirs_at`; see `verify`."""
    theirs, probe = load_theirs(theirs_at), Probe.of(folder)
    theirs.config.use_cache = False  # with a cache, FSMT does not mask later targets
    with _watched(folder.model) as seen:
        found_MV = _ours(folder.model, probe)
    states = {name: [*rows[:-2], rows[-1]] for name, rows in seen.items()}  # normed, as theirs
    inputs = {"input_ids": probe.ids_BL, "attention_mask": probe.real_BL.long()}
    if isinstance(folder.model, EncoderDecoder):
        inputs["decoder_input_ids"] = probe.targets_BL
    output = theirs(**inputs, output_hidden_states=True)
    names = ("logits", "prediction_logits", "last_hidden_state")
    expected = next(output[name] for name in names if name in output)
    worst = _difference(found_MV, _real(expected, folder.model, probe))
    if not worst <= (most := tolerance(folder.config.model)):
        where = next(
            _differing(states, output, probe, most), "the layers agree, what follows does not"
        )
        raise DragomanError(
            f"the logits of {folder.path} differ from those of transformers by {worst:.1e} of the "
            f"largest ({where}), so it is not used; report it with its config.json"
        )
    return worst


def _ours(model: Model, probe: Probe) -> Tensor:
    targets = [probe.targets_BL] if isinstance(model, EncoderDecoder) else []
    return _real(model(probe.ids_BL, *targets), model, probe)


def _real(logits: Tensor, model: Model, probe: Probe) -> Tensor:
    """Return the rows `(M, V)` at positions that are not padding."""
    if isinstance(model, EncoderDecoder) or logits.dim() == 2:
        return logits.reshape(-1, logits.shape[-1])
    return logits[probe.real_BL]


def _difference(found: Tensor, expected: Tensor) -> float:
    if found.shape != expected.shape:
        raise DragomanError(
            f"the model returns numbers of shape {(*found.shape,)} where those to compare with "
            f"have shape {(*expected.shape,)}, so it is not used; report it with its config.json"
        )
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-9))


# ---------------------------------------------------------------- which layer differs


@contextmanager
def _watched(model: Model) -> Iterator[dict[str, list[Tensor]]]:
    """Record the input of each stack, the outputs of its layers, and that of its last norm."""
    seen: dict[str, list[Tensor]] = {}
    with ExitStack() as hooks:
        for name, stack in model.named_children():
            if isinstance(stack, Stack):
                rows = seen[name] = []
                read = partial(lambda rows, _, given: rows.append(given[0]), rows)
                wrote = partial(lambda rows, _, __, out: rows.append(out), rows)
                hooks.callback(stack.register_forward_pre_hook(read).remove)
                for part in (*stack.layers, stack.final_norm):
                    hooks.callback(part.register_forward_hook(wrote).remove)
        yield seen


def _differing(
    states: dict[str, list[Tensor]],
    output: Any,  # noqa: ANN401 -- theirs
    probe: Probe,
    most: float,
) -> Iterator[str]:
    """Yield the names of what differs, in the order of computation."""
    for name, ours in states.items():
        key = f"{name}_hidden_states"
        theirs: Sequence[Tensor] = output[key] if key in output else output["hidden_states"]
        reads_targets = len(states) == 2 and name == "decoder"
        real_BL = torch.ones_like(probe.real_BL) if reads_targets else probe.real_BL
        for number, (found, expected) in enumerate(zip(ours, theirs, strict=False)):
            if not _difference(found[real_BL], expected[real_BL]) <= most:
                yield f"{name} layer {number}" if number else f"the {name}'s embedding"
