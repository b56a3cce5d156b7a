"""The model folder: all that translating needs, and what training writes.

    config.json          format number, architecture, default decoding, hashes of the other files
    model.safetensors    the weights, a matrix that several places share stored once
    tokenizer.json       for both languages; or tokenizer.src.json and tokenizer.tgt.json
    huggingface/         in their place what a folder of Hugging Face had (`foreign/origin.py`)
    README.md            the model card
    training/            what resuming needs; loading a model does not look into it

Nothing is unpickled. A folder either loads whole, every weight used and every weight set, or is
rejected with one sentence. The config holds hashes of the tokenizers, of the weights and of its own
architecture, so that a flipped bit or a file of another model is noticed. Saving writes beside the
old files, syncs, and then renames. A process killed or a power failure in between leaves the old
weights or the new ones: the config comes first, and knows both. Where the architecture or the
tokenizers change, or the weights are in 8 bits now or were before, it comes last, and rejects files
that are not its own.
"""

import hashlib
import json
import math
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from dragoman.decoding import GENERATING, TRANSLATING, Decoding, merged
from dragoman.errors import DragomanError, InputError, nearest
from dragoman.files.reading import open_regular, read_object
from dragoman.files.writing import rename_durably, sync
from dragoman.models.build import Model, build_empty, build_on_meta, reading
from dragoman.models.config import ModelConfig
from dragoman.models.defaults import GenerationDefaults, PublishedDefaults, ReadingDefaults
from dragoman.models.eight_bits import in_float32, rounded
from dragoman.plain import to_plain
from dragoman.settings import parse_settings
from dragoman.version import __version__

FORMAT, IN_EIGHT_BITS, PUBLISHED = 2, 3, 4
"""The numbers of the format written here: with weights in fp32, with matrices rounded to 8 bits,
and with tokenizers of another library; they grow when an older dragoman could not read it."""
AS_IT_IS = 0
"""Stands for the format of a folder of Hugging Face that is read as it is."""

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
    decoding: Decoding = field(default_factory=Decoding)
    """How to decode."""
    generation: GenerationDefaults | None = None
    """How to generate, where the model is decoder-only."""
    reading: ReadingDefaults | None = None
    """How to read, where the model is encoder-only."""
    published: PublishedDefaults | None = None
    """What a model of another library needs beside; None for one that dragoman trained."""
    src_lang: str | None = None
    """The source language, where known."""
    tgt_lang: str | None = None
    """The target language, where known."""
    task: str | None = None
    """The module of a task from outside the package; of the others the model tells."""
    tokenizers: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each tokenizer file that the weights were trained with, and of all other files of
    `huggingface/`; saving fills it in."""
    weights_sha256: str | None = None
    """Hash of the weights; saving fills it in. Format 1 has none."""
    replaced_sha256: str | None = None
    """Hash of the weights that these replace; the folder may hold them if saving is killed."""
    model_sha256: str | None = None
    """Hash of the section `model`; saving fills it in. Format 1 has none."""

    @property
    def translating(self) -> Decoding:
        """The options of translating, over the defaults."""
        return merged(self.decoding, TRANSLATING)

    @property
    def generating(self) -> Decoding:
        """The folder's options of generating, over the defaults."""
        return merged(self.generation or Decoding(), GENERATING)


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
    tokenizers: tuple[Saves, Saves] | Mapping[str, Saves],
    card: str | None = None,
    eight_bits: bool = False,
) -> FolderConfig:
    """Write a model folder and return its config.

    Meanwhile, or after saving was killed, a reader finds the old model or the new one if both have
    the same architecture, tokenizers and format; else possibly a folder that is rejected.
    `weights` is the model or a state dict of it; `tokenizers` are those of source and target, the
    same object twice when they are one, or files by their names; `card` is the text of `README.md`;
    `eight_bits` rounds the matrices, to a quarter of the size. Raises InputError where no folder
    can be, DragomanError when writing fails (a full disk): the older model, if there is one, is
    then as it was, and nothing half-written stays.
    """
    if isinstance(tokenizers, Mapping):
        names = dict(tokenizers)
    else:
        src, tgt = tokenizers
        names = {JOINT: src} if src is tgt else {SRC: src, TGT: tgt}
    number = IN_EIGHT_BITS if eight_bits else FORMAT if config.published is None else PUBLISHED
    with _staging(folder) as staged:
        for name, tokenizer in names.items():
            for path in (staged / name, folder / name):
                path.parent.mkdir(exist_ok=True)
            tokenizer.save(staged / name)
        stored = _stored_once(weights, config.model)
        stored = rounded(stored, config.model) if eight_bits else stored
        save_file(stored, staged / WEIGHTS, {"format": "pt"})
        config = replace(
            config,
            format=number,
            dragoman=__version__,
            tokenizers={name: _sha256(staged / name) for name in names},
            weights_sha256=_sha256(staged / WEIGHTS),
            model_sha256=_digest(to_plain(config.model)),
        )
        config = replace(config, replaced_sha256=_replaced(folder, config))
        text = json.dumps(as_saved(config), indent=2, sort_keys=True, ensure_ascii=False)
        (staged / CONFIG).write_text(text + "\n", encoding="utf-8")
        (staged / WEIGHTS).chmod((staged / CONFIG).stat().st_mode)  # the library makes it private
        if card is not None:
            (staged / CARD).write_text(card, encoding="utf-8")
        sync(staged)  # a disk may say only now that it is full
        order = [WEIGHTS, CONFIG] if config.replaced_sha256 is None else [CONFIG, WEIGHTS]
        for name in [*names, *([CARD] if card is not None else []), *order]:
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


def _stored_once(weights: Model | Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The weights in fp32 on the CPU, each under its first name: a tied matrix has several."""
    state = weights if isinstance(weights, Mapping) else weights.state_dict()
    first = {name for name, _ in build_on_meta(config).named_parameters()}
    return {
        name: value.detach().float().cpu().contiguous()
        for name, value in state.items()
        if name in first
    }


def _replaced(folder: Path, config: FolderConfig) -> str | None:
    """The hash of the weights in a folder, if they fit the config: those of an earlier save."""
    try:
        old = read_config(folder)
    except InputError:
        return None
    same = old.format == config.format and old.tokenizers == config.tokenizers
    return old.weights_sha256 if same and old.model_sha256 == config.model_sha256 else None


def _sha256(path: Path) -> str:
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(section: Mapping[str, Any]) -> str:
    """SHA-256 of a section of the config, however it is indented and its keys are ordered."""
    return hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()


def as_saved(config: FolderConfig) -> dict[str, Any]:
    """What `config.json` holds of a config: a task only where it is not one of the package's."""
    plain: dict[str, Any] = to_plain(config)
    for name in ("task", "published"):
        if plain[name] is None:
            del plain[name]
    return plain


# ---------------------------------------------------------------- loading


def load_model(folder: Path) -> tuple[Model, FolderConfig]:
    """Read a model folder: the model in evaluation mode, on the CPU, and the config.

    Raises InputError, with one sentence, for a folder that is missing or unfinished, a file that
    is damaged, a newer format, weights that are missing, left over, of another shape or not
    finite, and weights or a tokenizer that are not those the config was saved with. Warns where an
    older dragoman wrote no hash of the weights, and of settings that are not applied.
    """
    config = read_config(folder)
    if config.format == AS_IT_IS:
        from dragoman.models.foreign.files import load_foreign
        from dragoman.models.foreign.folder import read_foreign_config, warn_of_settings

        model, hf = load_foreign(folder)
        config = read_foreign_config(folder, hf)  # which the weights may know better
        warn_of_settings(folder, hf, config.model)
        return model, config
    while True:
        try:
            tokenizer_paths(folder, config)
            model = _load_weights(folder / WEIGHTS, config)
            break
        except InputError:
            config, before = read_config(folder), config
            if config == before:  # else another process has saved a model meanwhile
                raise
    if config.published is not None:
        from dragoman.models.foreign.files import read_hf
        from dragoman.models.foreign.folder import warn_of_settings
        from dragoman.models.foreign.origin import origin_of

        origin = origin_of(folder, config)
        warn_of_settings(origin, read_hf(origin), config.model)
    if config.weights_sha256 is None:
        warnings.warn(
            f"{folder} was written by an older dragoman without a hash of the weights, so damage "
            "to them cannot be noticed.",
            stacklevel=2,
        )
    return model.eval(), config


def _load_weights(path: Path, config: FolderConfig) -> Model:
    """Build the model with the weights in a file, after checking that they are the right ones."""
    known = (config.weights_sha256, config.replaced_sha256)
    with reading(path) as stored, ThreadPoolExecutor(1) as thread:
        hashed = thread.submit(_sha256, path)
        dtypes = {1: ("F32", "F16", "BF16", "F64"), IN_EIGHT_BITS: ("F32", "I8")}
        model = build_empty(path, config.model, stored, dtypes.get(config.format, ("F32",)))
        for name, parameter in model.named_parameters():
            tensor = in_float32(stored, name)
            torch.utils.swap_tensors(parameter, nn.Parameter(tensor))  # keeps tied matrices tied
        found = hashed.result()
        if config.weights_sha256 is not None and found not in known:
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
    return model


def read_config(folder: Path) -> FolderConfig:
    """The config of a model folder; says what `folder` is when it is not one."""
    path = folder / CONFIG
    if not path.is_file():
        if any(folder.glob("*.npz")):  # Marian's own
            from dragoman.models.foreign.files import read_hf
            from dragoman.models.foreign.folder import read_foreign_config

            return read_foreign_config(folder, read_hf(folder))
        raise InputError(_why_no_model(folder))
    data = read_object(path)
    if "format" not in data and {"model_type", "architectures"} & {*data}:
        from dragoman.models.foreign.folder import read_foreign_config

        return read_foreign_config(folder, data)
    if type(data.get("format")) is not int or data["format"] < 1:
        raise InputError(
            _of_others(folder)
            or f"{path} has no format number and no model_type, so neither dragoman nor Hugging "
            "Face wrote it; give the folder of a model."
        )
    if data["format"] > PUBLISHED:
        raise InputError(
            f"{path} has format {data['format']}, made by a newer dragoman "
            f"({data.get('dragoman', 'version unknown')}); this one, {__version__}, reads up to "
            f"format {PUBLISHED}: upgrade with pip install --upgrade dragoman."
        )
    config = parse_settings(FolderConfig, data, str(path))
    if config.format > 1 and None in (config.weights_sha256, config.model_sha256):
        raise InputError(f"{path} is damaged: it lacks the hash of the weights or of the model.")
    if config.model_sha256 not in (None, _digest(data["model"])):
        raise InputError(
            f"{path}: the section model is not the one that the weights were saved with; restore "
            f"the {CONFIG} that training wrote."
        )
    return config


def tokenizer_paths(folder: Path, config: FolderConfig) -> tuple[Path, Path]:
    """The tokenizer files of source and target, after checking that they are the right ones."""
    names = sorted(config.tokenizers)
    known = names in ([JOINT], [SRC, TGT])
    if config.published is not None:
        known = names != [] and all(re.fullmatch(r"huggingface/\w[^/\\]*", name) for name in names)
    if not known:
        raise InputError(
            f"{folder / CONFIG}: tokenizers must name {JOINT}, or {SRC} and {TGT}, or files of "
            f"huggingface/, not {', '.join(names) or 'nothing'}."
        )
    for name, trained_with in config.tokenizers.items():
        found = _sha256(folder / name)
        if found != trained_with:
            raise InputError(
                f"{folder / name} is not the tokenizer that the weights were trained with "
                f"(SHA-256 {found[:12]}... instead of {trained_with[:12]}...); "
                "restore the file that training wrote."
            )
    if config.published is not None:
        beside = {f"{path.parent.name}/{path.name}" for path in folder.glob("huggingface/[!.]*")}
        if unlisted := sorted(beside - config.tokenizers.keys()):
            raise InputError(
                f"{folder / unlisted[0]} is not among the files that {CONFIG} has hashes of, so "
                "the model was not saved with it; remove it."
            )
    return folder / names[0], folder / names[-1]


def _why_no_model(folder: Path) -> str:
    if not folder.exists():
        siblings = folder.parent.iterdir() if folder.parent.is_dir() else ()
        close = nearest(folder.name, (s.name for s in siblings if (s / CONFIG).is_file()))
        hint = f"; did you mean {folder.parent / close}?" if close else "."
        return f"There is no model folder {folder}{hint}"
    if reason := _of_others(folder):
        return reason
    if not folder.is_dir():
        return f"{folder} is a file; give the model folder, which holds {CONFIG} and {WEIGHTS}."
    if (folder / WEIGHTS).exists():
        return f"{folder} has {WEIGHTS} but no {CONFIG}; copy that file too, from the same model."
    if (folder / "training").is_dir():
        return (
            f"{folder} holds a training run that has not written a model yet; "
            "resume it by the command that began it."
        )
    return f"{folder} is not a model folder: it has no {CONFIG}."


def _of_others(path: Path) -> str | None:
    """What another library's file is, or the one in a folder, and what to do; see there."""
    from dragoman.models.foreign.files import of_others

    return of_others(path)
