"""The assemblies: configs, models, and folders that hold them."""

from dragoman.models.config import PRESETS, EncoderDecoderConfig, count_parameters, preset
from dragoman.models.encoder_decoder import EncoderDecoder

__all__ = ["PRESETS", "EncoderDecoder", "EncoderDecoderConfig", "count_parameters", "preset"]
