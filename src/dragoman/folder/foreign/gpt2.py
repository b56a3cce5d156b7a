"""GPT-2 (Radford et al., 2019): decoder-only, learned positions, pre-norm."""

from dragoman.folder.foreign.reading import (
    EVERY_DECODER,
    HF,
    Family,
    activation,
    activation_name,
    required,
    token_ids,
)
from dragoman.folder.foreign.weights import Table, transposed, under
from dragoman.folder.tokenizers.files import TokenizerRules
from dragoman.models.config import DecoderOnlyConfig
from dragoman.nn import Learned

LAYER: Table = {  # c_attn contains W_Q, W_K and W_V side by side
    "self_attn.q_proj": transposed("attn.c_attn", start=0, stop=1, parts=3),
    "self_attn.kv_proj": transposed("attn.c_attn", start=1, stop=3, parts=3),
    "self_attn.out_proj": transposed("attn.c_proj"),
    "self_attn_residual.norm": "ln_1",
    "ffn.up": transposed("mlp.c_fc"),
    "ffn.down": transposed("mlp.c_proj"),
    "ffn_residual.norm": "ln_2",
}
GPT2 = Family(
    kind=DecoderOnlyConfig,
    defaults={
        "n_inner": None,
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
        "resid_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    },
    only={**EVERY_DECODER, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    classes=("GPT2LMHeadModel", "GPT2Model"),
    fields={
        "vocab_size": "vocab_size",
        "d_model": "n_embd",
        "num_heads": "n_head",
        "d_ff": lambda hf: hf["n_inner"] or 4 * hf["n_embd"],
        "num_layers": "n_layer",
        "activation": activation("activation_function"),
        "attention_scale": lambda hf: None if hf["scale_attn_weights"] else 1.0,
        "positions": lambda hf: Learned(max_length=required(hf, "n_positions")),
        "norm_eps": "layer_norm_epsilon",
        "tie_embeddings": "tie_word_embeddings",
        "dropout": "resid_pdrop",
        "attention_dropout": "attn_pdrop",
        **token_ids(),
    },
    settings={"norm_position": "pre"},
    modules={
        "embedding": "wte",
        "embedding.positions": "wpe",
        **under("decoder.layers.*", "h.*", LAYER),
        "decoder.final_norm": "ln_f",
        "output": "lm_head",
    },
    prefix="transformer.",
    ignored=("h.*.attn.bias", "h.*.attn.masked_bias"),  # causal masks in old files
    tokenizers={"gpt2": TokenizerRules(framed=False)},
)


def written(ours: DecoderOnlyConfig) -> tuple[Family, HF]:
    """Return the class for one of our other decoders, and keys of its config."""
    return GPT2, {
        "n_inner": ours.d_ff,
        "n_positions": ours.positions.num_positions or 1,
        "activation_function": activation_name(ours.activation),
        "scale_attn_weights": ours.attention_scale != 1.0,
    }
