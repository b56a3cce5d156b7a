"""StarCoder2 (Lozhkov et al., 2024): decoder-only, rotary positions, LayerNorm, biases.

The plain Transformer with rotary positions: what our own recipes of decoders build.
"""

from dataclasses import replace

from dragoman.folder.foreign.llama import MISTRAL, written

STARCODER2 = replace(
    MISTRAL,
    classes=("Starcoder2ForCausalLM",),
    defaults={
        **MISTRAL.defaults,
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
    fields={
        **{key: value for key, value in MISTRAL.fields.items() if "bias" not in key},
        "norm_eps": "norm_epsilon",
        "dropout": "residual_dropout",
    },
    settings={"norm_position": "pre"},
    modules={
        **MISTRAL.modules,
        "decoder.layers.*.ffn.up": "layers.*.mlp.c_fc",
        "decoder.layers.*.ffn.down": "layers.*.mlp.c_proj",
    },
    written=written(lambda ours: ours.norm == "layer"),
)
