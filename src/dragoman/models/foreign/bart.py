"""The encoder-decoders with BART's names: BART, mBART, Marian, M2M100 and NLLB.

BART (Lewis et al., 2020) and mBART (Liu et al., 2020): learned positions, normed embeddings.
Marian (Junczys-Dowmunt et al., 2018; OPUS-MT): the paper's model, sines before cosines.
M2M100 (Fan et al., 2021) and NLLB (Costa-jussà et al., 2022): pre-norm, fairseq's positions.
"""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from dragoman.errors import InputError
from dragoman.models.config import EncoderDecoderConfig, Tying
from dragoman.models.foreign.reading import (
    HF,
    activation,
    equal,
    only,
    required,
    token_id,
    unsupported,
)
from dragoman.models.foreign.weights import Below, Flat, Table, convert, embeddings, joined, under
from dragoman.nn import Learned, Sinusoidal

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
LAYERS: Table = {
    **under("encoder.layers.*", "encoder.layers.*", ENCODER_LAYER),
    **under("decoder.layers.*", "decoder.layers.*", DECODER_LAYER),
}
FINAL_NORMS: Table = {
    "encoder.final_norm": "encoder.layer_norm",
    "decoder.final_norm": "decoder.layer_norm",
}
LOGITS_BIAS: Table = {"output.bias": Flat(("final_logits_bias",))}
OFFSET = 2  # rows of the positions' table before that of position 0, as fairseq counts
INPUTS: Table = {
    "src_embedding.positions": Below(("encoder.embed_positions",), OFFSET),
    "tgt_embedding.positions": Below(("decoder.embed_positions",), OFFSET),
    "src_embedding.norm": "encoder.layernorm_embedding",
    "tgt_embedding.norm": "decoder.layernorm_embedding",
}
BART: HF = {
    "activation_function": "gelu",
    "scale_embedding": False,
    "tie_word_embeddings": True,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "pad_token_id": 1,
    "eos_token_id": 2,
}
MARIAN: HF = {
    **BART,
    "decoder_vocab_size": None,
    "share_encoder_decoder_embeddings": True,
    "decoder_start_token_id": 58100,
    "pad_token_id": 58100,
    "eos_token_id": 0,
}
M2M100: HF = {
    **BART,
    "activation_function": "relu",
    "scale_embedding": True,
    "attention_dropout": 0.1,
    "decoder_start_token_id": 2,
}
IGNORED = (
    "shared.weight",  # where embeddings are not tied nobody looks it up
    "encoder.version",
    "decoder.version",
)
MARIAN_IGNORED = (
    "encoder.embed_positions.weight",  # sines and cosines
    "decoder.embed_positions.weight",
)
M2M100_IGNORED = (
    *IGNORED,
    "encoder.embed_positions.weights",  # sines and cosines, in old files
    "decoder.embed_positions.weights",
)


def bart_config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of a BART or an mBART."""
    multilingual = hf["model_type"] == "mbart"
    only(hf, "normalize_before", multilingual)
    only(hf, "add_final_layer_norm", multilingual)
    only(hf, "normalize_embedding", value=True)
    only(hf, "static_position_embeddings", value=False)
    return replace(
        _skeleton({**BART, "decoder_start_token_id": None if multilingual else 2, **hf}),
        positions=Learned(max_length=required(hf, "max_position_embeddings")),
        norm_position="pre" if multilingual else "post",
        embedding_norm=True,
        output_bias=True,
    )


def bart_weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**embeddings(config), **INPUTS, **LAYERS, **FINAL_NORMS, **LOGITS_BIAS}
    return convert(table, state, config, prefix="model.", ignored=IGNORED)


def marian_config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of a Marian model."""
    only(hf, "normalize_before", value=False)
    only(hf, "add_final_layer_norm", value=False)
    only(hf, "normalize_embedding", value=False)
    only(hf, "static_position_embeddings", value=True)
    hf = {**MARIAN, **hf}
    shared = _skeleton(hf)
    return replace(
        shared,
        tie_embeddings=_tying(hf),
        tgt_vocab_size=hf["decoder_vocab_size"] or shared.src_vocab_size,
        positions=Sinusoidal(layout="halves"),
        output_bias=True,
    )


def marian_weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**embeddings(config), **LAYERS, **LOGITS_BIAS}
    return convert(table, state, config, prefix="model.", ignored=MARIAN_IGNORED)


def m2m100_config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of an M2M100 or NLLB.

    Their positions count what is no padding from pad_id + 1 on; padding stands behind the text
    here, so that the first position is all that differs from counting from 0.
    """
    shared = _skeleton({**M2M100, **hf})
    return replace(
        shared,
        positions=Sinusoidal(layout="halves", exponent="d/2-1", first=shared.pad_id + 1),
        norm_position="pre",
    )


def m2m100_weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**embeddings(config), **LAYERS, **FINAL_NORMS}
    return convert(table, state, config, prefix="model.", ignored=M2M100_IGNORED)


def _skeleton(hf: HF) -> EncoderDecoderConfig:
    """Read the keys that all of them have in common."""
    vocab_size = required(hf, "vocab_size")
    return EncoderDecoderConfig(
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
        d_model=required(hf, "d_model"),
        num_heads=equal(hf, "encoder_attention_heads", "decoder_attention_heads"),
        d_ff=equal(hf, "encoder_ffn_dim", "decoder_ffn_dim"),
        num_encoder_layers=required(hf, "encoder_layers"),
        num_decoder_layers=required(hf, "decoder_layers"),
        activation=activation(hf["activation_function"], "activation_function"),
        scale_embedding=hf["scale_embedding"],
        tie_embeddings="all" if hf["tie_word_embeddings"] else "none",
        dropout=hf["dropout"],
        attention_dropout=hf["attention_dropout"],
        ffn_dropout=hf["activation_dropout"],
        pad_id=token_id(hf, "pad_token_id"),
        bos_id=token_id(hf, "decoder_start_token_id"),
        eos_id=token_id(hf, "eos_token_id"),
    )


def _tying(hf: HF) -> Tying:
    """One matrix for all; or one for the source, one for target and output; or three."""
    shared, tied = hf["share_encoder_decoder_embeddings"], hf["tie_word_embeddings"]
    if shared and not tied:
        raise InputError(
            unsupported("tie_word_embeddings", tied, "share_encoder_decoder_embeddings is true")
        )
    if shared:
        return "all"
    return "target-output" if tied else "none"
