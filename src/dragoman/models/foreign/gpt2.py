"""GPT-2 (Radford et al., 2019): decoder-only, learned positions, pre-norm."""

from collections.abc import Mapping

from torch import Tensor

from dragoman.models.config import DecoderOnlyConfig
from dragoman.models.foreign.reading import HF, activation, only, required, token_id
from dragoman.models.foreign.weights import Table, Transposed, convert, tied, under
from dragoman.nn import Learned

LAYER: Table = {  # c_attn holds W_Q, W_K and W_V side by side
    "self_attn.q_proj": Transposed(("attn.c_attn",), start=0, stop=1, parts=3),
    "self_attn.kv_proj": Transposed(("attn.c_attn",), start=1, stop=3, parts=3),
    "self_attn.out_proj": Transposed(("attn.c_proj",)),
    "self_attn_residual.norm": "ln_1",
    "ffn.up": Transposed(("mlp.c_fc",)),
    "ffn.down": Transposed(("mlp.c_proj",)),
    "ffn_residual.norm": "ln_2",
}
STACK: Table = {
    "embedding.positions": "wpe",
    **under("decoder.layers.*", "h.*", LAYER),
    "decoder.final_norm": "ln_f",
}
TIED: Table = {"embedding": tied("wte", "lm_head")}
UNTIED: Table = {"embedding": "wte", "output": "lm_head"}
DEFAULTS: HF = {
    "n_inner": None,
    "activation_function": "gelu_new",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
    "resid_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "eos_token_id": 50256,
}
IGNORED = ("h.*.attn.bias", "h.*.attn.masked_bias")  # causal masks of old files


def config(hf: HF) -> DecoderOnlyConfig:
    """Return our config of a GPT-2."""
    hf = {**DEFAULTS, **hf}
    only(hf, "scale_attn_by_inverse_layer_idx", value=False)
    only(hf, "add_cross_attention", value=False)
    d_model = required(hf, "n_embd")
    return DecoderOnlyConfig(
        vocab_size=required(hf, "vocab_size"),
        d_model=d_model,
        num_heads=required(hf, "n_head"),
        d_ff=hf["n_inner"] or 4 * d_model,
        num_layers=required(hf, "n_layer"),
        activation=activation(hf["activation_function"], "activation_function"),
        attention_scale=None if hf["scale_attn_weights"] else 1.0,
        positions=Learned(max_length=required(hf, "n_positions")),
        norm_eps=hf["layer_norm_epsilon"],
        norm_position="pre",
        tie_embeddings=hf["tie_word_embeddings"],
        dropout=hf["resid_pdrop"],
        attention_dropout=hf["attn_pdrop"],
        pad_id=token_id(hf, "pad_token_id"),
        bos_id=token_id(hf, "bos_token_id"),
        eos_id=token_id(hf, "eos_token_id"),
    )


def weights(state: Mapping[str, Tensor], config: DecoderOnlyConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**(TIED if config.tie_embeddings else UNTIED), **STACK}
    return convert(table, state, config, prefix="transformer.", ignored=IGNORED)
