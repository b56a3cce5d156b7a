"""Variants of Llama: Phi-3 (Abdin et al., 2024).

Phi-3, Phi-3.5 and Phi-4 have one matrix for queries, keys and values and one for gate and value.
Longer contexts divide each frequency by a factor of its own (LongRoPE), and Phi-4-mini rotates
three quarters of each head.
"""

from dataclasses import replace

from dragoman.folder.foreign.llama import LLAMA, MISTRAL, rotary_of
from dragoman.folder.foreign.reading import HF
from dragoman.folder.foreign.weights import fused, halves
from dragoman.nn import Rotary

ATTENTION, GATED = fused("layers.*.self_attn.qkv_proj"), halves("layers.*.mlp.gate_up_proj")


def _partly_rotary(hf: HF) -> Rotary:
    rope = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    return rotary_of(hf, rope, partly=True)


PHI3 = replace(
    MISTRAL,
    classes=("Phi3ForCausalLM",),
    defaults={
        **MISTRAL.defaults,
        "vocab_size": 32_064,
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": None,
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "sliding_window": None,
        "pad_token_id": 32_000,
        "eos_token_id": 32_000,
    },
    only={"attention_bias": False, "mlp_bias": False},
    fields={**LLAMA.fields, "positions": _partly_rotary},
    modules={
        **LLAMA.modules,
        "decoder.layers.*.self_attn.q_proj": ATTENTION[0],
        "decoder.layers.*.self_attn.kv_proj": ATTENTION[1],
        "decoder.layers.*.ffn.up": GATED[0],
        "decoder.layers.*.ffn.value": GATED[1],
    },
    written=None,
)
