"""Read the `config.json` of another library, and reject what we would compute differently."""

import json
from collections.abc import Mapping
from typing import Any

from dragoman.errors import InputError
from dragoman.nn.feedforward import Activation

HF = Mapping[str, Any]
"""What a `config.json` of Hugging Face holds.

A key that is missing has the default of its class, which each family lists.
"""

ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
UNKNOWN_ID = -1
"""Of a token that the config does not tell; the tokenizer may."""


def required(hf: HF, key: str) -> Any:  # noqa: ANN401 (JSON)
    """Return a value without which no model can be built."""
    if hf.get(key) is None:
        raise InputError(f"the model's config lacks {key}, without which no model can be built")
    return hf[key]


def activation(name: str, key: str) -> Activation:
    """Return our name of an activation that a key of the config gives."""
    if name not in ACTIVATIONS:
        raise InputError(unsupported(key, name, f"known are {', '.join(ACTIVATIONS)}"))
    return ACTIVATIONS[name]


def token_id(hf: HF, key: str) -> int:
    """Return the id of a special token, of several the first; UNKNOWN_ID where there is none."""
    value = hf.get(key)
    if isinstance(value, list):
        value = value[0] if value else None
    return UNKNOWN_ID if value is None else int(value)


def only(hf: HF, key: str, value: object) -> None:
    """Raise InputError for any value but the one that is supported."""
    if key in hf and hf[key] != value:
        raise InputError(unsupported(key, hf[key], f"only {json.dumps(value)} is"))


def equal(hf: HF, first: str, second: str) -> Any:  # noqa: ANN401 (JSON)
    """Return the one value of two keys that are one setting here."""
    value = required(hf, first)
    if required(hf, second) != value:
        raise InputError(
            unsupported(second, hf[second], f"it must be as {first}, {json.dumps(value)}")
        )
    return value


def unsupported(key: str, value: object, known: str) -> str:
    """Say that a value is not supported, and what is."""
    return f"{key} = {json.dumps(value)} in the model's config is not supported; {known}"
