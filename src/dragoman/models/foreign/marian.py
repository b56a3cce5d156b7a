"""Marian (Junczys-Dowmunt et al., 2018; OPUS-MT): the paper's model, sines before cosines."""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from dragoman.errors import InputError
from dragoman.models.config import EncoderDecoderConfig, Tying
from dragoman.models.foreign.bart import DEFAULTS as DEFAULTS_OF_BART
from dragoman.models.foreign.bart import LAYERS, LOGITS_BIAS, skeleton
from dragoman.models.foreign.reading import HF, only, unsupported
from dragoman.models.foreign.weights import convert, embeddings
from dragoman.nn import Sinusoidal

DEFAULTS: HF = {
    **DEFAULTS_OF_BART,
    "decoder_vocab_size": None,
    "share_encoder_decoder_embeddings": True,
    "decoder_start_token_id": 58100,
    "pad_token_id": 58100,
    "eos_token_id": 0,
}
IGNORED = (
    "encoder.embed_positions.weight",  # sines and cosines
    "decoder.embed_positions.weight",
)


def config(hf: HF) -> EncoderDecoderConfig:
    """Return our config of a Marian model."""
    only(hf, "normalize_before", value=False)
    only(hf, "add_final_layer_norm", value=False)
    only(hf, "normalize_embedding", value=False)
    only(hf, "static_position_embeddings", value=True)
    hf = {**DEFAULTS, **hf}
    shared = skeleton(hf)
    return replace(
        shared,
        tie_embeddings=_tying(hf),
        tgt_vocab_size=hf["decoder_vocab_size"] or shared.src_vocab_size,
        positions=Sinusoidal(layout="halves"),
        output_bias=True,
    )


def weights(state: Mapping[str, Tensor], config: EncoderDecoderConfig) -> dict[str, Tensor]:
    """Make our weights of theirs."""
    table = {**embeddings(config), **LAYERS, **LOGITS_BIAS}
    return convert(table, state, config, prefix="model.", ignored=IGNORED)


def _tying(hf: HF) -> Tying:
    """One matrix for all; or one for the source, one for target and output; or three."""
    shared, tied = hf["share_encoder_decoder_embeddings"], hf["tie_word_embeddings"]
    if shared and not tied:
        raise InputError(
            unsupported("tie_word_embeddings", tied, "share_encoder_decoder_embeddings is true")
        )
    if shared:
        return "all"
    return "target-output" if tied else "none"
