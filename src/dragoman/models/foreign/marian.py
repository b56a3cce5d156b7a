"""Marian's own files, as the family of Hugging Face: `MODEL.npz` with the options it was made by.

    MODEL.npz      tensors, matrices as [in, out], and the options as text, `special:model.yml`
    *vocab*.yml    `token: id`, of which the end of a sentence is wanted here
    decoder.yml    how to decode; may be missing

The layout is that of Marian's transformer and of the script of `transformers` that converts such
models: the embedding begins every target as a row of zeros, which is appended and serves as padding
too.
"""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import InputError

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
"""Options that the Marian of `transformers` knows in these values only."""
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
"""What Marian calls the tensors of a layer, and what `transformers` does."""


def read_marian(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the config and the tensors that Hugging Face's folder of this model would hold.

    Raises InputError for a file that is damaged, and names the option that is not supported.
    """
    arrays = _read_arrays(path)
    options = read_options(arrays.pop(OPTIONS, np.zeros(0)).tobytes().decode("utf-8", "replace"))
    shared = _check(path, options)
    tables = ("Wemb",) if shared else ("encoder_Wemb", "decoder_Wemb")
    if absent := [name for name in (*tables, BIAS) if name not in arrays]:
        raise InputError(f"{path} lacks {absent[0]}, which its options ask for.")
    sizes = {len(arrays[name]) for name in tables} | {arrays[BIAS].size}
    if len(sizes) > 1:
        found = " and ".join(map(str, sorted(sizes)))
        raise InputError(f"{path} has vocabularies of {found} tokens; only one size is supported.")
    arrays |= {name: np.pad(arrays[name], ((0, 1), (0, 0))) for name in tables}
    arrays[BIAS] = np.pad(arrays[BIAS].reshape(1, -1), ((0, 0), (0, 1)))
    tensors = {_their_name(n): torch.from_numpy(_turned(n, array)) for n, array in arrays.items()}
    return _config(path, options, pad_id=sizes.pop(), shared=shared), tensors


def _check(path: Path, options: Mapping[str, Any]) -> bool:
    """Refuse what is not supported; tell whether source and target share their embedding."""
    if not options:
        raise InputError(f"{path} holds no {OPTIONS}, so it is no model of Marian.")
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


def _read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of an archive; none is unpickled, and none is larger than its file."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > path.stat().st_size:
                raise InputError(f"{path} is compressed; write it again by numpy.savez.")
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, MemoryError, RuntimeError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}); download it again.") from error


def _their_name(name: str) -> str:
    """The name in `transformers`; one that is not known stays, and no place is found for it."""
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
    """Matrices of layers become [out, in]; vectors, kept as [1, n], become [n]."""
    if array.dtype.kind != "f":
        raise InputError(f"{name} holds {array.dtype}, but weights are read in 16, 32 or 64 bits.")
    if name == BIAS or name.endswith("Wemb"):
        return array
    return array.T if re.search(r"_W[qkvo12]$", name) else array.reshape(-1)


def _config(path: Path, options: Mapping[str, Any], *, pad_id: int, shared: bool) -> dict[str, Any]:
    """What `config.json` would hold."""
    vocabularies = sorted(path.parent.glob("*vocab*.yml"))
    eos_id = read_vocabulary(vocabularies[0]).get("</s>", 0) if vocabularies else 0
    decoder = path.parent / "decoder.yml"
    decoding = read_options(decoder.read_text("utf-8", "replace")) if decoder.is_file() else {}
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


def read_options(text: str) -> dict[str, Any]:
    """Read Marian's options, one a line: a flag, a number, a text, or a list on lines after it."""
    options, key = dict[str, Any](), ""
    for line in text.rstrip("\0").splitlines():
        if item := re.fullmatch(r"\s*- (.*)", line):
            if isinstance(options.get(key), list):
                options[key].append(_value(item[1]))
        elif pair := re.fullmatch(r"([\w-]+):(.*)", line):
            key = pair[1]
            options[key] = _value(pair[2]) if pair[2].strip() else []
    return options


def _value(text: str) -> Any:  # noqa: ANN401 -- a scalar
    text = text.strip()
    if text in ("true", "false", "[]"):
        return {"true": True, "false": False, "[]": []}[text]
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return text[1:-1] if text[:1] in ("'", '"') else text


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read a vocabulary of Marian, `token: id` a line, tokens quoted where YAML asks for it."""
    vocabulary = dict[str, int]()
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        found = re.fullmatch(r"(.+): *(\d{1,9})\s*", line)
        if found is None and line.strip():
            raise InputError(f"{path}, line {number}: {line[:40]!r} is not TOKEN: ID.")
        if found is not None:
            vocabulary[_token(found[1])] = int(found[2])
    return vocabulary


def _token(text: str) -> str:
    """Undo the quotes of YAML: '' in single ones, escapes in double ones, which JSON shares."""
    if text[:1] == "'" == text[-1:]:
        return text[1:-1].replace("''", "'")
    if text[:1] != '"' or text[-1:] != '"':
        return text
    escapes = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "0": "\0", "_": "\xa0", "N": "\x85"}

    def one(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        return chr(int(code, 16)) if code else escapes.get(found[4], found[4])

    pattern = r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U(000[0-9A-Fa-f]{5})|(.))"
    return re.sub(pattern, one, text[1:-1])
