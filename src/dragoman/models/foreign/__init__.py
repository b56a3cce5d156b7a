"""Models of other libraries as ours: what their config says, and where each of their tensors goes.

One file for each family of Hugging Face's `transformers` and those that share its names. Each has
`config`, from what a `config.json` holds to ours, and `weights`, from a state dict to ours.
Nothing here imports that library; the tests in `tests/parity` compare with it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from dragoman.errors import InputError, did_you_mean
from dragoman.models.config import ModelConfig
from dragoman.models.foreign import bart, bert, gpt2, llama, t5
from dragoman.models.foreign.reading import HF, unsupported

__all__ = ["FAMILIES", "Family", "family"]


class Family(NamedTuple):
    """How models of one family become ours."""

    config: Callable[[HF], ModelConfig]
    """From what `config.json` holds; InputError names a key whose value we cannot build."""
    weights: Callable[[Mapping[str, Tensor], Any], dict[str, Tensor]]
    """From a state dict and our config; InputError names tensors that do not fit."""


FAMILIES: Mapping[str, Family] = {
    "bart": Family(bart.bart_config, bart.bart_weights),
    "bert": Family(bert.config, bert.weights),
    "gpt2": Family(gpt2.config, gpt2.weights),
    "llama": Family(llama.config, llama.weights),
    "m2m_100": Family(bart.m2m100_config, bart.m2m100_weights),
    "marian": Family(bart.marian_config, bart.marian_weights),
    "mbart": Family(bart.bart_config, bart.bart_weights),
    "mistral": Family(llama.config, llama.weights),
    "qwen2": Family(llama.config, llama.weights),
    "qwen3": Family(llama.config, llama.weights),
    "t5": Family(t5.config, t5.weights),
}


def family(hf: HF) -> Family:
    """Return the family that the `model_type` of a config names."""
    name = str(hf.get("model_type"))
    if name not in FAMILIES:
        hint = did_you_mean(name, FAMILIES)
        raise InputError(unsupported("model_type", name, f"known are {', '.join(FAMILIES)}{hint}"))
    return FAMILIES[name]
