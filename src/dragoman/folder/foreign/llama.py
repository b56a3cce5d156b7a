"""Llama (Touvron et al., 2023), Mistral, Qwen (Yang et al., 2025), Hunyuan and StarCoder2.

Decoder-only: pre-norm with RMSNorm, rotary positions, SwiGLU, grouped-query heads. Mistral (Jiang
et al., 2023) attends to a window of tokens, Qwen2 and Qwen3 optionally in their later layers. Qwen2
has biases on queries, keys and values; Qwen3 normalizes the queries and keys of each head before
rotation, Hunyuan's dense models (Zheng et al., 2025) after it. StarCoder2 (Lozhkov et al., 2024) is
the plain Transformer with rotary positions, LayerNorm and biases, as built by our own decoder
recipes.
"""

from collections.abc import Callable
from dataclasses import replace

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, pre_tokenizers

from dragoman.errors import InputError
from dragoman.folder.foreign.reading import (
    EVERY_DECODER,
    HF,
    SIZES,
    Family,
    activation,
    activation_name,
    required,
    token_ids,
    unsupported,
)
from dragoman.folder.foreign.rotary import rope_of, rope_type, rotary, rotary_of
from dragoman.folder.foreign.weights import Table, joined, under
from dragoman.folder.tokenizers.built import by_merges
from dragoman.folder.tokenizers.files import Pieces, TokenizerFolder, TokenizerRules
from dragoman.models.config import DecoderOnlyConfig
from dragoman.nn import (
    AttentionPattern,
    Causal,
    Rotary,
    SlidingWindow,
)

MOST_LAYERS = 10_000

LAYER: Table = {
    "self_attn.q_proj": "self_attn.q_proj",
    "self_attn.kv_proj": joined("self_attn.k_proj", "self_attn.v_proj"),
    "self_attn.out_proj": "self_attn.o_proj",
    "self_attn.q_norm": "self_attn.q_norm",
    "self_attn.k_norm": "self_attn.k_norm",
    "self_attn_residual.norm": "input_layernorm",
    "ffn.up": "mlp.gate_proj",
    "ffn.value": "mlp.up_proj",
    "ffn.down": "mlp.down_proj",
    "ffn_residual.norm": "post_attention_layernorm",
}


def _everywhere(hf: HF) -> tuple[AttentionPattern, ...]:
    """Return the same window in all layers, if there is one: nothing else is asked."""
    size = hf["sliding_window"]
    return (Causal() if size is None else SlidingWindow(size=size),)


def _later(hf: HF) -> tuple[AttentionPattern, ...]:
    """Return windows in the later layers, unless the config lists the layers."""
    slides = hf["use_sliding_window"]  # always read: without it their class has no window
    if not slides and "sliding_attention" in (hf.get("layer_types") or ()):
        needed = "layer_types names sliding_attention, which needs it"
        raise InputError(unsupported("use_sliding_window", slides, needed))
    first = hf["max_window_layers"] if slides and hf["sliding_window"] is not None else MOST_LAYERS
    return patterns(hf, lambda layer: layer >= first)


def patterns(
    hf: HF,
    slides: Callable[[int], bool],
    whole: AttentionPattern | None = None,
    near: AttentionPattern | None = None,
) -> tuple[AttentionPattern, ...]:
    """Return the pattern of each layer, a single one if all are the same.

    If the config does not list them, `slides` tells whether a layer has a window. `whole` and
    `near` are by default causal.
    """
    names = "full_attention", "sliding_attention"
    layers = range(min(hf["num_hidden_layers"], MOST_LAYERS))
    kinds = hf.get("layer_types") or [names[bool(slides(layer))] for layer in layers]
    known: dict[str, AttentionPattern] = {"full_attention": whole or Causal()}
    if "sliding_attention" in kinds:
        window = near or SlidingWindow(size=required(hf, "sliding_window"))
        known["sliding_attention"] = window
    for kind in kinds:
        if kind not in known:
            raise InputError(unsupported("layer_types", kind, f"known are {' and '.join(names)}"))
    if len(kinds) != len(layers):
        needed = f"layer_types lists {len(kinds)}"
        raise InputError(unsupported("num_hidden_layers", len(layers), needed))
    found = tuple(known[kind] for kind in kinds)
    return found if len(set(found)) > 1 else found[:1]


def _rotary_before_norm(hf: HF) -> Rotary:
    """Return rotary positions before the norm; a fixed `alpha` stretches the base (NTK-aware)."""
    rope = rope_of(hf)
    if rope.get("alpha") and rope_type(rope) == "dynamic":
        width = hf["head_dim"] or hf["hidden_size"] // hf["num_attention_heads"]
        base = rope.get("rope_theta") or hf.get("rope_theta") or 10000.0
        rope = {"rope_theta": base * rope["alpha"] ** (width / (width - 2))}
    return replace(rotary_of(hf, rope), before_norm=True)


QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen's pattern of a word."""


def _tokenizer(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    backend = by_merges(piece for piece, _ in pieces.scores)
    space = folder.flag("add_prefix_space", default=True)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    # Hugging Face puts the mark before the first word only, as the model file does
    scheme = (
        ("first" if not folder.flag("legacy", default=False) else "always") if space else "never"
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme, split=False)
    strip = [decoders.Strip(" ", 1, 0)] if space else []
    backend.decoder = decoders.Sequence([*steps, *strip])
    return backend


LLAMA = Family(
    kind=DecoderOnlyConfig,
    defaults={
        "num_key_value_heads": None,
        "head_dim": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    only=EVERY_DECODER,
    classes=("LlamaForCausalLM",),
    fields={
        **SIZES,
        "num_kv_heads": lambda hf: hf["num_key_value_heads"],
        "head_dim": lambda hf: hf["head_dim"],
        "activation": activation("hidden_act"),
        "bias": "attention_bias",
        "ffn_bias": "mlp_bias",
        "positions": rotary,
        "patterns": lambda _: (Causal(),),  # whatever the config says of windows
        "norm_eps": "rms_norm_eps",
        "tie_embeddings": "tie_word_embeddings",
        "attention_dropout": "attention_dropout",
        **token_ids(),
    },
    settings={"gated": True, "norm": "rms", "norm_position": "pre", "dropout": 0.0},
    modules={
        "embedding": "embed_tokens",
        **under("decoder.layers.*", "layers.*", LAYER),
        "decoder.final_norm": "norm",
        "output": "lm_head",
    },
    prefix="model.",
    ignored=(  # frequencies in old files
        "rotary_emb.inv_freq",
        "layers.*.self_attn.rotary_emb.inv_freq",
    ),
    tokenizers=dict.fromkeys(("llama", "mistral"), TokenizerRules(build=_tokenizer)),
)
MISTRAL = LLAMA.variant(
    classes=("MistralForCausalLM",),
    defaults={"num_key_value_heads": 8, "sliding_window": 4096},
    fields={"patterns": _everywhere},
    settings={"bias": False, "ffn_bias": None},
)
STARCODER2 = MISTRAL.variant(
    classes=("Starcoder2ForCausalLM",),
    defaults={
        "num_key_value_heads": 2,
        "hidden_act": "gelu_pytorch_tanh",
        "norm_epsilon": 1e-5,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "residual_dropout": 0.0,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    },
    only={"use_bias": True},
    fields={"norm_eps": "norm_epsilon", "dropout": "residual_dropout"},
    settings={"gated": False, "norm": "layer", "bias": True},
    modules={
        "decoder.layers.*.ffn.up": "layers.*.mlp.c_fc",
        "decoder.layers.*.ffn.down": "layers.*.mlp.c_proj",
    },
)
QWEN2 = replace(
    LLAMA, tokenizers=dict.fromkeys(("qwen2", "qwen3"), TokenizerRules(words=QWEN))
).variant(
    classes=("Qwen2ForCausalLM",),
    defaults={
        "num_key_value_heads": 32,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    fields={"patterns": _later},
    settings={"bias": False, "ffn_bias": None, "qkv_bias": True},
)
QWEN3 = QWEN2.variant(
    classes=("Qwen3ForCausalLM",),
    defaults={"head_dim": 128},
    fields={"bias": "attention_bias"},
    settings={"ffn_bias": False, "qkv_bias": None, "qk_norm": True},
)
HUNYUAN = LLAMA.variant(
    classes=("HunYuanDenseV1ForCausalLM",),
    defaults={"rms_norm_eps": 1e-5, "pad_token_id": 0},
    only={"mlp_bias": False, "use_cla": False, "use_qk_norm": True},
    fields={"positions": _rotary_before_norm},
    settings={"qk_norm": True},
    modules={
        "decoder.layers.*.self_attn.q_norm": "layers.*.self_attn.query_layernorm",
        "decoder.layers.*.self_attn.k_norm": "layers.*.self_attn.key_layernorm",
    },
)


def written(ours: DecoderOnlyConfig, length: int) -> tuple[Family, HF]:
    """Return the class for one of our decoders with rotary positions, and keys of its config."""
    assert isinstance(ours.positions, Rotary)  # noqa: S101 (the caller's choice)
    window = next((p.size for p in ours.patterns if isinstance(p, SlidingWindow)), None)
    keys = {
        "num_key_value_heads": ours.num_kv_heads,
        "head_dim": ours.head_dim,
        "hidden_act": activation_name(ours.activation),
        "mlp_bias": ours.ffn_bias,
        "max_position_embeddings": length,
        "rope_parameters": {"rope_type": "default", "rope_theta": ours.positions.base},
        "sliding_window": window,
        "use_sliding_window": window is not None,
    }
    if ours.norm == "layer":
        return STARCODER2, keys
    if ours.qk_norm:
        kinds = ["full_attention" if p == Causal() else "sliding_attention" for p in ours.patterns]
        return QWEN3, {**keys, "layer_types": kinds}
    return (LLAMA if window is None else MISTRAL), keys
