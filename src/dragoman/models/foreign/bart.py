"""BART (Lewis et al., 2020) and mBART (Liu et al., 2020): learned positions, normed embeddings.

Marian and M2M100 have the same parts under the same names, with other positions and norms.
"""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from dragoman.models.config import EncoderDecoderConfig
from dragoman.models.foreign.reading import HF, activation, equal, only, required, token_id
from dragoman.models.foreign.weights import (
    Below,
    Flat,
    Table,
    convert,
    embeddings,
    joined,
    under,
)
from dragoman.nn import Learned

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
DEFAULTS: HF = {
    "activation_function": "gelu",
    "scale_embedding": False,
    "tie_word_embeddings": True,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "pad_token_id": 1,
    "eos_token_id": 2,
}
IGNORED = (
    "shared.weight",  # where embeddings are not tied nobody looks it up
    "encoder.version",
    "decoder.version",
)


def config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of a BART or an mBART."""
    multilingual = hf["model_type"] == "mbart"
    only(hf, "normalize_before", multilingual)
    only(hf, "add_final_layer_norm", multilingual)
    only(hf, "normalize_embedding", value=True)
    only(hf, "static_position_embeddings", value=False)
    return replace(
        skeleton({**DEFAULTS, "decoder_start_token_id": None if multilingual else 2, **hf}),
        positions=Learned(max_length=required(hf, "max_position_embeddings")),
        norm_position="pre" if multilingual else "post",
        embedding_norm=True,
        output_bias=True,
    )


def weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**embeddings(config), **INPUTS, **LAYERS, **FINAL_NORMS, **LOGITS_BIAS}
    return convert(table, state, config, prefix="model.", ignored=IGNORED)


def skeleton(hf: HF) -> EncoderDecoderConfig:
    """Read the keys that BART and its kin have in common."""
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
