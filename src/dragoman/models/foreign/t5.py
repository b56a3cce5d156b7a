"""T5 (Raffel et al., 2020), its version 1.1, FLAN-T5: relative positions, RMSNorm, no biases."""

from collections.abc import Mapping

from torch import Tensor

from dragoman.errors import InputError
from dragoman.models.config import EncoderDecoderConfig
from dragoman.models.foreign.reading import ACTIVATIONS, HF, required, token_id, unsupported
from dragoman.models.foreign.weights import Table, convert, embeddings, joined, under
from dragoman.nn import RelativeBias
from dragoman.nn.feedforward import Activation

SELF_ATTENTION: Table = {
    "self_attn.q_proj": "layer.0.SelfAttention.q",
    "self_attn.kv_proj": joined("layer.0.SelfAttention.k", "layer.0.SelfAttention.v"),
    "self_attn.out_proj": "layer.0.SelfAttention.o",
    "self_attn_residual.norm": "layer.0.layer_norm",
}
CROSS_ATTENTION: Table = {
    "cross_attn.q_proj": "layer.1.EncDecAttention.q",
    "cross_attn.kv_proj": joined("layer.1.EncDecAttention.k", "layer.1.EncDecAttention.v"),
    "cross_attn.out_proj": "layer.1.EncDecAttention.o",
    "cross_attn_residual.norm": "layer.1.layer_norm",
}
STACKS: Table = {  # the first layer's table of positions serves all layers
    "encoder.bias": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    "decoder.bias": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    "encoder.final_norm": "encoder.final_layer_norm",
    "decoder.final_norm": "decoder.final_layer_norm",
}
DEFAULTS: HF = {
    "num_decoder_layers": None,
    "feed_forward_proj": "relu",
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "layer_norm_epsilon": 1e-6,
    "tie_word_embeddings": True,
    "dropout_rate": 0.1,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
IGNORED = (  # a stray of old files: cross-attention has no positions
    "decoder.block.*.layer.*.EncDecAttention.relative_attention_bias.weight",
)


def config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of a T5.

    The first T5 ties its output to the embedding and multiplies by `d_model^-0.5`; version 1.1 has
    a matrix of its own. Files of Hugging Face say which by `tie_word_embeddings`, since version 5
    by `scale_decoder_outputs`.
    """
    hf = {**DEFAULTS, **hf}
    d_model = required(hf, "d_model")
    tied = hf.get("scale_decoder_outputs", hf["tie_word_embeddings"])
    act, gated = _feed_forward(hf["feed_forward_proj"])
    return EncoderDecoderConfig(
        src_vocab_size=required(hf, "vocab_size"),
        tgt_vocab_size=required(hf, "vocab_size"),
        d_model=d_model,
        num_heads=required(hf, "num_heads"),
        head_dim=required(hf, "d_kv"),
        d_ff=required(hf, "d_ff"),
        num_encoder_layers=required(hf, "num_layers"),
        num_decoder_layers=hf["num_decoder_layers"] or hf["num_layers"],
        activation=act,
        gated=gated,
        bias=False,
        attention_scale=1.0,
        positions=RelativeBias(
            num_buckets=hf["relative_attention_num_buckets"],
            max_distance=hf["relative_attention_max_distance"],
        ),
        norm="rms",
        norm_eps=hf["layer_norm_epsilon"],
        norm_position="pre",
        scale_embedding=False,
        tie_embeddings="all" if tied else "source-target",
        logit_scale=d_model**-0.5 if tied else 1.0,
        dropout=hf["dropout_rate"],
        attention_dropout=hf["dropout_rate"],
        ffn_dropout=hf["dropout_rate"],
        pad_id=token_id(hf, "pad_token_id"),
        bos_id=token_id(hf, "decoder_start_token_id"),
        eos_id=token_id(hf, "eos_token_id"),
    )


def weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    encoder: Table = {**SELF_ATTENTION, **_ffn("layer.1", config)}
    decoder: Table = {**SELF_ATTENTION, **CROSS_ATTENTION, **_ffn("layer.2", config)}
    table = {
        **embeddings(config),
        **under("encoder.layers.*", "encoder.block.*", encoder),
        **under("decoder.layers.*", "decoder.block.*", decoder),
        **STACKS,
    }
    return convert(table, state, config, ignored=IGNORED)


def _feed_forward(name: str) -> tuple[Activation, bool]:
    """Read `ACTIVATION` or `gated-ACTIVATION`; `gated-gelu` means the one with tanh."""
    plain = name.removeprefix("gated-")
    if plain not in ACTIVATIONS:
        known = f"known are {', '.join(ACTIVATIONS)}, alone or after gated-"
        raise InputError(unsupported("feed_forward_proj", name, known))
    return "gelu_tanh" if name == "gated-gelu" else ACTIVATIONS[plain], plain != name


def _ffn(place: str, config: EncoderDecoderConfig) -> Table:
    inner: Table = {"up": "wi_0", "value": "wi_1"} if config.gated else {"up": "wi"}
    return {
        **under("ffn", f"{place}.DenseReluDense", {**inner, "down": "wo"}),
        "ffn_residual.norm": f"{place}.layer_norm",
    }
