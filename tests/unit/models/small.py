"""Small models and generated sentences for the tests of blocks and models."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.nn import ALiBi, Learned, NoPositions, RelativeBias, Rotary, Sinusoidal

PAD, BOS, EOS = 0, 2, 3
V = 23

SMALL = EncoderDecoderConfig(
    src_vocab_size=V,
    tgt_vocab_size=V,
    d_model=16,
    num_heads=4,
    d_ff=24,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
)

# One for each option of a config.
VARIANTS = {
    "paper": SMALL,
    "pre": replace(SMALL, norm_position="pre"),
    "final-norm": replace(SMALL, final_norm=True),
    "deep-encoder": replace(SMALL, num_encoder_layers=3, num_decoder_layers=1),
    "rms": replace(SMALL, norm="rms"),
    "no-bias": replace(SMALL, bias=False),
    "gelu": replace(SMALL, activation="gelu"),
    "gelu-tanh": replace(SMALL, activation="gelu_tanh"),
    "silu": replace(SMALL, activation="silu"),
    "swiglu": replace(SMALL, activation="silu", gated=True),
    "glu": replace(SMALL, activation="sigmoid", gated=True),
    "gqa": replace(SMALL, num_kv_heads=2),
    "mqa": replace(SMALL, num_kv_heads=1),
    "head-dim": replace(SMALL, head_dim=6),
    "untied": replace(SMALL, tie_embeddings="none", output_bias=True),
    "two-vocabularies": replace(SMALL, tgt_vocab_size=V + 4, tie_embeddings="target-output"),
    "one-embedding": replace(SMALL, tie_embeddings="source-target"),
    "unscaled": replace(SMALL, scale_embedding=False),
    "halves": replace(SMALL, positions=Sinusoidal(layout="halves", exponent="d/2-1", first=2)),
    "learned": replace(SMALL, positions=Learned(max_length=200), embedding_norm=True),
    "rotary": replace(SMALL, positions=Rotary()),
    "adjacent-rotary": replace(SMALL, positions=Rotary(pairing="adjacent"), num_kv_heads=2),
    "relative-bias": replace(
        SMALL, positions=RelativeBias(num_buckets=8, max_distance=12), attention_scale=1.0
    ),
    "biases-by-layer": replace(SMALL, positions=RelativeBias(num_buckets=8, per_layer=True)),
    "alibi": replace(SMALL, positions=ALiBi()),
    "no-positions": replace(SMALL, positions=NoPositions()),
    "qk-norm": replace(SMALL, qk_norm=True, qkv_bias=False),
    "soft-cap": replace(SMALL, score_soft_cap=3.0, logit_soft_cap=2.0, logit_scale=0.5),
    "deepnorm": replace(SMALL, norm_position="deepnorm", tie_embeddings="none"),
    "whole-qk-norm": replace(SMALL, qk_norm="whole", norm_position="branch"),
    "sandwich": replace(SMALL, norm_position="sandwich"),
    "gpt2-init": replace(SMALL, init="gpt2", norm_position="pre", tie_embeddings="none"),
    "llama-like": replace(
        SMALL, norm="rms", norm_position="pre", bias=False, activation="silu", gated=True
    ),
}


def make_model(
    config: EncoderDecoderConfig = SMALL, dtype: torch.dtype = torch.float64, seed: int = 0
) -> EncoderDecoder:
    """Build a model in evaluation mode with random biases and norms, too."""
    torch.manual_seed(seed)
    model = EncoderDecoder(config).to(dtype)
    stir(model)
    return model.eval()


def stir(module: nn.Module) -> None:
    """Change every weight, so that no bias is zero and no norm is one."""
    for parameter in module.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)


def random_ids(seed: int, *shape: int) -> Tensor:
    """Draw ids that are not special."""
    return torch.randint(4, V, shape, generator=torch.Generator().manual_seed(seed))


def random_sentences(seed: int, lengths: list[int], width: int | None = None) -> Tensor:
    """Draw sentences of these lengths and pad them to `width` or the longest: `(B, L)`."""
    width = width or max(lengths)
    ids_BL = random_ids(seed, len(lengths), width)
    for row, length in zip(ids_BL, lengths, strict=True):
        row[length:] = PAD
    return ids_BL


def distance(a: Tensor, b: Tensor) -> float:
    """Return the greatest difference, relative to the greatest number if that exceeds 1."""
    assert a.shape == b.shape
    a, b = a.detach(), b.detach()
    if not a.numel():
        return 0.0
    return float((a - b).abs().max() / b.abs().max().clamp(min=1.0))
