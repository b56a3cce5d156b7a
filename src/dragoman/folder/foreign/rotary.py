"""Rotary positions in a Hugging Face config, and how they are scaled for longer texts."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dragoman.errors import InputError
from dragoman.folder.foreign.reading import HF, only, required, unsupported
from dragoman.nn import DynamicScaling, LinearScaling, Llama3Scaling, LongRope, Rotary, YaRN
from dragoman.nn.position.rotary import RotaryScaling


def rotary(hf: HF) -> Rotary:
    """Return our rotary scheme.

    Since version 5 of transformers, `rope_parameters` contains everything. Before, the base was
    `rope_theta` and the scaling `rope_scaling`, named by `type` and later by `rope_type`.
    """
    return rotary_of(hf, rope_of(hf))


def rope_of(hf: HF) -> HF:
    """Return the rotary parameters; `rope_scaling` replaces the others, as in transformers."""
    rope: HF = hf.get("rope_scaling") or hf.get("rope_parameters") or {}
    return rope


def rope_type(rope: HF) -> Any:  # noqa: ANN401 (JSON)
    """Return the name of their scaling."""
    return rope.get("rope_type", rope.get("type", "default"))


def rotary_of(hf: HF, rope: HF, *, partly: bool = False) -> Rotary:
    """Return our rotary scheme for these rotary parameters; `hf` completes them.

    `partly` is for families that may rotate a share of a head's components.
    """
    for key, value in rope.items():
        if isinstance(value, Mapping):
            raise InputError(unsupported(key, value, "all layers must have the same positions"))
    share = 1.0
    for where in (hf, rope):
        if where.get("partial_rotary_factor") is not None:
            if not partly:
                only(where, "partial_rotary_factor", 1.0)
            share = where["partial_rotary_factor"]
    base = rope.get("rope_theta") or hf.get("rope_theta") or 10000.0
    return Rotary(base=base, scaling=_scaling(hf, rope), share=share)


def two_bases(hf: HF, base: float, near: float) -> Rotary:
    """Return rotary positions whose parameters differ between layers with and without a window.

    Layers with a window are not scaled; before version 5 of transformers, `rope_scaling` was that
    of the others. `base` and `near` are the bases without and with a window, if `rope_parameters`
    has none.
    """
    only(hf, "original_max_position_embeddings", None)  # their classes read it elsewhere alone
    kinds: HF = hf.get("rope_parameters") or {}
    scaled = kinds.get("full_attention") or {"rope_type": "default"}  # kept by a mere `type`
    whole = {"rope_theta": base, **scaled}
    local = {"rope_theta": near, **(kinds.get("sliding_attention") or {})}
    if rope_type(local) != "default":
        raise InputError(unsupported("rope_type", rope_type(local), "windows need default"))
    scheme = rotary_of(hf, whole | (hf.get("rope_scaling") or {}))
    return replace(scheme, local_base=local["rope_theta"])


def _scaling(hf: HF, rope: HF) -> RotaryScaling | None:
    match kind := rope_type(rope):
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
        case "longrope":
            return _longrope(hf, rope)
        case _:
            known = "known are default, linear, dynamic, yarn, longrope and llama3"
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


def _longrope(hf: HF, rope: HF) -> LongRope:
    trained = _trained_length(hf, rope)
    factor = rope.get("factor") or required(hf, "max_position_embeddings") / trained
    magnitude = rope.get("attention_factor")
    if magnitude is None:
        magnitude = math.sqrt(1 + math.log(max(factor, 1.0)) / math.log(trained))
    return LongRope(
        short=tuple(map(float, required(rope, "short_factor"))),
        long=tuple(map(float, required(rope, "long_factor"))),
        trained_length=trained,
        attention_factor=magnitude,
    )


def _trained_length(hf: HF, rope: HF) -> int:
    key = "original_max_position_embeddings"
    length: int = hf.get(key) or rope.get(key) or required(hf, "max_position_embeddings")
    return length
