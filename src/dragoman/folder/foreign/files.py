"""An unconverted Hugging Face folder: `config.json`, and weights in one file or in several.

    config.json                     sizes, settings, the class
    model.safetensors               the weights; or
    model.safetensors.index.json    which file contains which tensor, and
    model-00001-of-00003.safetensors ...
    pytorch_model.bin, or its shards  the same by torch.save, read if there is no safetensors

Or Marian's own `MODEL.npz`, read as the equivalent Hugging Face folder.

No code in a folder is run. Files are mapped into memory, so that a tensor
is read on access. Every InputError is one sentence that says what to do.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from dragoman.errors import InputError
from dragoman.files.reading import POINTER, open_regular, pointer, read_object
from dragoman.folder.foreign import FAMILIES, family
from dragoman.folder.foreign.marian import read_marian, read_marian_config
from dragoman.folder.foreign.pickled import read_pickled
from dragoman.folder.foreign.reading import HF, WRONG_TYPE
from dragoman.folder.foreign.settings import as_generated
from dragoman.folder.format import CONFIG, WEIGHTS
from dragoman.models.build import (
    LARGEST_HEADER,
    Model,
    build_on_meta,
    check_number,
    open_tensors,
    some,
)
from dragoman.models.config import EncoderDecoderConfig, ModelConfig
from dragoman.wording import counted

INDEX = "model.safetensors.index.json"
BIN, BIN_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_ANEW = (
    "which is not read, and no script makes a folder of Hugging Face of it; train a new model on "
    "its texts, as they were before they were cut into pieces: dragoman train --src A --tgt B "
    "--out DIR"
)
_ELSEWHERE = (
    "which is not read; take the same model as a folder of Hugging Face, if it is published as "
    "one, or train a new one on its texts: dragoman train --src A --tgt B --out DIR"
)
_FAIRSEQ = (
    "a checkpoint of fairseq, OpenNMT or PyTorch, a pickle, which is not read; a translator of "
    "fairseq becomes a folder of Hugging Face by transformers 4, whose script is "
    "convert_fsmt_original_pytorch_checkpoint_to_pytorch.py (docs/pretrained.md)"
)
_OLD = "take the model.safetensors or pytorch_model.bin beside it, or write them by transformers 4"
OTHERS: Mapping[str, str] = {
    "*_step_*.pt": f"a checkpoint of OpenNMT-py, a pickle, {_ANEW}",
    "checkpoint*.pt": _FAIRSEQ,
    "optimizer.pt": "the state of an optimizer, which is no model; give the folder that has the "
    "config.json and the weights of the same training",
    "*.pt": _FAIRSEQ,
    "*.*-*.*.idx": "of a corpus that fairseq-preprocess has numbered, which is no model; train one "
    "on its lines of text: dragoman train --src A --tgt B --out DIR",
    "*.[0-9][0-9].safetensors": f"a file of OpenNMT-py or eole, {_ANEW}",
    "params.best": f"a checkpoint of Sockeye, {_ANEW}",
    "params.[0-9]*": f"a checkpoint of Sockeye, {_ANEW}",
    "*.ckpt": f"a checkpoint of JoeyNMT, Lightning or PyTorch, a pickle, {_ELSEWHERE}",
    "*ckpt-*.index": f"a checkpoint of TensorFlow (tensor2tensor, OpenNMT-tf, T5), {_ELSEWHERE}",
    "saved_model.pb": f"a model of TensorFlow, {_ELSEWHERE}",
    "tf_model.h5": f"for TensorFlow alone; {_OLD}: from_pretrained(FOLDER, from_tf=True)",
    "flax_model.msgpack": f"for JAX alone; {_OLD}: from_pretrained(FOLDER, from_flax=True)",
    "*.intgemm*.bin": "a model of Marian with rounded weights, as browsers have them, which is not "
    "read; take the model.npz that it was made of",
    "*.gguf": "a file of llama.cpp with rounded weights, which is not read; take the model's "
    "folder with weights in 16 or 32 bits",
    "*.onnx": "a graph for onnxruntime, which is not read; take the folder that it was made of",
    "model.bin": "for CTranslate2 or Marian alone; take the folder or .npz that it was made of",
    "snapshots/*/config.json": "a model in the cache of huggingface_hub; give the folder around it",
}
"""What other files are and how to convert them, by name."""


def empty_foreign(folder: Path, config: ModelConfig, num_tensors: int) -> Model:
    """Build the model of a folder on the meta device, for `num_tensors` stored tensors.

    Raises InputError for more layers than tensors, and for sizes that cannot be built.
    """
    try:
        if config.depth > num_tensors:  # could be too many layers to build
            raise InputError(f"it has {config.depth} layers, but the weights {num_tensors} tensors")
        return build_on_meta(config)
    except InputError as error:
        raise InputError(f"{folder / CONFIG}: {str(error).removesuffix('.')}.") from error


def foreign_weights(
    folder: Path, hf: HF, stored: Mapping[str, Tensor], config: ModelConfig, only: Collection[str]
) -> Iterator[tuple[str, Tensor]]:
    """Yield those of a model's weights that `only` names, copied to fp32.

    Raises InputError for weights that are missing, unexpected, of another shape or not finite.
    """
    try:
        for name, tensor in family(hf).each_weight(stored, config, only):
            weight = tensor.to(torch.float32, copy=True).contiguous()
            if not all(math.isfinite(bound) for bound in weight.aminmax()):
                raise InputError(f"{name} holds NaN or infinity, so the training had failed")
            yield name, weight
    except InputError as error:
        raise InputError(f"{folder}: {str(error).removesuffix('.')}.") from error


def read_checkpoint(folder: Path, hf: HF | None = None) -> tuple[HF, Mapping[str, Tensor]]:
    """Return the contents of `config.json`, and the stored tensors by name.

    `hf` is the config, if already read; in the returned one, ties are corrected to those of the
    tensors, as the class that reads them does. The tensors are views of the mapped files. Raises
    InputError for a folder or a file that is missing, truncated, damaged, a git-lfs pointer, or in
    an unsupported format.
    """
    if archive := _archive(folder):
        return read_marian(archive)
    hf = read_hf(folder) if hf is None else hf
    for index, weights, read in ((INDEX, WEIGHTS, _read_tensors), (BIN_INDEX, BIN, read_pickled)):
        if (folder / index).is_file():
            tensors = _read_shards(folder / index, read)
        elif (folder / weights).is_file():
            tensors = read(folder / weights)
        else:
            continue
        kind = FAMILIES.get(str(hf.get("model_type")))
        try:
            return kind.stored(hf, tensors) if kind else hf, tensors
        except InputError as error:
            raise InputError(f"{folder}: {str(error).removesuffix('.')}.") from error
    lacking = BIN_INDEX if any(folder.glob("pytorch_model-*.bin")) else WEIGHTS
    raise InputError(
        of_others(folder) or f"{folder} has no weights: {lacking} is missing; download it."
    )


def read_hf(folder: Path) -> HF:
    """Return the contents of `config.json`: the part for text, if it has others.

    A translator's ids are those of its decoding options. For Marian's own archive, return the
    equivalent.
    """
    if archive := _archive(folder):
        return read_marian_config(archive)
    hf = read_object(folder / CONFIG)
    kind = FAMILIES.get(str(hf.get("model_type")))
    if kind is None:
        return hf
    return as_generated(folder, hf) if kind.kind is EncoderDecoderConfig else kind.text(hf)


def _archive(folder: Path) -> Path | None:
    """Return Marian's own weight file, in a folder without a `config.json`."""
    found = [] if (folder / CONFIG).is_file() else sorted(folder.glob("*.npz"))
    archives = [path for path in found if not path.name.endswith(".optimizer.npz")]
    if len(archives) > 1:
        raise InputError(
            f"{folder} holds {len(archives)} models, {some(map(str, archives))}; leave one."
        )
    return archives[0] if archives else None


def _read_shards(index: Path, read: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Read the files that an index names, and check that they contain what it lists."""
    folder = index.parent
    places = read_object(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise InputError(f"{index} is damaged: it has no weight_map; download it again.")
    check_number(index, len(places))
    files = sorted(set(places.values()))
    if outside := [file for file in files if not re.fullmatch(r"[\w.-]+\.(safetensors|bin)", file)]:
        raise InputError(f"{index} names {outside[0]!r}, which is not a file in its folder.")
    if missing := [file for file in files if not (folder / file).is_file()]:
        raise InputError(
            f"{folder} is half a download: {len(missing)} of {counted(len(files), 'file')} "
            f"{'is' if len(missing) == 1 else 'are'} missing: {some(missing)}; download the rest."
        )
    found = dict[str, Tensor]()
    for file in files:
        tensors = read(folder / file)
        if twice := found.keys() & tensors.keys():
            raise InputError(
                f"{folder / file} holds {some(twice)}, and another file does too; download both "
                "again."
            )
        found |= tensors
        check_number(index, len(found))
    if absent := places.keys() - found.keys():
        raise InputError(
            f"{index} names {some(absent)}, which no file holds; download all files again "
            "from one place."
        )
    return found


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """Map a safetensors file into memory."""
    try:
        with open_tensors(path) as stored:
            return {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 -- no mapping
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise InputError(_why_damaged(path, error)) from error
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def _why_damaged(path: Path, error: Exception) -> str:
    """Describe the damage: the bytes that are missing, if the header tells, or the given error."""
    size = path.stat().st_size
    with open_regular(path) as stream:
        start = stream.read(max(8, len(POINTER)))
        if start == POINTER:
            return pointer(path)
        length = int.from_bytes(start[:8], "little")
        stream.seek(8)
        text = stream.read(min(length, size)) if length <= LARGEST_HEADER else b""
    try:
        spans = [
            entry["data_offsets"] for name, entry in json.loads(text).items() if name[0] != "_"
        ]
        end = 8 + length + max(int(stop) for _, stop in spans)
    except WRONG_TYPE:
        end = 8 + length if 8 <= size < 8 + length <= LARGEST_HEADER else 0
    if size < end:
        lacking = f"{end - size:,} of {end:,} bytes are missing"
        return f"{path} is half a download: {lacking}; download the rest."
    return f"{path} is damaged ({error}); download it again."


def of_others(path: Path) -> str | None:
    """Return what to do with a file, or a folder with a file, in an unsupported format."""
    for pattern, what in OTHERS.items():
        found = [path] if path.is_file() and path.match(pattern) else sorted(path.glob(pattern))
        if found:
            return f"{found[0]} is {what}."
    return None
