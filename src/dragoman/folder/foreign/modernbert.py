"""ModernBERT (Warner et al., 2024): an encoder with the parts of later decoders.

Pre-norm without biases, GEGLU and rotary positions; two of three layers attend to a window, with
rotary positions of another base. The first layer reads the embeddings, which are normalized, as
they are. The heads that classify texts or tokens are not read.
"""

from dragoman.errors import InputError
from dragoman.folder.foreign.bert import with_its_head
from dragoman.folder.foreign.llama import patterns
from dragoman.folder.foreign.reading import (
    HF,
    SIZES,
    Family,
    activation,
    equal,
    token_ids,
    unsupported,
)
from dragoman.folder.foreign.rotary import two_bases
from dragoman.folder.foreign.weights import Table, fused, halves, under
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.heads import Head, MaskedLanguageHead, NoHead
from dragoman.nn import AttentionPattern, Full, SlidingWindow

ATTENTION, GATED = fused("attn.Wqkv"), halves("mlp.Wi")
LAYER: Table = {
    "self_attn.q_proj": ATTENTION[0],
    "self_attn.kv_proj": ATTENTION[1],
    "self_attn.out_proj": "attn.Wo",
    "self_attn_residual.norm": "attn_norm",
    "ffn.up": GATED[0],
    "ffn.value": GATED[1],
    "ffn.down": "mlp.Wo",
    "ffn_residual.norm": "mlp_norm",
}
CLASSES = ("ModernBertModel", "ModernBertForMaskedLM")


def _head(hf: HF) -> Head:
    """Return the head of the class that the config names."""
    name = (hf.get("architectures") or CLASSES)[0]
    if name not in CLASSES:
        raise InputError(unsupported("architectures", name, f"known are {' and '.join(CLASSES)}"))
    if name == CLASSES[0]:
        return NoHead()
    equal("hidden_activation", "classifier_activation")(hf)
    return MaskedLanguageHead(dense_bias=hf["classifier_bias"])


def _patterns(hf: HF) -> tuple[AttentionPattern, ...]:
    near = SlidingWindow(size=hf.get("sliding_window", hf["local_attention"] // 2), causal=False)
    period = hf["global_attn_every_n_layers"]
    return patterns(hf, lambda layer: layer % period != 0, Full(), near)


MODERNBERT = Family(
    kind=EncoderOnlyConfig,
    defaults={
        "max_position_embeddings": 8192,
        "hidden_activation": "gelu",
        "norm_eps": 1e-5,
        "local_attention": 128,
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
        "embedding_dropout": 0.0,
        "attention_dropout": 0.0,
        "mlp_dropout": 0.0,
        "classifier_activation": "gelu",
        "classifier_bias": False,
        "pad_token_id": 50_283,
        "bos_token_id": 50_281,
        "eos_token_id": 50_282,
    },
    only={
        "norm_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "decoder_bias": True,
        "tie_word_embeddings": True,
        "rope_scaling": None,
    },
    fields={
        **SIZES,
        "activation": activation("hidden_activation"),
        "positions": lambda hf: two_bases(hf, hf["global_rope_theta"], hf["local_rope_theta"]),
        "patterns": _patterns,
        "norm_eps": "norm_eps",
        "head": _head,
        "dropout": "embedding_dropout",
        "attention_dropout": "attention_dropout",
        "ffn_dropout": "mlp_dropout",
        **token_ids(),
    },
    settings={
        "bias": False,
        "gated": True,
        "norm_position": "pre",
        "embedding_norm": True,
        "first_norm": False,
    },
    modules={
        "embedding": "embeddings.tok_embeddings",
        "embedding.norm": "embeddings.norm",
        **under("encoder.layers.*", "layers.*", LAYER),
        "encoder.final_norm": "final_norm",
        "head.dense": "head.dense",
        "head.norm": "head.norm",
        "head.output": "decoder",
    },
    prefix="model.",
    stored=with_its_head("head."),
)
