"""Small decoder-only and encoder-only models, one for each option of their configs."""

from dataclasses import replace

import torch
from tests.unit.models.small import V, stir

from dragoman.models import DecoderOnly, DecoderOnlyConfig, EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, TaggingHead
from dragoman.nn import (
    ALiBi,
    Causal,
    Learned,
    LinearScaling,
    NoPositions,
    RelativeBias,
    Rotary,
    Rwkv,
    SlidingWindow,
)

DECODER = DecoderOnlyConfig(
    vocab_size=V, d_model=16, num_heads=4, d_ff=24, num_layers=2, dropout=0.0, norm_position="pre"
)
DECODERS = {
    "sinusoidal": DECODER,
    "gpt2": replace(DECODER, positions=Learned(max_length=200), init="gpt2"),
    "llama": replace(
        DECODER,
        positions=Rotary(),
        norm="rms",
        bias=False,
        activation="silu",
        gated=True,
        num_kv_heads=2,
        tie_embeddings=False,
    ),
    "alibi": replace(DECODER, positions=ALiBi()),
    "relative-bias": replace(DECODER, positions=RelativeBias(num_buckets=6, max_distance=9)),
    "no-positions": replace(DECODER, positions=NoPositions()),
    "post-norm": replace(DECODER, norm_position="post", embedding_norm=True),
    "deepnorm": replace(DECODER, norm_position="deepnorm", output_bias=True),
    "sandwich": replace(DECODER, norm_position="sandwich", norm="rms"),
    "partly-rotary": replace(DECODER, positions=Rotary(share=0.5)),
    "unrotated": replace(DECODER, positions=Rotary(unrotated=(1,))),
    "olmo": replace(DECODER, norm="rms", norm_position="branch", qk_norm="whole", num_kv_heads=2),
    "scaled": replace(DECODER, embedding_scale=3.0, attention_scale=0.2, logit_scale=0.5),
    "capped": replace(DECODER, logit_soft_cap=2.0, score_soft_cap=2.0, logit_scale=0.5),
}
TWO_BASES = replace(
    DECODER,
    num_layers=3,
    positions=Rotary(local_base=50.0, scaling=LinearScaling(factor=4.0)),
    patterns=(SlidingWindow(size=3), Causal()),
)
NORM_LAST = Rotary(local_base=50.0, scaling=LinearScaling(factor=4.0), before_norm=True)
RWKV = replace(DECODER, num_layers=3, patterns=(Rwkv(),), positions=NoPositions())

ENCODER = EncoderOnlyConfig(vocab_size=V, d_model=16, num_heads=4, d_ff=24, num_layers=2)
LABELS = ("no", "perhaps", "yes")
ENCODERS = {
    "hidden": ENCODER,
    "bert": replace(
        ENCODER,
        positions=Learned(max_length=200),
        embedding_norm=True,
        num_token_types=2,
        activation="gelu",
        head=MaskedLanguageHead(),
    ),
    "first": replace(ENCODER, head=ClassificationHead(labels=LABELS, pooling="first", pooler=True)),
    "mean": replace(ENCODER, head=ClassificationHead(labels=LABELS), positions=RelativeBias()),
    "tags": replace(ENCODER, head=TaggingHead(labels=LABELS), positions=Rotary()),
    "pre-norm": replace(ENCODER, norm_position="pre", norm="rms", positions=ALiBi()),
}


def make_decoder(config: DecoderOnlyConfig = DECODER, seed: int = 0) -> DecoderOnly:
    """Build a decoder in float64 and evaluation mode, every weight drawn at random."""
    torch.manual_seed(seed)
    model = DecoderOnly(config).double()
    stir(model)
    return model.eval()


def make_encoder(config: EncoderOnlyConfig = ENCODER, seed: int = 0) -> EncoderOnly:
    """Build an encoder in float64 and evaluation mode, every weight drawn at random."""
    torch.manual_seed(seed)
    model = EncoderOnly(config).double()
    stir(model)
    return model.eval()
