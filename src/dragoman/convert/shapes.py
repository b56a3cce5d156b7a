"""Decoders alone and encoders alone as classes of transformers, by the tables of `folder/foreign`.

Which of our settings a class can express is not listed here: its config is made of ours, read back
by the same tables, and any field that has become another value is refused.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import cycle, islice
from typing import Any

from torch import Tensor

from dragoman.convert.limits import refusal
from dragoman.folder.foreign import FAMILIES, Family
from dragoman.folder.foreign.reading import ACTIVATIONS
from dragoman.models import DecoderOnlyConfig, EncoderOnlyConfig, ModelConfig
from dragoman.models.heads import ClassificationHead, Head, TaggingHead
from dragoman.nn import Causal, Full, Learned, Rotary, SlidingWindow

OneStack = DecoderOnlyConfig | EncoderOnlyConfig
"""The variants whose settings are read back."""
OF_TRAINING = {"init", "dropout", "attention_dropout", "ffn_dropout", "layer_drop"}
"""Fields that change no output."""
ZEROS = {"bias", "qkv_bias", "ffn_bias", "num_token_types"}
"""What only their class may have, and what is zero there."""
HEADS: Mapping[str, str] = {
    "none": "BertModel",
    "masked-language": "BertForMaskedLM",
    "classify": "BertForSequenceClassification",
    "tag": "BertForTokenClassification",
}
"""The class for each kind of head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """A class of transformers that is equal to one of our models."""

    family: Family
    """Its tables."""
    model: str
    """The name of the class."""
    config: Mapping[str, Any]
    """What its config is made of."""
    generation: Mapping[str, Any]
    """How it decodes by default; empty where it writes nothing."""
    weights: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] = dict
    """What is done to our weights before they go by the tables."""


def decoder(config: DecoderOnlyConfig, length: int, generation: Mapping[str, Any]) -> Counterpart:
    """Return the class for a decoder alone; `length` is the context that it is said to have.

    RMSNorm makes it a Llama, or one of its kin; LayerNorm a GPT-2, or with rotary positions a
    StarCoder2. Raises InputError for what the class cannot express.
    """
    name, hf = _llama(config, length) if isinstance(config.positions, Rotary) else _gpt2(config)
    model = FAMILIES[name].classes[0]
    counterpart = Counterpart(family=FAMILIES[name], model=model, config=hf, generation=generation)
    return _checked(counterpart, config)


def encoder(config: EncoderOnlyConfig) -> Counterpart:
    """Return the class for an encoder alone: BERT, with the head that it has."""
    hf = {
        **named(FAMILIES["bert"], config),
        "type_vocab_size": max(1, config.num_token_types),
        "max_position_embeddings": _places(config),
        "hidden_act": _activation(config),
        "architectures": [HEADS[config.head.kind]],
        "tie_word_embeddings": True,
        **_labels(config.head),
    }
    counterpart = Counterpart(
        family=FAMILIES["bert"], model=HEADS[config.head.kind], config=hf, generation={}
    )
    return _checked(counterpart, config)


def _llama(config: DecoderOnlyConfig, length: int) -> tuple[str, dict[str, Any]]:
    """The config of Llama, Mistral, Qwen3 or StarCoder2, and which of them it is for."""
    patterns = _explicit(config).patterns
    window = next((p.size for p in patterns if isinstance(p, SlidingWindow)), None)
    if config.norm == "layer":
        name = "starcoder2"
    elif config.qk_norm:
        name = "qwen3"
    else:
        name = "llama" if window is None else "mistral"
    rotary = config.positions
    assert isinstance(rotary, Rotary)  # noqa: S101 (the caller asked)
    kinds = ["full_attention" if p == Causal() else "sliding_attention" for p in patterns]
    each_layer = {"layer_types": kinds} if name == "qwen3" else {}
    return name, {
        **named(FAMILIES[name], config),
        "num_key_value_heads": config.num_kv_heads or config.num_heads,
        "head_dim": config.width,
        "hidden_act": _activation(config),
        "mlp_bias": config.bias if config.ffn_bias is None else config.ffn_bias,
        "max_position_embeddings": length,
        "rope_parameters": {"rope_type": "default", "rope_theta": rotary.base},
        "sliding_window": window,
        "use_sliding_window": window is not None,
        **each_layer,
    }


def _gpt2(config: DecoderOnlyConfig) -> tuple[str, dict[str, Any]]:
    return "gpt2", {
        **named(FAMILIES["gpt2"], config),
        "n_inner": config.d_ff,
        "n_positions": _places(config),
        "activation_function": _activation(config),
        "scale_attn_weights": config.attention_scale != 1.0,
    }


def named(family: Family, config: ModelConfig) -> dict[str, Any]:
    """Return what the table of a family says, read backwards, and the ids of special tokens."""
    fields_of = {key: ours for ours, key in family.fields.items() if isinstance(key, str)}
    return {key: getattr(config, ours) for key, ours in fields_of.items()} | token_ids(config)


def token_ids(config: ModelConfig) -> dict[str, int]:
    """Return the ids of the special tokens that there are, by their names."""
    ids = {f"{name}_token_id": getattr(config, f"{name}_id") for name in ("pad", "bos", "eos")}
    return {key: id_ for key, id_ in ids.items() if id_ >= 0}


def _places(config: OneStack) -> int:
    """The positions of a table that is learned; what has another scheme is refused later."""
    return config.positions.max_length if isinstance(config.positions, Learned) else 1


def _activation(config: OneStack) -> str:
    """Their name of an activation; any of theirs where they have none, to be refused later."""
    return next((k for k, v in ACTIVATIONS.items() if v == config.activation), "relu")


def _labels(head: Head) -> dict[str, Any]:
    if not isinstance(head, ClassificationHead | TaggingHead):
        return {}
    return {
        "id2label": dict(enumerate(head.labels)),
        "label2id": {label: number for number, label in enumerate(head.labels)},
    }


# ---------------------------------------------------------------- what is lost


def _checked(counterpart: Counterpart, config: OneStack) -> Counterpart:
    """Raise InputError for the first field that their config does not give back."""
    target = f"Hugging Face's {counterpart.model}"
    read = counterpart.family.config(counterpart.config)
    assert isinstance(read, OneStack)  # noqa: S101
    ours, back = _explicit(config), _explicit(read)
    for field in fields(config):
        kept, found = (getattr(each, field.name) for each in (ours, back))
        zeros = field.name in ZEROS and not kept
        if kept != found and not zeros and field.name not in OF_TRAINING:
            raise refusal(config, field.name, target)
    return counterpart


def _explicit(config: OneStack) -> OneStack:
    """A config with a value for each field that has one by others."""
    first = Causal() if isinstance(config, DecoderOnlyConfig) else Full()
    patterns: Iterable[Any] = config.patterns or (first,)
    return replace(
        config,
        num_kv_heads=config.num_kv_heads or config.num_heads,
        head_dim=config.width,
        qkv_bias=config.bias if config.qkv_bias is None else config.qkv_bias,
        ffn_bias=config.bias if config.ffn_bias is None else config.ffn_bias,
        final_norm=config.ends_in_norm,
        patterns=tuple(islice(cycle(patterns), config.num_layers)),
    )
