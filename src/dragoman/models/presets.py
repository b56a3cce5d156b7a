"""Named model sizes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from dragoman.errors import InputError, did_you_mean
from dragoman.models.config import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from dragoman.nn import LayerConfig, Learned, Rotary, SlidingWindow

_BASE = EncoderDecoderConfig()
PRESETS: dict[str, EncoderDecoderConfig] = {
    "tiny": replace(
        _BASE, d_model=128, num_heads=4, d_ff=512, num_encoder_layers=3, num_decoder_layers=2
    ),
    "small": replace(
        _BASE, d_model=256, num_heads=4, d_ff=1024, num_encoder_layers=6, num_decoder_layers=3
    ),
    "base": _BASE,
    "big": replace(_BASE, d_model=1024, num_heads=16, d_ff=4096, dropout=0.3),
    "deep": replace(_BASE, num_encoder_layers=12, num_decoder_layers=2, norm_position="pre"),
}
_GPT2 = DecoderOnlyConfig(
    positions=Learned(max_length=1024), norm_position="pre", init="gpt2", activation="gelu_tanh"
)
_LLAMA = DecoderOnlyConfig(
    positions=Rotary(),
    norm_position="pre",
    norm="rms",
    init="gpt2",
    activation="silu",
    gated=True,
    bias=False,
    dropout=0.0,
)
_LLAMA_TINY = replace(_LLAMA, d_model=128, num_heads=4, num_kv_heads=2, d_ff=352, num_layers=4)
_LLAMA_SMALL = replace(_LLAMA, d_model=768, num_heads=12, num_kv_heads=4, d_ff=2048, num_layers=12)
_BERT = EncoderOnlyConfig(
    positions=Learned(max_length=512),
    embedding_norm=True,
    norm_eps=1e-12,
    init="gpt2",
    activation="gelu",
)
DECODER_PRESETS: dict[str, DecoderOnlyConfig] = {
    "gpt2-tiny": replace(_GPT2, d_model=128, num_heads=4, d_ff=512, num_layers=4),
    "gpt2-small": replace(_GPT2, d_model=768, num_heads=12, d_ff=3072, num_layers=12),
    "llama-tiny": _LLAMA_TINY,
    "llama-small": _LLAMA_SMALL,
    "mistral-tiny": replace(_LLAMA_TINY, patterns=(SlidingWindow(size=128),)),
    "mistral-small": replace(_LLAMA_SMALL, patterns=(SlidingWindow(size=1024),)),
}
ENCODER_PRESETS: dict[str, EncoderOnlyConfig] = {
    "bert-tiny": replace(_BERT, d_model=128, num_heads=2, d_ff=512, num_layers=2),
    "bert-small": replace(_BERT, d_model=512, num_heads=8, d_ff=2048, num_layers=4),
    "bert-base": replace(_BERT, d_model=768, num_heads=12, d_ff=3072, num_layers=12),
}

ConfigT = TypeVar("ConfigT", bound=LayerConfig)


def preset(name: str) -> EncoderDecoderConfig:
    """Return a named size: tiny, small, base, big (the paper's Table 3) or deep."""
    return _named(name, PRESETS)


def decoder_preset(name: str) -> DecoderOnlyConfig:
    """Return a decoder-only size in the style of GPT-2, Llama or Mistral."""
    return _named(name, DECODER_PRESETS)


def encoder_preset(name: str) -> EncoderOnlyConfig:
    """Return an encoder-only size in the style of BERT."""
    return _named(name, ENCODER_PRESETS)


def _named(name: str, presets: Mapping[str, ConfigT]) -> ConfigT:
    if name not in presets:
        hint = did_you_mean(name, presets)
        raise InputError(f"unknown model preset {name!r}: known are {', '.join(presets)}{hint}")
    return presets[name]
