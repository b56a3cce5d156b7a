"""Rotary positions as a `config.json` tells them, before and since version 5 of transformers."""

import math
from collections.abc import Mapping

from dragoman.errors import InputError
from dragoman.models.foreign.reading import HF, only, required, unsupported
from dragoman.nn import DynamicScaling, LinearScaling, Llama3Scaling, Rotary, YaRN
from dragoman.nn.position import RotaryScaling


def rotary(hf: HF) -> Rotary:
    """Return our scheme.

    Since version 5 all is in `rope_parameters`; before, the base was `rope_theta`, and a scaling
    was in `rope_scaling`, its name first under `type` and later under `rope_type`.
    """
    rope: HF = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    for key, value in rope.items():
        if isinstance(value, Mapping):
            raise InputError(unsupported(key, value, "all layers must have the same positions"))
    for where in (hf, rope):
        if where.get("partial_rotary_factor") is not None:
            only(where, "partial_rotary_factor", 1.0)
    base = rope.get("rope_theta") or hf.get("rope_theta") or 10000.0
    return Rotary(base=base, scaling=_scaling(hf, rope))


def _scaling(hf: HF, rope: HF) -> RotaryScaling | None:
    match rope.get("rope_type", rope.get("type", "default")):
        case "default":
            return None
        case "linear":
            return LinearScaling(factor=required(rope, "factor"))
        case "dynamic":
            return DynamicScaling(
                factor=required(rope, "factor"),
                trained_length=required(hf, "max_position_embeddings"),
            )
        case "yarn":
            return _yarn(hf, rope)
        case "llama3":
            return Llama3Scaling(
                factor=required(rope, "factor"),
                trained_length=_trained_length(hf, rope),
                low_freq_factor=required(rope, "low_freq_factor"),
                high_freq_factor=required(rope, "high_freq_factor"),
            )
        case kind:
            known = "known are default, linear, dynamic, yarn and llama3"
            raise InputError(unsupported("rope_type", kind, known))


def _yarn(hf: HF, rope: HF) -> YaRN:
    only(rope, "truncate", value=True)
    trained = _trained_length(hf, rope)
    factor = rope.get("factor") or required(hf, "max_position_embeddings") / trained
    magnitude = rope.get("attention_factor")
    if magnitude is None and rope.get("mscale") and rope.get("mscale_all_dim"):
        log = math.log(max(factor, 1.0))
        magnitude = (0.1 * rope["mscale"] * log + 1) / (0.1 * rope["mscale_all_dim"] * log + 1)
    return YaRN(
        factor=factor,
        trained_length=trained,
        beta_fast=rope.get("beta_fast") or 32.0,
        beta_slow=rope.get("beta_slow") or 1.0,
        attention_factor=magnitude,
    )


def _trained_length(hf: HF, rope: HF) -> int:
    key = "original_max_position_embeddings"
    length: int = hf.get(key) or rope.get(key) or required(hf, "max_position_embeddings")
    return length
