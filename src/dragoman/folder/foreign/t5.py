"""T5 (Raffel et al., 2020), version 1.1, FLAN, mT5, umT5: relative positions, RMSNorm, no biases.

The first T5 ties its output to the embedding and multiplies by `d_model^-0.5`; version 1.1 has a
separate output matrix. Hugging Face files tell which by `tie_word_embeddings`, since transformers 5
by `scale_decoder_outputs`. mT5 (Xue et al., 2021) is version 1.1 with another vocabulary, whatever
its config says about ties. transformers 5 ties every new model and saves no output matrix; for a
file without one, the embedding is used instead, scaled only if the config says so. A file with one
is not tied, and is scaled if the config says so. umT5 (Chung et al., 2023) is version 1.1 with a
table of distances in every layer; its file decides about the scale too. MADLAD-400 (Kudugunta et
al., 2023) is version 1.1 with pieces for the target language.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from dragoman.errors import InputError
from dragoman.folder.foreign.reading import (
    ACTIVATIONS,
    HF,
    Family,
    activation,
    token_ids,
    unsupported,
)
from dragoman.folder.foreign.weights import Table, either, instead, joined, under
from dragoman.folder.tokenizers.built import by_scores, cut_at_words
from dragoman.folder.tokenizers.files import Pieces, TokenizerFolder, TokenizerRules
from dragoman.models.config import EncoderDecoderConfig
from dragoman.nn import RelativeBias
from dragoman.nn.feedforward import Activation

ATTENTION: Table = {"q_proj": "q", "kv_proj": joined("k", "v"), "out_proj": "o"}
FFN: Table = {
    "up": either("DenseReluDense.wi", "DenseReluDense.wi_0"),  # the second one if gated
    "value": "DenseReluDense.wi_1",
    "down": "DenseReluDense.wo",
}
ENCODER: Table = {
    **under("self_attn", "layer.0.SelfAttention", ATTENTION),
    "self_attn_residual.norm": "layer.0.layer_norm",
    **under("ffn", "layer.1", FFN),
    "ffn_residual.norm": "layer.1.layer_norm",
}
DECODER: Table = {
    **ENCODER,
    **under("cross_attn", "layer.1.EncDecAttention", ATTENTION),
    "cross_attn_residual.norm": "layer.1.layer_norm",
    **under("ffn", "layer.2", FFN),
    "ffn_residual.norm": "layer.2.layer_norm",
}


def _scales(hf: HF) -> bool:
    return bool(hf.get("scale_decoder_outputs", hf.get("tie_word_embeddings") is not False))


def _positions(hf: HF) -> RelativeBias:
    return RelativeBias(
        num_buckets=hf["relative_attention_num_buckets"],
        max_distance=hf["relative_attention_max_distance"],
    )


def _untied(hf: HF, state: Mapping[str, Tensor]) -> HF:
    """Return the config of a file, without ties if its output matrix is separate."""
    own, embedding = (state.get(f"{name}.weight") for name in ("lm_head", "shared"))
    if own is None or embedding is None:
        return hf
    if own.dtype == embedding.dtype and torch.equal(own, embedding):
        return hf
    return {**hf, "scale_decoder_outputs": _scales(hf), "tie_word_embeddings": False}


def _activation(hf: HF) -> Activation:
    """Read `ACTIVATION` or `gated-ACTIVATION`; `gated-gelu` means the tanh approximation.

    Files since 2022 name it in another key too, which their class prefers.
    """
    if hf.get("dense_act_fn") is not None:
        named: Activation = activation("dense_act_fn")(hf)
        return named
    name = hf["feed_forward_proj"]
    plain = name.removeprefix("gated-")
    if plain not in ACTIVATIONS:
        known = f"known are {', '.join(ACTIVATIONS)}, alone or after gated-"
        raise InputError(unsupported("feed_forward_proj", name, known))
    return "gelu_tanh" if name == "gated-gelu" else ACTIVATIONS[plain]


MOST_EXTRA = 10_000
"""Maximum number of T5's sentinels; published models have 100 to 300."""


def _tokenizer(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    number = folder.settings.get("extra_ids", 100)
    if type(number) is not int or not 0 <= number <= MOST_EXTRA:
        raise InputError(
            f"{folder.path / 'tokenizer_config.json'}: extra_ids is {number!r:.40}; it must be an "
            f"integer from 0 to {MOST_EXTRA:,}."
        )
    extra = [f"<extra_id_{at}>" for at in range(number - 1, -1, -1)]
    scores = [*pieces.scores, *((name, 0.0) for name in extra)]
    backend = by_scores(scores, unk=[name for name, _ in scores].index("<unk>"))
    backend.add_special_tokens(extra)
    return cut_at_words(backend, pieces.charsmap)


T5 = Family(
    kind=EncoderDecoderConfig,
    defaults={
        "num_decoder_layers": None,
        "feed_forward_proj": "relu",
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "layer_norm_epsilon": 1e-6,
        "tie_word_embeddings": True,
        "dropout_rate": 0.1,
        "pad_token_id": 0,
        "eos_token_id": 1,
    },
    classes=("T5ForConditionalGeneration", "T5WithLMHeadModel"),
    fields={
        "src_vocab_size": "vocab_size",
        "tgt_vocab_size": "vocab_size",
        "d_model": "d_model",
        "num_heads": "num_heads",
        "head_dim": "d_kv",
        "d_ff": "d_ff",
        "num_encoder_layers": "num_layers",
        "num_decoder_layers": lambda hf: hf["num_decoder_layers"] or hf["num_layers"],
        "activation": _activation,
        "gated": lambda hf: hf["feed_forward_proj"].startswith("gated-"),
        "positions": _positions,
        "norm_eps": "layer_norm_epsilon",
        "tie_embeddings": lambda hf: (
            "all" if _scales(hf) and hf["tie_word_embeddings"] else "source-target"
        ),
        "logit_scale": lambda hf: hf["d_model"] ** -0.5 if _scales(hf) else 1.0,
        "dropout": "dropout_rate",
        "attention_dropout": "dropout_rate",
        "ffn_dropout": "dropout_rate",
        **token_ids(bos="decoder_start_token_id"),
    },
    settings={
        "bias": False,
        "attention_scale": 1.0,
        "norm": "rms",
        "norm_position": "pre",
        "scale_embedding": False,
    },
    modules={
        "src_embedding": "encoder.embed_tokens",
        "tgt_embedding": "decoder.embed_tokens",
        "output": instead("lm_head", "shared"),
        # the first layer's table of positions is used by all layers
        "encoder.bias": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "decoder.bias": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        **under("encoder.layers.*", "encoder.block.*", ENCODER),
        **under("decoder.layers.*", "decoder.block.*", DECODER),
        "encoder.final_norm": "encoder.final_layer_norm",
        "decoder.final_norm": "decoder.final_layer_norm",
    },
    shared="shared",
    ignored=(  # left over in old files: cross-attention has no positions
        "decoder.block.*.layer.*.EncDecAttention.relative_attention_bias.weight",
    ),
    stored=_untied,
    tokenizers=dict.fromkeys(
        ("t5", "mt5", "umt5"), TokenizerRules(build=_tokenizer, frame="$A </s>")
    ),
    whole=True,
)
MT5 = replace(T5, stored=lambda hf, _: hf).variant(
    classes=("MT5ForConditionalGeneration",),
    defaults={"feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0},
    settings={"tie_embeddings": "source-target", "logit_scale": 1.0},
)
UMT5 = T5.variant(
    classes=("UMT5ForConditionalGeneration",),
    defaults={"feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0},
    fields={"positions": lambda hf: replace(_positions(hf), per_layer=True)},
    modules={
        "encoder.bias.*": "encoder.block.*.layer.0.SelfAttention.relative_attention_bias",
        "decoder.bias.*": "decoder.block.*.layer.0.SelfAttention.relative_attention_bias",
    },
)
