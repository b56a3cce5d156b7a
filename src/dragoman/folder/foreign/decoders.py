"""Variants of Llama: Phi-3 (Abdin et al., 2024), SmolLM3 (Bakouch et al., 2025), OLMo 2 (Walsh et
al., 2025), OLMo 3 and Granite.

Phi-3, Phi-3.5 and Phi-4 have one matrix for queries, keys and values and one for gate and value.
Longer contexts divide each frequency by a factor of its own (LongRoPE), and Phi-4-mini rotates
three quarters of each head. SmolLM3 does not rotate queries and keys in every fourth layer.
OLMo 2 normalizes what sublayers return instead of what they read, and queries and keys as a whole.
OLMo 3 adds a window in three of four layers, whose positions are not scaled.
Granite multiplies the embedding, the residual branches, the scores and the logits. Our residual
stream is its stream divided by the factor on the branches, which RMSNorm does not see but in its
epsilon.
"""

from dataclasses import replace

from dragoman.folder.foreign.llama import LLAMA, MISTRAL, MOST_LAYERS, patterns
from dragoman.folder.foreign.reading import HF, only
from dragoman.folder.foreign.rotary import rope_of, rope_type, rotary, rotary_of, two_bases
from dragoman.folder.foreign.weights import fused, halves
from dragoman.nn import AttentionPattern, Rotary

ATTENTION, GATED = fused("layers.*.self_attn.qkv_proj"), halves("layers.*.mlp.gate_up_proj")


def _partly_rotary(hf: HF) -> Rotary:
    rope = rope_of(hf)
    if rope_type(rope) in ("su", "yarn"):  # the names in early files
        rope = {**rope, "rope_type": "longrope"}
    return rotary_of(hf, rope, partly=True)


def _fused_width(hf: HF) -> None:
    """Reject heads that are not together as wide as the model, which `fused` takes them to be."""
    if hf["head_dim"] is not None:
        only(hf, "head_dim", hf["hidden_size"] // hf["num_attention_heads"])


PHI3 = MISTRAL.variant(
    classes=("Phi3ForCausalLM",),
    defaults={
        "num_key_value_heads": None,
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "sliding_window": None,
        "pad_token_id": 32_000,
        "eos_token_id": 32_000,
    },
    fields={"positions": _partly_rotary, "head_dim": _fused_width},
    modules={
        "decoder.layers.*.self_attn.q_proj": ATTENTION[0],
        "decoder.layers.*.self_attn.kv_proj": ATTENTION[1],
        "decoder.layers.*.ffn.up": GATED[0],
        "decoder.layers.*.ffn.value": GATED[1],
    },
)


def _unrotated(hf: HF) -> tuple[int, ...]:
    """Return the layers without a rotation, for which `no_rope_layers` has a 0."""
    layers = range(min(hf["num_hidden_layers"], MOST_LAYERS))
    rotated = hf["no_rope_layers"] or [(at + 1) % hf["no_rope_layer_interval"] for at in layers]
    return tuple(layer for layer in layers if not rotated[layer])


def _windows(hf: HF) -> tuple[AttentionPattern, ...]:
    """Return windows in layers without a rotation, unless the config lists the layers."""
    slides = hf["use_sliding_window"] and hf["sliding_window"] is not None
    return patterns(hf, lambda layer: slides and layer in _unrotated(hf))


SMOLLM3 = LLAMA.variant(
    classes=("SmolLM3ForCausalLM",),
    defaults={
        "num_key_value_heads": 4,
        "max_position_embeddings": 32_768,
        "rope_theta": 2e6,
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "use_sliding_window": False,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "bos_token_id": 128_000,
        "eos_token_id": 128_001,
        "pad_token_id": 128_004,
    },
    fields={
        "positions": lambda hf: replace(rotary(hf), unrotated=_unrotated(hf)),
        "patterns": _windows,
    },
)
OLMO2 = LLAMA.variant(
    classes=("Olmo2ForCausalLM",),
    defaults={
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "pad_token_id": 1,
        "bos_token_id": None,
        "eos_token_id": 50_279,
    },
    settings={"ffn_bias": False, "norm_position": "branch", "qk_norm": "whole"},
    modules={
        "decoder.layers.*.self_attn_residual.out_norm": "layers.*.post_attention_layernorm",
        "decoder.layers.*.ffn_residual.out_norm": "layers.*.post_feedforward_layernorm",
    },
)
OLMO3 = OLMO2.variant(
    classes=("Olmo3ForCausalLM",),
    defaults={"sliding_window": 4096},
    fields={
        "positions": lambda hf: two_bases(hf, hf.get("rope_theta") or 5e5, 5e5),
        "patterns": lambda hf: patterns(hf, lambda layer: (layer + 1) % 4 != 0),
    },
)
GRANITE = LLAMA.variant(
    classes=("GraniteForCausalLM",),
    defaults={
        "max_position_embeddings": 2048,
        "embedding_multiplier": 1.0,
        "residual_multiplier": 1.0,
        "attention_multiplier": 1.0,
        "logits_scaling": 1.0,
    },
    fields={
        "embedding_scale": lambda hf: hf["embedding_multiplier"] / hf["residual_multiplier"],
        "norm_eps": lambda hf: hf["rms_norm_eps"] / hf["residual_multiplier"] ** 2,
        "attention_scale": lambda hf: float(hf["attention_multiplier"]),
        "logit_scale": lambda hf: 1 / hf["logits_scaling"],
    },
)
