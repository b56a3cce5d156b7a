"""The encoder-decoders with BART's parameter names: BART, mBART, Marian, M2M100, NLLB and FSMT.

BART (Lewis et al., 2020) and mBART (Liu et al., 2020): learned positions, normalized embeddings.
Marian (Junczys-Dowmunt et al., 2018; OPUS-MT): the paper's model, sines before cosines.
Pegasus (Zhang et al., 2020): Marian with pre-norm, the export target of our pre-norm translators.
M2M100 (Fan et al., 2021) and NLLB (Costa-jussà et al., 2022): pre-norm, fairseq's positions. These
count non-padding tokens from pad_id + 1. Since padding follows the text here, they differ from
positions counted from 0 only in the first position.
FSMT (Ng et al., 2019): fairseq's translators of WMT19, the paper's model with these positions.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend
from torch import Tensor

from dragoman.errors import InputError
from dragoman.folder.foreign.reading import (
    HF,
    Family,
    Weights,
    activation,
    activation_name,
    equal,
    required,
    token_ids,
    unsupported,
)
from dragoman.folder.foreign.weights import Table, below, flat, instead, joined, padded, under
from dragoman.folder.tokenizers import built
from dragoman.folder.tokenizers.files import MASK, Pieces, TokenizerFolder, TokenizerRules
from dragoman.folder.tokenizers.moses import FSMT_FILES, read_fsmt
from dragoman.folder.tokenizers.pieces import MARIAN_FILES, read_marian
from dragoman.folder.tokenizers.vocabularies import marian_files
from dragoman.models.config import EncoderDecoderConfig, Tying
from dragoman.nn import Learned, Sinusoidal
from dragoman.nn.position.sinusoidal import sinusoidal_table

ENCODER_LAYER: Table = {
    "self_attn.q_proj": "self_attn.q_proj",
    "self_attn.kv_proj": joined("self_attn.k_proj", "self_attn.v_proj"),
    "self_attn.out_proj": "self_attn.out_proj",
    "self_attn_residual.norm": "self_attn_layer_norm",
    "ffn.up": "fc1",
    "ffn.down": "fc2",
    "ffn_residual.norm": "final_layer_norm",
}
DECODER_LAYER: Table = {
    **ENCODER_LAYER,
    "cross_attn.q_proj": "encoder_attn.q_proj",
    "cross_attn.kv_proj": joined("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attn.out_proj": "encoder_attn.out_proj",
    "cross_attn_residual.norm": "encoder_attn_layer_norm",
}
OLD: HF = {
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": True,
    "static_position_embeddings": False,
}
"""Keys in files of 2020, whose classes have had one value since."""
STACKS = ("encoder", "decoder")
ROUNDED = 3e-3  # sines in bf16 are off by 2e-3
OFFSET = 2  # rows before position 0 in fairseq's table of positions


def _tying(hf: HF) -> Tying:
    """Return how matrices are tied: one for all, one for target and output, or none."""
    shared, tied = hf["share_encoder_decoder_embeddings"], hf["tie_word_embeddings"]
    if shared and not tied:
        raise InputError(
            unsupported("tie_word_embeddings", tied, "share_encoder_decoder_embeddings is true")
        )
    if shared:
        return "all"
    return "target-output" if tied else "none"


def _with_languages(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    names = [*built.languages_of(folder, pieces), "<mask>"]
    return built.by_scores([*built.fairseq(pieces), *((name, 0.0) for name in names)], unk=3)


def _mbart(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    return built.cut_at_words(_with_languages(folder, pieces))


def _mbart50(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    return built.cut_at_spaces(_with_languages(folder, pieces), pieces.charsmap, always=True)


def _nllb(_: TokenizerFolder, pieces: Pieces) -> Backend:
    names = dict.fromkeys(name for name, _ in built.fairseq(pieces))
    return built.cut_at_spaces(built.by_merges(names, unk="<unk>"), pieces.charsmap, always=False)


NLLB = TokenizerRules(
    build=_nllb, mask=AddedToken("<mask>", lstrip=True, normalized=True), lang="eng_Latn"
)

NAMES = Family(
    kind=EncoderDecoderConfig,
    defaults={
        "activation_function": "gelu",
        "scale_embedding": False,
        "tie_word_embeddings": True,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "pad_token_id": 1,
        "decoder_start_token_id": 2,
        "eos_token_id": 2,
    },
    classes=("BartForConditionalGeneration",),
    fields={
        "src_vocab_size": "vocab_size",
        "tgt_vocab_size": "vocab_size",
        "d_model": "d_model",
        "num_heads": equal("encoder_attention_heads", "decoder_attention_heads"),
        "d_ff": equal("encoder_ffn_dim", "decoder_ffn_dim"),
        "num_encoder_layers": "encoder_layers",
        "num_decoder_layers": "decoder_layers",
        "activation": activation("activation_function"),
        "positions": lambda hf: Learned(max_length=required(hf, "max_position_embeddings")),
        "scale_embedding": "scale_embedding",
        "tie_embeddings": lambda hf: "all" if hf["tie_word_embeddings"] else "none",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "ffn_dropout": "activation_dropout",
        **token_ids(bos="decoder_start_token_id"),
    },
    settings={"embedding_norm": True, "output_bias": True},
    modules={
        "src_embedding": "encoder.embed_tokens",
        "tgt_embedding": "decoder.embed_tokens",
        "src_embedding.positions": below("encoder.embed_positions", OFFSET),
        "tgt_embedding.positions": below("decoder.embed_positions", OFFSET),
        "src_embedding.norm": "encoder.layernorm_embedding",
        "tgt_embedding.norm": "decoder.layernorm_embedding",
        **under("encoder.layers.*", "encoder.layers.*", ENCODER_LAYER),
        **under("decoder.layers.*", "decoder.layers.*", DECODER_LAYER),
        "encoder.final_norm": "encoder.layer_norm",
        "decoder.final_norm": "decoder.layer_norm",
        "output": "lm_head",
        "output.bias": flat("final_logits_bias"),
    },
    prefix="model.",
    shared="shared",
    ignored=(
        "shared.weight",  # unused if embeddings are not tied
        "encoder.version",
        "decoder.version",
        "encoder.embed_positions.weights",  # sines and cosines, in old files
        "decoder.embed_positions.weights",
    ),
)
BART = replace(NAMES, only=OLD, whole=True)
MBART = replace(
    NAMES,
    tokenizers={
        "mbart": TokenizerRules(build=_mbart, mask=MASK, lang="en_XX", lang_last=True),
        "mbart50": TokenizerRules(build=_mbart50, mask=MASK, lang="en_XX"),
    },
).variant(
    classes=("MBartForConditionalGeneration",),
    defaults={"decoder_start_token_id": None},
    only={**OLD, "normalize_before": True, "add_final_layer_norm": True},
    settings={"norm_position": "pre"},
)
MARIAN = replace(
    NAMES,
    ignored=(  # sines and cosines
        "encoder.embed_positions.weight",
        "decoder.embed_positions.weight",
    ),
    own_tokenizers=read_marian,
    tokenizer_files=MARIAN_FILES,
    vocabularies=marian_files,
).variant(
    classes=("MarianMTModel",),
    defaults={
        "decoder_vocab_size": None,
        "share_encoder_decoder_embeddings": True,
        "decoder_start_token_id": 58100,
        "pad_token_id": 58100,
        "eos_token_id": 0,
    },
    only={**OLD, "normalize_embedding": False, "static_position_embeddings": True},
    fields={
        "tgt_vocab_size": lambda hf: hf["decoder_vocab_size"] or hf["vocab_size"],
        "tie_embeddings": _tying,
        "positions": lambda _: Sinusoidal(layout="halves"),
    },
    settings={"embedding_norm": False},
)
PEGASUS = MARIAN.variant(
    classes=("PegasusForConditionalGeneration",),
    fields={"tgt_vocab_size": "vocab_size"},
    settings={"norm_position": "pre"},
)
"""Written, but not read: the published models have other tokenizers and positions."""
M2M100 = replace(
    NAMES,
    tokenizers={
        "nllb": NLLB,
        "m2m100": NLLB,
        "small100": TokenizerRules(lang_in_source=True),  # Mohammadshahi et al., 2022
    },
).variant(
    classes=("M2M100ForConditionalGeneration",),
    defaults={"activation_function": "relu", "scale_embedding": True, "attention_dropout": 0.1},
    fields={
        "positions": lambda hf: Sinusoidal(
            layout="halves", exponent="d/2-1", first=required(hf, "pad_token_id") + 1
        ),
    },
    settings={"embedding_norm": False, "output_bias": False, "norm_position": "pre"},
)


def _checked(hf: HF, state: Weights) -> HF:
    """Return the config. Raises InputError for what the table of weights does not check.

    This is a stored table of positions other than sinusoids, which their class loads and ours
    computes, and a feed-forward network of another width than in the config, which would be padded.
    """
    for name, tensor in state.items():
        stored = name.removeprefix("model.") in MARIAN.ignored
        if stored and not _sinusoidal(tensor, hf.get("pad_token_id", 1)):
            raise InputError(
                f"{name} holds learned positions, but FSMT is read with sinusoids only; take a "
                "model that was trained with them"
            )
        if name.endswith("fc1.weight"):
            stack = STACKS["decoder." in name]
            shape = (hf.get(f"{stack}_ffn_dim"), hf.get("d_model"))
            if tensor.shape != shape:
                raise InputError(
                    f"{name} has the shape {tuple(tensor.shape)}, but the config makes it {shape}"
                )
    return hf


def _sinusoidal(table: Tensor, pad_id: int) -> bool:
    """Whether a table has fairseq's sinusoids, except in the row of padding, which is unused."""
    if table.dim() != 2 or table.shape[1] % 2 or not table.is_floating_point():
        return False
    off = table - sinusoidal_table(*table.shape, layout="halves", exponent="d/2-1")
    off[pad_id : pad_id + 1] = 0.0
    return bool((off.abs() < ROUNDED).all())


FSMT = replace(
    M2M100,
    shared=None,
    ignored=MARIAN.ignored,
    stored=_checked,
    tokenizers={},
    own_tokenizers=read_fsmt,
    tokenizer_files=FSMT_FILES,
).variant(
    classes=("FSMTForConditionalGeneration",),
    defaults={"attention_dropout": 0.0, "tie_word_embeddings": False},
    fields={
        "src_vocab_size": "src_vocab_size",
        "tgt_vocab_size": "tgt_vocab_size",
        # the narrower networks are padded with units that are always 0
        "d_ff": lambda hf: max(required(hf, f"{stack}_ffn_dim") for stack in STACKS),
    },
    settings={"norm_position": "post"},
    modules={
        **{f"{stack}.layers.*.ffn.up": padded(f"{stack}.layers.*.fc1", 0) for stack in STACKS},
        **{f"{stack}.layers.*.ffn.down": padded(f"{stack}.layers.*.fc2", 1) for stack in STACKS},
        "output": instead("decoder.output_projection", "decoder.embed_tokens"),  # older: one matrix
    },
)
WRITES_THE_STREAM = {"out_proj", "down", "norm", "final_norm"}
"""Modules that write to the residual stream; all others read from it."""


def arranged(
    ours: EncoderDecoderConfig,
) -> tuple[EncoderDecoderConfig, Callable[[Weights], Weights]]:
    """Permute the channels of the residual stream into the layout of Marian's positions.

    Ours alternate sines and cosines; Marian has all sines, then all cosines. Permuting the channels
    in the same way in every module that writes to or reads from the stream changes no output: norms
    average over all channels, and the channels inside heads and feed-forward networks keep their
    order.
    """
    if ours.positions != Sinusoidal():
        return ours, dict
    order = torch.cat([torch.arange(0, ours.d_model, 2), torch.arange(1, ours.d_model, 2)])

    def moved(name: str, tensor: Tensor) -> Tensor:
        module, leaf = name.split(".")[-2:]
        if module in WRITES_THE_STREAM:
            return tensor[order]
        return tensor[:, order] if leaf == "weight" else tensor

    return replace(ours, positions=Sinusoidal(layout="halves")), lambda weights: {
        name: moved(name, tensor) for name, tensor in weights.items()
    }


def written(ours: EncoderDecoderConfig, length: int) -> tuple[Family, HF]:
    """Return the class for one of our translators, and keys of its config."""
    all_tied, tied_output = (ours.tie_embeddings == tying for tying in ("all", "target-output"))
    pre_norm = ours.norm_position == "pre"
    return PEGASUS if pre_norm else MARIAN, {
        "decoder_vocab_size": ours.tgt_vocab_size,  # only Marian
        "encoder_attention_heads": ours.num_heads,
        "decoder_attention_heads": ours.num_heads,
        "encoder_ffn_dim": ours.d_ff,
        "decoder_ffn_dim": ours.d_ff,
        "activation_function": activation_name(ours.activation),
        "encoder_layerdrop": ours.layer_drop,
        "decoder_layerdrop": ours.layer_drop,
        "max_position_embeddings": length,
        "share_encoder_decoder_embeddings": all_tied,
        "tie_word_embeddings": all_tied or (tied_output and ours.norm_position == "post"),
        "decoder_start_token_id": ours.bos_id,
        "forced_eos_token_id": None,
    }
