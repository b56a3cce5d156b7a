"""From a config to the model that it describes, with weights drawn anew."""

from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.encoder_only import EncoderOnly

Model = EncoderDecoder | DecoderOnly | EncoderOnly


def build(config: ModelConfig) -> Model:
    """Build the variant that the config's kind names."""
    match config:
        case EncoderDecoderConfig():
            return EncoderDecoder(config)
        case DecoderOnlyConfig():
            return DecoderOnly(config)
        case EncoderOnlyConfig():
            return EncoderOnly(config)
