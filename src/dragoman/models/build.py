"""Building models from configs, with new weights or on the meta device; counting parameters."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch.overrides import TorchFunctionMode

from dragoman.errors import InputError
from dragoman.files.reading import open_regular
from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.decoder_only import DecoderOnly
from dragoman.models.encoder_decoder import EncoderDecoder
from dragoman.models.encoder_only import EncoderOnly
from dragoman.wording import counted

Model = EncoderDecoder | DecoderOnly | EncoderOnly
Shape = tuple[int, ...]

MOST_TENSORS = 100_000
"""Maximum number of tensors in a checkpoint: Llama 3.1 405B has 1,138, and DeepSeek-V3 with its
experts 91,991. The library needs seconds and gigabytes for a million names."""
LARGEST_HEADER = 100_000_000
"""Maximum size of a safetensors header in bytes, as in the format."""
SCALE = ".scale"
"""Suffix of the name of an 8-bit matrix's scales."""
PART_NAMES = {"src_embedding": "source embedding", "tgt_embedding": "target embedding"}
"""Displayed names of parts, if not the module's."""


def build(config: ModelConfig) -> Model:
    """Build the variant of the config's kind, with newly initialized weights."""
    match config:
        case EncoderDecoderConfig():
            return EncoderDecoder(config)
        case DecoderOnlyConfig():
            return DecoderOnly(config)
        case EncoderOnlyConfig():
            return EncoderOnly(config)


def build_on_meta(config: ModelConfig) -> Model:
    """Build a model on the meta device, without initializing weights.

    Raises InputError for sizes that PyTorch cannot build: beyond 64 bits, or negative.
    """
    try:
        with torch.device("meta"), _Undrawn():
            return build(config)
    except (RuntimeError, TypeError) as error:
        why = str(error).partition("\n")[0]
        if not re.search("overflow|negative dimension", why, re.IGNORECASE):  # another error
            raise
        raise InputError(f"the model's sizes cannot be built ({why}); change them") from error


class _Undrawn(TorchFunctionMode):
    """Skips initialization: even on `meta`, it imports PyTorch modules for a second."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        if getattr(func, "__module__", "") == nn.init.__name__:
            return None
        return func(*args, **(kwargs or {}))


def count_parameters(config: ModelConfig) -> dict[str, int]:
    """Count the parameters of each part of a model; a shared matrix counts once.

    The model is built on the `meta` device, so that all its modules are counted.
    """
    return dict(_counted(config))


@lru_cache(maxsize=64)
def _counted(config: ModelConfig) -> tuple[tuple[str, int], ...]:
    seen, counts = set[int](), list[tuple[str, int]]()
    for name, part in build_on_meta(config).named_children():
        new = {id(weights): weights.numel() for weights in part.parameters()}
        counts.append((PART_NAMES.get(name, name), sum(new[key] for key in new.keys() - seen)))
        seen |= new.keys()
    return tuple(counts)


@contextmanager
def open_tensors(path: Path, framework: str = "pt") -> Iterator[Any]:
    """Open a safetensors file. Raises InputError for more than `MOST_TENSORS` tensors.

    Each has two lists in the header, its shape and offsets, which are counted before parsing.
    """
    with open_regular(path) as stream:
        length = int.from_bytes(stream.read(8), "little")
        check_number(path, stream.read(min(length, LARGEST_HEADER)).count(b"[") // 2)
        with safe_open(path, framework=framework) as stored:
            yield stored


def check_name(path: Path) -> None:
    """Raise InputError for a path whose bytes are not UTF-8: safetensors cannot open it."""
    try:
        os.fsencode(path).decode()
    except UnicodeError as error:
        raise InputError(f"{path} is not UTF-8, as a model's path must be; rename it.") from error


def check_number(path: Path, number: int) -> None:
    """Raise InputError for a file or an index with more than `MOST_TENSORS` tensors."""
    if number > MOST_TENSORS:
        raise InputError(
            f"{path} has more than {MOST_TENSORS:,} tensors, which no model has; take the model "
            "from another place."
        )


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """Open a weight file; the library's errors become InputErrors."""
    check_name(path)
    try:
        if not path.is_file():
            raise InputError(f"{path.parent} has no weights: {path.name} is missing.")
        with open_tensors(path) as stored:
            yield stored
    except SafetensorError as error:
        raise InputError(
            f"{path} is damaged or cut short ({error}); copy or train the model again."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def build_empty(path: Path, config: ModelConfig, allowed: Sequence[str]) -> Model:
    """Build a model on the meta device, after checking that the weights of a file fit it.

    `allowed` are the dtypes of the file by their names in safetensors; only matrices may have 8
    bits. Raises InputError if they do not fit.
    """
    with reading(path) as stored:
        slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118 -- no mapping
        dtypes = {name: found.get_dtype() for name, found in slices.items()}
        shapes = {name: tuple(found.get_shape()) for name, found in slices.items()}
    rounded = [name for name, dtype in dtypes.items() if dtype == "I8"]
    no_matrices = {name for name in rounded if len(shapes[name]) != 2}
    if other := no_matrices | {name for name, dtype in dtypes.items() if dtype not in allowed}:
        raise InputError(f"{path}: {some(other)} must hold 32-bit floating-point numbers.")
    if config.depth > len(shapes):  # could be too many layers to build
        raise InputError(
            f"{path} holds {counted(len(shapes), 'tensor')}, but config.json describes a model of "
            f"{counted(config.depth, 'layer')}; the two files are not of one model."
        )
    try:
        model = build_on_meta(config)
    except InputError as error:
        raise InputError(f"{path.parent / 'config.json'}: {error}") from error
    wanted = {name: tuple(p.shape) for name, p in model.named_parameters()}
    _compare(path, shapes, wanted | {name + SCALE: shapes[name][:1] for name in rounded})
    return model


def _compare(path: Path, found: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> None:
    """Check that every weight is used, every parameter set, and every shape as in the config."""
    if missing := set(wanted) - set(found):
        raise InputError(f"{path} lacks weights that config.json asks for: {some(missing)}.")
    if unknown := set(found) - set(wanted):
        raise InputError(
            f"{path} holds weights that config.json has no place for: {some(unknown)}."
        )
    if wrong := [name for name in wanted if found[name] != wanted[name]]:
        name, more = wrong[0], f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"{path}: {name} has shape {found[name]}, but config.json makes it {wanted[name]}"
            f"{more}; the two files are not of one model."
        )


def some(names: Iterable[str]) -> str:
    """List the first four names and count the others."""
    listed = sorted(names)
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    return ", ".join(listed[:4]) + more
