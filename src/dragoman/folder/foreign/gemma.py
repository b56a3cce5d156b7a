"""Gemma (Mesnard et al., 2024), Gemma 2 (Riviere et al., 2024) and Gemma 3 (Kamath et al., 2025).

Llama with scaled embeddings, GEGLU and norms whose weights are stored minus 1. Gemma 2 has a second
norm after each sublayer, soft caps on scores and logits, a scale of the scores that does not depend
on the width of a head, and a window in every second layer. Gemma 3 has norms of queries and keys
instead of the cap on the scores, a window in five of six layers, and unscaled rotary positions of
another base in these. From its models that read images too, only the part for text is read.
"""

from collections.abc import Mapping
from dataclasses import replace

from dragoman.folder.foreign.llama import LLAMA, patterns
from dragoman.folder.foreign.reading import HF, activation, only
from dragoman.folder.foreign.rotary import two_bases
from dragoman.folder.foreign.weights import Table, plus_one, under
from dragoman.nn import AttentionPattern, Causal
from dragoman.nn.feedforward import Activation


def _activation(hf: HF) -> Activation:
    """Read the activation; `gelu` in early files means the tanh approximation."""
    if hf["hidden_act"] == "gelu":
        return "gelu_tanh"
    read: Activation = activation("hidden_act")(hf)
    return read


def _causal(hf: HF) -> tuple[AttentionPattern, ...]:
    """Return causal attention in all layers; any other is rejected."""
    if hf["use_bidirectional_attention"] is not None:
        only(hf, "use_bidirectional_attention", value=False)
    return (Causal(),)


def _windows(hf: HF, period: int) -> tuple[AttentionPattern, ...]:
    """Return windows in all layers but each `period`-th, unless the config lists the layers."""
    _causal(hf)
    return patterns(hf, lambda layer: (layer + 1) % period != 0)


def _text_part(hf: HF) -> HF:
    """Return the config of the text part of a model that reads images too."""
    inner = hf.get("text_config")
    if not isinstance(inner, Mapping):
        return hf
    outer = {
        key: value
        for key, value in hf.items()
        if value is not None and (inner.get(key) is None or key in SHARED)
    }
    outer.pop("text_config", None)
    return {**inner, "tie_word_embeddings": True, **outer}


SHARED = (
    *("model_type", "architectures", "tie_word_embeddings"),
    *("bos_token_id", "eos_token_id", "pad_token_id"),
)
"""The keys that count as they are outside of the part for text."""
NORMS: Table = {
    "self_attn_residual.norm": plus_one("input_layernorm"),
    "ffn_residual.norm": plus_one("post_attention_layernorm"),
}
TWICE: Table = {
    "self_attn_residual.out_norm": plus_one("post_attention_layernorm"),
    "ffn_residual.norm": plus_one("pre_feedforward_layernorm"),
    "ffn_residual.out_norm": plus_one("post_feedforward_layernorm"),
    "self_attn.q_norm": plus_one("self_attn.q_norm"),
    "self_attn.k_norm": plus_one("self_attn.k_norm"),
}
GEMMA = LLAMA.variant(
    classes=("GemmaForCausalLM",),
    defaults={
        "num_key_value_heads": 16,
        "head_dim": 256,
        "hidden_act": "gelu_pytorch_tanh",
        "tie_word_embeddings": True,
        "use_bidirectional_attention": None,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 1,
    },
    fields={"activation": _activation, "patterns": _causal},
    settings={"ffn_bias": False, "scale_embedding": True},
    modules={
        **under("decoder.layers.*", "layers.*", NORMS),
        "decoder.final_norm": plus_one("norm"),
    },
)
GEMMA2 = GEMMA.variant(
    classes=("Gemma2ForCausalLM",),
    defaults={
        "num_key_value_heads": 4,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    fields={
        "activation": activation("hidden_activation"),
        "attention_scale": lambda hf: hf["query_pre_attn_scalar"] ** -0.5,
        "patterns": lambda hf: _windows(hf, 2),
        "score_soft_cap": lambda hf: hf["attn_logit_softcapping"],
        "logit_soft_cap": lambda hf: hf["final_logit_softcapping"],
    },
    settings={"norm_position": "sandwich"},
    modules=under("decoder.layers.*", "layers.*", TWICE),
)
GEMMA3 = GEMMA2.variant(
    classes=("Gemma3ForCausalLM",),
    defaults={
        # sizes that a part for text may leave out
        "vocab_size": 262_208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "sliding_window_pattern": 6,
        "final_logit_softcapping": None,
        "max_position_embeddings": 131_072,
    },
    fields={
        "patterns": lambda hf: _windows(hf, hf["sliding_window_pattern"]),
        "positions": lambda hf: two_bases(
            hf, hf.get("rope_theta") or 1e6, hf.get("rope_local_base_freq") or 1e4
        ),
    },
    settings={"qk_norm": True, "score_soft_cap": None},
)
GEMMA3_WITH_IMAGES = replace(
    GEMMA3,
    text=_text_part,
    outer="model.language_model.",
    renamed={
        "language_model.model.": "model.",
        "model.language_model.": "model.",
        "language_model.lm_head.": "lm_head.",
    },
    beside=("vision_tower.", "multi_modal_projector."),
).variant(
    classes=(*GEMMA3.classes, "Gemma3ForConditionalGeneration"),
    only={"final_logit_softcapping": None},  # which this class does not read
)
