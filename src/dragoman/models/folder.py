"""The model folder: all that translating needs, and what training writes.

    config.json          format number, architecture, default decoding, hashes of the other files
    model.safetensors    the weights, a matrix that several places share stored once
    tokenizer.json       for both languages; or tokenizer.src.json and tokenizer.tgt.json
    README.md            the model card
    training/            what resuming needs; loading a model does not look into it

Nothing is unpickled. A folder either loads whole, every weight used and every weight set, or is
refused with one sentence. The config holds hashes of the tokenizers, of the weights and of its own
architecture, so that a flipped bit or a file of another model is noticed. Saving writes beside the
old files, syncs, and then renames, the config last: a process killed or a power failure in between
leaves the old model, the new one, or files whose hashes the old config refuses.
"""

import hashlib
import json
import math
import shutil
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from dragoman.errors import DragomanError, InputError, nearest
from dragoman.files.durable import rename_durably, sync
from dragoman.models.build import Model, build
from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.count import count_parameters
from dragoman.models.defaults import (
    DecodingDefaults,
    GenerationDefaults,
    ReadingDefaults,
    Words,
)
from dragoman.models.heads import MaskedLanguageHead
from dragoman.settings import parse_settings, to_plain
from dragoman.version import __version__

__all__ = [
    "FORMAT",
    "PARTS",
    "DecodingDefaults",
    "FolderConfig",
    "GenerationDefaults",
    "ReadingDefaults",
    "Saves",
    "Words",
    "load_model",
    "read_config",
    "save_model",
    "tokenizer_paths",
]

FORMAT = 2
"""The number of the format written here; it grows when an older dragoman could not read it."""

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
JOINT, SRC, TGT = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"
PARTS = (CONFIG, WEIGHTS, CARD, JOINT, SRC, TGT)
"""The files that a folder consists of."""
UNFINISHED = ".saving"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConfig:
    """What `config.json` holds."""

    format: int = FORMAT
    """The format of the folder."""
    dragoman: str = __version__
    """The version that wrote it."""
    model: ModelConfig
    """The architecture; its `kind` is the folder's kind."""
    decoding: DecodingDefaults = field(default_factory=DecodingDefaults)
    """How to decode."""
    generation: GenerationDefaults | None = None
    """How to generate, where the model is decoder-only."""
    reading: ReadingDefaults | None = None
    """How to read, where the model is encoder-only."""
    src_lang: str | None = None
    """The source language, where known."""
    tgt_lang: str | None = None
    """The target language, where known."""
    tokenizers: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each tokenizer file that the weights were trained with; saving fills it in."""
    weights_sha256: str | None = None
    """Hash of the weights; saving fills it in. Format 1 has none."""
    model_sha256: str | None = None
    """Hash of the section `model`; saving fills it in. Format 1 has none."""


class Saves(Protocol):
    """What can write itself to a file: a tokenizer."""

    def save(self, path: Path) -> None:
        """Write to `path`."""


# ---------------------------------------------------------------- saving


def save_model(
    folder: Path,
    weights: Model | Mapping[str, Tensor],
    config: FolderConfig,
    *,
    tokenizers: tuple[Saves, Saves],
    card: str | None = None,
) -> FolderConfig:
    """Write a model folder, in one step for whoever reads it, and return its config.

    `weights` is the model or a state dict of it; `tokenizers` are those of source and target, the
    same object twice when they are one; `card` is the text of `README.md`. Raises InputError where
    no folder can be, DragomanError when writing fails (a full disk): the older model, if there
    is one, is then as it was, and nothing half-written stays.
    """
    src, tgt = tokenizers
    with _staging(folder) as staged:
        names = {JOINT: src} if src is tgt else {SRC: src, TGT: tgt}
        for name, tokenizer in names.items():
            tokenizer.save(staged / name)
        _write_weights(staged / WEIGHTS, _stored_once(weights, config.model))
        config = replace(
            config,
            format=FORMAT,
            dragoman=__version__,
            tokenizers={name: _sha256(staged / name) for name in names},
            weights_sha256=_sha256(staged / WEIGHTS),
            model_sha256=_digest(to_plain(config.model)),
        )
        text = json.dumps(to_plain(config), indent=2, sort_keys=True, ensure_ascii=False)
        (staged / CONFIG).write_text(text + "\n", encoding="utf-8")
        (staged / WEIGHTS).chmod((staged / CONFIG).stat().st_mode)  # the library makes it private
        if card is not None:
            (staged / CARD).write_text(card, encoding="utf-8")
        sync(staged)  # a disk may say only now that it is full
        for name in [*names, WEIGHTS, *([CARD] if card is not None else []), CONFIG]:
            rename_durably(staged / name, folder / name)
        for name in {JOINT, SRC, TGT} - set(names):
            (folder / name).unlink(missing_ok=True)
    return config


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A folder inside `folder` to write to; it is gone afterwards, and all its errors are ours."""
    new = not folder.exists()
    staged = folder / UNFINISHED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
    except OSError as error:
        raise InputError(
            f"Cannot write the model to {folder}: {error.strerror}; give another folder."
        ) from error
    try:
        yield staged
    except (OSError, SafetensorError, DragomanError) as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DragomanError(
            f"Saving the model to {folder} failed ({reason}); nothing there was changed."
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    save_file({name: value.contiguous() for name, value in weights.items()}, path, {"format": "pt"})


def _stored_once(weights: Model | Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The weights in fp32 on the CPU without the second and third names of tied matrices."""
    state = weights if isinstance(weights, Mapping) else weights.state_dict()
    again = _tied_names(config)
    return {
        name: value.detach().float().cpu() for name, value in state.items() if name not in again
    }


def _tied_names(config: ModelConfig) -> frozenset[str]:
    """The names under which a matrix appears again."""
    match config:
        case EncoderDecoderConfig(tie_embeddings="target-output"):
            return frozenset({"output.weight"})
        case EncoderDecoderConfig(tie_embeddings="source-target"):
            return frozenset({"tgt_embedding.weight"})
        case EncoderDecoderConfig(tie_embeddings="all"):
            return frozenset({"tgt_embedding.weight", "output.weight"})
        case DecoderOnlyConfig(tie_embeddings=True):
            return frozenset({"output.weight"})
        case EncoderOnlyConfig(head=MaskedLanguageHead()):
            return frozenset({"head.output.weight"})
    return frozenset()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(section: Mapping[str, Any]) -> str:
    """SHA-256 of a section of the config, however it is indented and its keys are ordered."""
    return hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()


# ---------------------------------------------------------------- loading


def load_model(folder: Path) -> tuple[Model, FolderConfig]:
    """Read a model folder: the model in evaluation mode, on the CPU, and the config.

    Raises InputError, with one sentence, for a folder that is missing or unfinished, a file that
    is damaged, a newer format, weights that are missing, left over, of another shape or not
    finite, and weights or a tokenizer that are not those the config was saved with. Warns where an
    older dragoman wrote no hash of the weights.
    """
    config = read_config(folder)
    tokenizer_paths(folder, config)
    path = folder / WEIGHTS
    with _reading(path) as stored, ThreadPoolExecutor(1) as thread:
        hashed = thread.submit(_sha256, path)
        model = _build_empty(path, config.model, stored)
        for name, parameter in model.named_parameters():
            weight = nn.Parameter(stored.get_tensor(name).clone())  # else a view of the file
            torch.utils.swap_tensors(parameter, weight)  # keeps tied matrices tied
        if config.weights_sha256 not in (None, found := hashed.result()):
            raise InputError(
                f"{path} is not the file that {CONFIG} was saved with (its SHA-256 is {found}): it "
                "is damaged or of another model; copy or train the model again."
            )
    for name, parameter in model.named_parameters():
        if not all(math.isfinite(bound) for bound in parameter.detach().aminmax()):
            raise InputError(
                f"{path}: the weights {name} hold NaN or infinity, so the training that wrote "
                "them had failed; use an earlier checkpoint."
            )
    if config.weights_sha256 is None:
        warnings.warn(
            f"{folder} was written by an older dragoman without a hash of the weights, so damage "
            "to them cannot be noticed.",
            stacklevel=2,
        )
    return model.eval(), config


def read_config(folder: Path) -> FolderConfig:
    """The config of a model folder; says what `folder` is when it is no such folder."""
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(_why_no_model(folder))
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(data, dict) or type(data.get("format")) is not int or data["format"] < 1:
        raise InputError(f"{path} has no format number, so dragoman did not write it.")
    if data["format"] > FORMAT:
        raise InputError(
            f"{path} has format {data['format']}, made by a newer dragoman "
            f"({data.get('dragoman', 'version unknown')}); this one, {__version__}, reads up to "
            f"format {FORMAT}: upgrade with pip install --upgrade dragoman."
        )
    config = parse_settings(FolderConfig, data, str(path))
    if config.format > 1 and None in (config.weights_sha256, config.model_sha256):
        raise InputError(f"{path} is damaged: it lacks the hash of the weights or of the model.")
    if config.model_sha256 not in (None, _digest(data["model"])):
        raise InputError(
            f"{path}: the section model is not the one that the weights were saved with; put back "
            f"the {CONFIG} that training wrote."
        )
    return config


def tokenizer_paths(folder: Path, config: FolderConfig) -> tuple[Path, Path]:
    """The tokenizer files of source and target, after checking that they are the right ones."""
    names = sorted(config.tokenizers)
    if names not in ([JOINT], [SRC, TGT]):
        raise InputError(
            f"{folder / CONFIG}: tokenizers must name {JOINT}, or {SRC} and {TGT}, "
            f"not {', '.join(names) or 'nothing'}."
        )
    for name, trained_with in config.tokenizers.items():
        try:
            found = _sha256(folder / name)
        except OSError as error:
            raise InputError(f"Cannot read {folder / name}: {error.strerror}.") from error
        if found != trained_with:
            raise InputError(
                f"{folder / name} is not the tokenizer that the weights were trained with "
                f"(SHA-256 {found[:12]}... instead of {trained_with[:12]}...); "
                "put back the file that training wrote."
            )
    return folder / names[0], folder / names[-1]


def _why_no_model(folder: Path) -> str:
    if not folder.exists():
        siblings = folder.parent.iterdir() if folder.parent.is_dir() else ()
        close = nearest(folder.name, (s.name for s in siblings if (s / CONFIG).is_file()))
        hint = f"; did you mean {folder.parent / close}?" if close else "."
        return f"There is no model folder {folder}{hint}"
    if not folder.is_dir():
        return f"{folder} is a file; give the model folder, which holds {CONFIG} and {WEIGHTS}."
    if (folder / "training").is_dir():
        return (
            f"{folder} holds a training run that has not written a model yet; "
            "let it go on until it does, by the command that began it."
        )
    return f"{folder} is no model folder: it has no {CONFIG}."


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
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


def _build_empty(path: Path, config: ModelConfig, stored: Any) -> Model:  # noqa: ANN401 -- the library's handle
    """The model with weights that take no memory, after checking that the stored ones fit it."""
    slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118 -- no mapping
    if other := [name for name, found in slices.items() if found.get_dtype() != "F32"]:
        raise InputError(f"{path}: {_some(other)} must hold 32-bit floating-point numbers.")
    shapes = {name: tuple(found.get_shape()) for name, found in slices.items()}
    held, asked = sum(map(math.prod, shapes.values())), sum(count_parameters(config).values())
    if asked > 2 * held:  # also too many layers to build before looking closer
        raise InputError(
            f"{path} holds {held:,} numbers, but {CONFIG} describes a model of {asked:,} "
            "parameters; the two files are not of one model."
        )
    try:
        with torch.device("meta"):
            model = build(config)
    except InputError as error:
        raise InputError(f"{path.parent / CONFIG}: {error}") from error
    _compare(path, shapes, {name: tuple(p.shape) for name, p in model.named_parameters()})
    return model


Shape = tuple[int, ...]


def _compare(path: Path, found: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> None:
    """Every weight used, every weight set, every shape as the config says."""
    if missing := sorted(set(wanted) - set(found)):
        raise InputError(f"{path} lacks weights that {CONFIG} asks for: {_some(missing)}.")
    if unknown := sorted(set(found) - set(wanted)):
        raise InputError(f"{path} holds weights that {CONFIG} has no place for: {_some(unknown)}.")
    wrong = [name for name in wanted if found[name] != wanted[name]]
    if wrong:
        name = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"{path}: {name} has shape {found[name]}, but {CONFIG} makes it {wanted[name]}{more}; "
            "the two files are not of one model."
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
