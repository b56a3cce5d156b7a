"""The settings that another library supports, as a table of keys and values."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from dragoman.decoding import Decoding
from dragoman.errors import InputError, how_to_install
from dragoman.models.config import ModelConfig
from dragoman.nn import Causal, DynamicScaling, Full, LongRope, Rotary, SlidingWindow
from dragoman.plain import to_plain

Allowed = Collection[Any] | Callable[[Any], bool]
"""The supported values, or a function that tells whether a value is supported."""


def check_limits(config: ModelConfig, limits: Mapping[str, Allowed], target: str) -> None:
    """Raise InputError for the first key of the config with a value that is not supported."""
    for key in (key for key in limits if hasattr(config, key)):
        value, allowed = getattr(config, key), limits[key]
        if not (allowed(value) if callable(allowed) else value in allowed):
            raise refusal(config, key, target)


def refusal(config: ModelConfig, key: str, target: str) -> InputError:
    """Return the error for a value of a config that is not supported."""
    shown = json.dumps(to_plain(config)[key])
    return InputError(
        f"{key} = {shown} of the model's config cannot be expressed in {target}; convert a model "
        "that is trained without it"
    )


def check_dense(config: ModelConfig, target: str) -> None:
    """Raise InputError for attention or positions without a plain formula, and word features."""

    def dense(patterns: Iterable[Any]) -> bool:
        return all(isinstance(pattern, Causal | Full | SlidingWindow) for pattern in patterns)

    limits = dict.fromkeys(("encoder_patterns", "decoder_patterns", "patterns"), dense)
    check_limits(config, {**limits, "positions": is_fixed, "word_features": (0,)}, target)


def is_fixed(scheme: object) -> bool:
    """Whether positions do not depend on the length of the text."""
    return not isinstance(scheme, Rotary) or not isinstance(
        scheme.scaling, DynamicScaling | LongRope
    )


def check_installed(package: str, *, extra: str = "export") -> None:
    """Raise InputError if an optional package is missing; `extra` installs it."""
    if find_spec(package) is None:
        raise InputError(
            f"converting needs {package}, which is not installed; {how_to_install(extra)}"
        )


def num_positions(decoding: Decoding) -> int:
    """Return the length of a table of positions: 1024, or more if the folder requires it."""
    longest = decoding.max_src_tokens
    written = decoding.max_length_factor * longest + decoding.max_length_constant
    return max(1024, longest + 1, int(written) + 1)
