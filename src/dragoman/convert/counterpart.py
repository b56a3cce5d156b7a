"""The class of transformers equivalent to a model of ours, by the tables of `folder/foreign`.

The settings that a class supports are not listed here: its config is made from ours and read back
by the same tables, and any field with a different value is rejected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import cycle, islice
from typing import Any

from torch import Tensor

from dragoman.convert.limits import refusal
from dragoman.folder.foreign import Family, bart, bert, gpt2, llama
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig, ModelConfig
from dragoman.nn import AttentionPattern, Causal, Full, Rotary

OF_TRAINING = {"init", "dropout", "attention_dropout", "ffn_dropout", "layer_drop"}
"""Fields that do not affect outputs."""
ZEROS = {"bias", "qkv_bias", "ffn_bias", "num_token_types", "output_bias"}
"""Fields for parameters that only their class may have; they are zero there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """A class of transformers that is equivalent to one of our models."""

    family: Family
    """The family, with its tables."""
    config: Mapping[str, Any]
    """The arguments of its config."""
    weights: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]
    """Rearranges our weights before the tables are applied."""

    @property
    def model(self) -> str:
        """The name of the class."""
        name: str = (self.config.get("architectures") or self.family.classes)[0]
        return name


def counterpart(config: ModelConfig, length: int) -> Counterpart:
    """Return the class for a model; `length` is the number of positions to write in its config.

    Raises InputError for a setting that the class does not support.
    """
    if isinstance(config, EncoderOnlyConfig) and config.word_features:  # no class has them
        raise refusal(config, "word_features", "Hugging Face's transformers")
    arranged = ours = _explicit(config)
    weights: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] = dict
    match ours:
        case EncoderOnlyConfig():
            family, keys = bert.written(ours)
        case EncoderDecoderConfig():
            family, keys = bart.written(ours, length)
            arranged, weights = bart.arranged(ours)
        case DecoderOnlyConfig(positions=Rotary()):
            family, keys = llama.written(ours, length)
        case DecoderOnlyConfig():
            family, keys = gpt2.written(ours)
    named = {
        key: getattr(ours, name) for name, key in family.fields.items() if isinstance(key, str)
    }
    hf = {**named, **token_ids(ours), **keys}
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
    """Return the ids of the existing special tokens by their keys."""
    ids = {f"{name}_token_id": getattr(config, f"{name}_id") for name in ("pad", "bos", "eos")}
    return {key: id_ for key, id_ in ids.items() if id_ >= 0}


def _explicit(config: ModelConfig) -> ModelConfig:
    """Return a config in which defaults that depend on other fields are filled in."""
    stacks: dict[str, tuple[AttentionPattern, int]]
    if isinstance(config, EncoderDecoderConfig):
        stacks = {
            "encoder_patterns": (Full(), config.num_encoder_layers),
            "decoder_patterns": (Causal(), config.num_decoder_layers),
        }
    else:
        alone = isinstance(config, DecoderOnlyConfig)
        stacks = {"patterns": (Causal() if alone else Full(), config.num_layers)}
    patterns: dict[str, Any] = {
        name: tuple(islice(cycle(getattr(config, name) or (default,)), num_layers))
        for name, (default, num_layers) in stacks.items()
    }
    return replace(
        config,
        num_kv_heads=config.num_kv_heads or config.num_heads,
        head_dim=config.width,
        qkv_bias=config.bias if config.qkv_bias is None else config.qkv_bias,
        ffn_bias=config.bias if config.ffn_bias is None else config.ffn_bias,
        final_norm=config.ends_in_norm,
        **patterns,
    )
