"""Marian's own files, read as a Hugging Face folder: `MODEL.npz` with its training options.

    MODEL.npz      tensors, matrices as [in, out], and the options as text, `special:model.yml`
    *vocab*.yml    `token: id`, read here for the end of a sentence; or *vocab*.spm
    decoder.yml    decoding options and the names of the vocabularies; may be missing

The layout is that of Marian's transformer and of the conversion script in `transformers`: every
target begins with an embedding of zeros, a row that is appended and also serves as padding.
"""

import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.files.reading import open_regular
from dragoman.folder.tokenizers.vocabularies import (
    END,
    find_vocabularies,
    read_decoding,
    read_options,
    read_vocabulary,
)
from dragoman.models.build import check_number

OPTIONS = "special:model.yml"
BIAS = "decoder_ff_logit_out_b"
ONLY: Mapping[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "layer-normalization": (False,),
    "right-left": (False,),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-activation": ("swish", "relu"),
    "transformer-ffn-depth": (2,),
    "transformer-no-projection": (False,),
    "transformer-postprocess": ("dan",),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-preprocess": ("",),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "lemma-dim-emb": (0,),
    "ulr-dim-emb": (0,),
}
"""Options for which the Marian of `transformers` supports only these values."""
NEVER = -1e4
"""The bias of ids that fill up a smaller target vocabulary: their probability is 0 in 16 bits."""
SIZES = ("dim-emb", "enc-depth", "dec-depth", "transformer-heads", "transformer-dim-ffn")
ATTENTIONS = {"self": "self_attn", "context": "encoder_attn"}
LAYER: Mapping[str, str] = {
    **{
        f"{ours}_{kind}{letter}": f"{theirs}.{name}_proj.{leaf}"
        for ours, theirs in ATTENTIONS.items()
        for letter, name in zip("qkvo", ("q", "k", "v", "out"), strict=True)
        for kind, leaf in (("W", "weight"), ("b", "bias"))
    },
    **{
        f"{ours}_Wo_ln_{kind}": f"{theirs}_layer_norm.{leaf}"
        for ours, theirs in ATTENTIONS.items()
        for kind, leaf in (("scale", "weight"), ("bias", "bias"))
    },
    **{
        f"ffn_{k}{n}": f"fc{n}.{leaf}" for n in "12" for k, leaf in (("W", "weight"), ("b", "bias"))
    },
    "ffn_ffn_ln_scale": "final_layer_norm.weight",
    "ffn_ffn_ln_bias": "final_layer_norm.bias",
}
"""Marian's names for the tensors of a layer, and those in `transformers`."""


def read_marian_config(path: Path) -> dict[str, Any]:
    """Return the contents of the equivalent `config.json` of Hugging Face.

    Raises InputError for a damaged file, and for an unsupported option, by name.
    """
    arrays = _read_arrays(path, (OPTIONS, BIAS))
    options = read_options(arrays.get(OPTIONS, np.zeros(0)).tobytes().decode("utf-8", "replace"))
    shared = _check(path, options)
    if BIAS not in arrays:
        raise InputError(f"{path} lacks {BIAS}, which its options ask for.")
    sizes = [arrays[BIAS].size, *([] if shared else _sizes(options))]
    return _config(path, options, pad_id=max(sizes), shared=shared)


def read_marian(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the same config, and the tensors of the equivalent Hugging Face folder."""
    hf, arrays = read_marian_config(path), _read_arrays(path)
    del arrays[OPTIONS]
    shared = hf["share_encoder_decoder_embeddings"]
    tables = ("Wemb",) if shared else ("encoder_Wemb", "decoder_Wemb")
    if absent := [name for name in tables if name not in arrays]:
        raise InputError(f"{path} lacks {absent[0]}, which its options ask for.")
    if flat := [name for name in tables if arrays[name].ndim != 2]:
        raise InputError(f"{path} is damaged: {flat[0]} is not a matrix; download it again.")
    sizes, rows = [len(arrays[name]) for name in tables], hf["pad_token_id"] + 1
    if sizes[-1] != arrays[BIAS].size or max(sizes) != rows - 1:
        found = " and ".join(map(str, sorted({*sizes, arrays[BIAS].size})))
        raise InputError(f"{path} has vocabularies of {found} tokens; its options say otherwise.")
    more = rows - sizes[-1]
    arrays |= {n: np.pad(arrays[n], ((0, rows - len(arrays[n])), (0, 0))) for n in tables}
    bias, fill = arrays[BIAS].reshape(1, -1), NEVER if more > 1 else 0.0
    arrays[BIAS] = np.pad(bias, ((0, 0), (0, more)), constant_values=fill)
    tensors = {_their_name(n): torch.from_numpy(_turned(n, array)) for n, array in arrays.items()}
    return hf, tensors


def _sizes(options: Mapping[str, Any]) -> list[int]:
    """Return the sizes of the vocabularies, of which the smaller is filled up."""
    sizes = options.get("dim-vocabs")
    return [size for size in sizes if type(size) is int] if isinstance(sizes, list) else []


def _check(path: Path, options: Mapping[str, Any]) -> bool:
    """Reject unsupported options; return whether source and target share their embedding."""
    if not options:
        raise InputError(f"{path} holds no {OPTIONS}, so it is not a Marian model.")
    for key, values in ONLY.items():
        if options.get(key, values[0]) not in values:
            known = " or ".join(map(repr, values))
            raise InputError(
                f"{path}: the option {key} = {options[key]!r} is not supported; only {known} is."
            )
    if lacking := [key for key in SIZES if type(options.get(key)) is not int]:
        raise InputError(f"{path}: {OPTIONS} lacks the option {lacking[0]}.")
    tied_all = options.get("tied-embeddings-all", False)
    if not (tied_all or options.get("tied-embeddings")):
        raise InputError(f"{path}: the option tied-embeddings = False is not supported; True is.")
    return bool(tied_all or options.get("tied-embeddings-src"))


def _read_arrays(path: Path, names: Sequence[str] = ()) -> dict[str, np.ndarray[Any, Any]]:
    """Read all or the named arrays of an archive; none is unpickled or larger than the file."""
    try:
        with open_regular(path) as stream:
            members = zipfile.ZipFile(stream).infolist()
            if sum(member.file_size for member in members) > stream.seek(0, os.SEEK_END):
                raise InputError(f"{path} is compressed; write it again by numpy.savez.")
            check_number(path, len(members))
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as stored:
                return {n: stored[n] for n in stored.files if n in names or not names}
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, MemoryError, RuntimeError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}); download it again.") from error


def _their_name(name: str) -> str:
    """Return the name in `transformers`; an unknown one is unchanged, and later rejected."""
    match name:
        case "Wemb":
            return "model.shared.weight"
        case "encoder_Wemb" | "decoder_Wemb":
            return f"model.{name[:7]}.embed_tokens.weight"
        case _ if name == BIAS:
            return "final_logits_bias"
    found = re.fullmatch(r"(encoder|decoder)_l([1-9]\d{0,3})_(\w+)", name)
    if found is None or found[3] not in LAYER:
        return name
    return f"model.{found[1]}.layers.{int(found[2]) - 1}.{LAYER[found[3]]}"


def _turned(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Transpose matrices of layers to [out, in], and reshape vectors from [1, n] to [n]."""
    if array.dtype.kind != "f":
        raise InputError(f"{name} holds {array.dtype}, but weights are read in 16, 32 or 64 bits.")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if name == BIAS or name.endswith("Wemb"):
        return array
    return array.T if re.search(r"_W[qkvo12]$", name) else array.reshape(-1)


def _config(path: Path, options: Mapping[str, Any], *, pad_id: int, shared: bool) -> dict[str, Any]:
    vocabularies, decoding = find_vocabularies(path.parent), read_decoding(path.parent)
    eos_id = read_vocabulary(vocabularies[1]).get(END, 0) if vocabularies else 0
    width, source, target, heads, ffn = (options[key] for key in SIZES)
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": pad_id + 1,
        "d_model": width,
        "encoder_layers": source,
        "decoder_layers": target,
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), heads),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), ffn),
        "activation_function": options.get("transformer-ffn-activation", "swish"),
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": True,
        "pad_token_id": pad_id,
        "decoder_start_token_id": pad_id,
        "bad_words_ids": [[pad_id]],
        "eos_token_id": eos_id,
        "forced_eos_token_id": eos_id,
        "max_position_embeddings": 512,
        "max_length": 512,
        "num_beams": decoding.get("beam-size", 6),
    }
