"""The class of transformers that a model of ours is equal to, by the tables of `folder/foreign`.

Which of our settings a class can express is not listed here: its config is made of ours, read back
by the same tables, and any field that has become another value is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import cycle, islice
from typing import Any

from torch import Tensor

from dragoman.convert.limits import refusal
from dragoman.folder.foreign import WRITTEN, Family
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig, ModelConfig
from dragoman.nn import Causal, Full

OF_TRAINING = {"init", "dropout", "attention_dropout", "ffn_dropout", "layer_drop"}
"""Fields that change no output."""
ZEROS = {"bias", "qkv_bias", "ffn_bias", "num_token_types", "output_bias"}
"""What only their class may have, and what is zero there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """A class of transformers that is equal to one of our models."""

    family: Family
    """Its tables."""
    config: Mapping[str, Any]
    """What its config is made of."""
    weights: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]
    """What is done to our weights before they go by the tables."""

    @property
    def model(self) -> str:
        """The name of the class."""
        name: str = (self.config.get("architectures") or self.family.classes)[0]
        return name


def counterpart(config: ModelConfig, length: int) -> Counterpart:
    """Return the class for a model; `length` is the number of positions that it is said to have.

    Raises InputError for what the class cannot express.
    """
    if isinstance(config, EncoderOnlyConfig) and config.word_features:  # which no class has
        raise refusal(config, "word_features", "Hugging Face's transformers")
    ours = _explicit(config)
    family, written = next(
        (each, w)
        for each in WRITTEN
        if (w := each.written) and isinstance(ours, each.kind) and w.fits(ours)
    )
    named = {
        key: getattr(ours, name) for name, key in family.fields.items() if isinstance(key, str)
    }
    hf = {**named, **token_ids(ours), **written.config(ours, length)}
    arranged, weights = written.arranged(ours)
    found = Counterpart(family=family, config=hf, weights=weights)
    back = _explicit(family.config(hf))
    for field in fields(config):
        kept, read = (getattr(each, field.name) for each in (arranged, back))
        zeros = field.name in ZEROS and not kept
        copied = field.name == "tie_embeddings" and read == "none"  # one matrix, stored twice
        if kept != read and not zeros and not copied and field.name not in OF_TRAINING:
            raise refusal(config, field.name, f"Hugging Face's {found.model}")
    return found


def token_ids(config: ModelConfig) -> dict[str, int]:
    """Return the ids of the special tokens that there are, by their names."""
    ids = {f"{name}_token_id": getattr(config, f"{name}_id") for name in ("pad", "bos", "eos")}
    return {key: id_ for key, id_ in ids.items() if id_ >= 0}


def _explicit(config: ModelConfig) -> ModelConfig:
    """A config with a value for each field that has one by others."""
    if isinstance(config, EncoderDecoderConfig):
        patterns: dict[str, Any] = {
            "encoder_patterns": _each(
                config.encoder_patterns or (Full(),), config.num_encoder_layers
            ),
            "decoder_patterns": _each(
                config.decoder_patterns or (Causal(),), config.num_decoder_layers
            ),
        }
    else:
        first = Causal() if isinstance(config, DecoderOnlyConfig) else Full()
        patterns = {"patterns": _each(config.patterns or (first,), config.num_layers)}
    return replace(
        config,
        num_kv_heads=config.num_kv_heads or config.num_heads,
        head_dim=config.width,
        qkv_bias=config.bias if config.qkv_bias is None else config.qkv_bias,
        ffn_bias=config.bias if config.ffn_bias is None else config.ffn_bias,
        final_norm=config.ends_in_norm,
        **patterns,
    )


def _each(patterns: tuple[Any, ...], num_layers: int) -> tuple[Any, ...]:
    """A pattern for each layer, repeated from the first."""
    return tuple(islice(cycle(patterns), num_layers))
