"""Writing a model folder, so that a reader finds the old model or the new one.

Saving writes beside the old files, syncs, and then renames. A process killed or a power failure in
between leaves the old weights or the new ones: the config comes first, and knows both. Where the
architecture or the tokenizers change, or the weights are in 8 bits now or were before, it comes
last, and rejects files that are not its own.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import read_object
from dragoman.files.writing import rename_durably, sync
from dragoman.folder.config import (
    CARD,
    CONFIG,
    FORMAT,
    IN_EIGHT_BITS,
    JOINT,
    PUBLISHED,
    SRC,
    TGT,
    WEIGHTS,
    FolderConfig,
    Saves,
    as_saved,
    digest_of,
    names_of,
    sha256_of,
)
from dragoman.folder.opening import own_config
from dragoman.models.build import Model, build_on_meta
from dragoman.models.config import ModelConfig
from dragoman.models.eight_bits import rounded
from dragoman.plain import to_plain
from dragoman.version import __version__

UNFINISHED = ".saving"


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
    names = dict(tokenizers if isinstance(tokenizers, Mapping) else names_of(tokenizers))
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
            tokenizers={name: sha256_of(staged / name) for name in names},
            weights_sha256=sha256_of(staged / WEIGHTS),
            model_sha256=digest_of(to_plain(config.model)),
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
        old = own_config(folder / CONFIG, read_object(folder / CONFIG))
    except InputError:
        return None
    same = old.format == config.format and old.tokenizers == config.tokenizers
    return old.weights_sha256 if same and old.model_sha256 == config.model_sha256 else None
