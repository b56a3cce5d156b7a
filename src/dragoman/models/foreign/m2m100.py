"""M2M100 (Fan et al., 2021) and NLLB (Costa-jussà et al., 2022): pre-norm, fairseq's positions."""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from dragoman.models.config import EncoderDecoderConfig
from dragoman.models.foreign.bart import DEFAULTS as DEFAULTS_OF_BART
from dragoman.models.foreign.bart import FINAL_NORMS, LAYERS, skeleton
from dragoman.models.foreign.bart import IGNORED as IGNORED_BY_BART
from dragoman.models.foreign.reading import HF
from dragoman.models.foreign.weights import convert, embeddings
from dragoman.nn import Sinusoidal

DEFAULTS: HF = {
    **DEFAULTS_OF_BART,
    "activation_function": "relu",
    "scale_embedding": True,
    "attention_dropout": 0.1,
    "decoder_start_token_id": 2,
}
IGNORED = (
    *IGNORED_BY_BART,
    "encoder.embed_positions.weights",  # sines and cosines, in old files
    "decoder.embed_positions.weights",
)


def config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of an M2M100 or NLLB.

    Their positions count what is no padding from pad_id + 1 on; padding stands behind the text
    here, so that the first position is all that differs from counting from 0.
    """
    shared = skeleton({**DEFAULTS, **hf})
    return replace(
        shared,
        positions=Sinusoidal(layout="halves", exponent="d/2-1", first=shared.pad_id + 1),
        norm_position="pre",
    )


def weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**embeddings(config), **LAYERS, **FINAL_NORMS}
    return convert(table, state, config, prefix="model.", ignored=IGNORED)
