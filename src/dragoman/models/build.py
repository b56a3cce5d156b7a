"""From a config to its model: with weights drawn anew, or empty for weights that a file holds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from dragoman.errors import InputError
from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.count import count_parameters
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.encoder_only import EncoderOnly

Model = EncoderDecoder | DecoderOnly | EncoderOnly
Shape = tuple[int, ...]


def build(config: ModelConfig) -> Model:
    """Build the variant that the config's kind names."""
    match config:
        case EncoderDecoderConfig():
            return EncoderDecoder(config)
        case DecoderOnlyConfig():
            return DecoderOnly(config)
        case EncoderOnlyConfig():
            return EncoderOnly(config)


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """The open weights, with the library's errors in our words."""
    try:
        if not path.is_file():
            raise InputError(f"{path.parent} has no weights: {path.name} is missing.")
        with safe_open(path, framework="pt") as stored:
            yield stored
    except SafetensorError as error:
        raise InputError(
            f"{path} is damaged or cut short ({error}); copy or train the model again."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def build_empty(path: Path, config: ModelConfig, stored: Any, dtypes: Sequence[str]) -> Model:  # noqa: ANN401 -- the library's handle
    """The model with weights that take no memory, after checking that the stored ones fit it."""
    slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118 -- no mapping
    if other := [name for name, found in slices.items() if found.get_dtype() not in dtypes]:
        raise InputError(f"{path}: {_some(other)} must hold 32-bit floating-point numbers.")
    shapes = {name: tuple(found.get_shape()) for name, found in slices.items()}
    held, asked = sum(map(math.prod, shapes.values())), sum(count_parameters(config).values())
    if asked > 2 * held:  # also too many layers to build before looking closer
        raise InputError(
            f"{path} holds {held:,} numbers, but config.json describes a model of {asked:,} "
            "parameters; the two files are not of one model."
        )
    try:
        with torch.device("meta"):
            model = build(config)
    except InputError as error:
        raise InputError(f"{path.parent / 'config.json'}: {error}") from error
    _compare(path, shapes, {name: tuple(p.shape) for name, p in model.named_parameters()})
    return model


def _compare(path: Path, found: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> None:
    """Every weight used, every weight set, every shape as the config says."""
    if missing := sorted(set(wanted) - set(found)):
        raise InputError(f"{path} lacks weights that config.json asks for: {_some(missing)}.")
    if unknown := sorted(set(found) - set(wanted)):
        raise InputError(
            f"{path} holds weights that config.json has no place for: {_some(unknown)}."
        )
    wrong = [name for name in wanted if found[name] != wanted[name]]
    if wrong:
        name = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"{path}: {name} has shape {found[name]}, but config.json makes it {wanted[name]}"
            f"{more}; the two files are not of one model."
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
