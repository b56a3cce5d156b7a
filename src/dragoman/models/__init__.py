"""The complete models, their configs and presets."""

from dragoman.models.build import Model, build, count_parameters
from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.encoder_only import EncoderOnly
from dragoman.models.presets import (
    DECODER_PRESETS,
    ENCODER_PRESETS,
    PRESETS,
    decoder_preset,
    encoder_preset,
    preset,
)

__all__ = [
    "DECODER_PRESETS",
    "ENCODER_PRESETS",
    "PRESETS",
    "DecoderOnly",
    "DecoderOnlyConfig",
    "EncoderDecoder",
    "EncoderDecoderConfig",
    "EncoderOnly",
    "EncoderOnlyConfig",
    "Model",
    "ModelConfig",
    "build",
    "count_parameters",
    "decoder_preset",
    "encoder_preset",
    "preset",
]
