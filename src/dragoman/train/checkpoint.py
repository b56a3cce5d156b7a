"""Checkpoints: a folder for each, complete or not there.

    training/checkpoints/step-00000500/
        weights.safetensors     in fp32
        optimizer.safetensors   only in the newest: resuming needs it, averaging does not
        random.safetensors      the state of torch's generators
        state.json              format, progress, place in the data, recipe, machine

A folder is written under another name, synced and then renamed, so a run that is killed at any
moment, or a machine that loses its power, leaves whole checkpoints only. Nothing is pickled.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman.errors import DragomanError, InputError, is_out_of_memory
from dragoman.files.writing import rename_durably
from dragoman.train.loop import Progress
from dragoman.train.optimizer import AVERAGE

FORMAT = 1


TensorFile = Literal["weights", "optimizer", "random"]
FILES: tuple[TensorFile, ...] = get_args(TensorFile)
Tensors = Mapping[TensorFile, Mapping[str, Tensor]]
"""The named tensors of a checkpoint, by the file that holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """What `state.json` holds."""

    format: int = FORMAT
    """The number of this layout; it grows when an older dragoman could not read it."""
    progress: Progress
    batches: dict[str, Any]
    """Where the data stands."""
    recipe: dict[str, Any] = field(default_factory=dict)
    """The settings of the run, in case `recipe.json` is damaged; empty in old checkpoints."""
    scaler: dict[str, int | float] = field(default_factory=dict)
    """The state of loss scaling in fp16; else empty."""
    machine: dict[str, str] = field(default_factory=dict)
    """What the bits depend on beside the settings; empty in old checkpoints."""


def save_checkpoint(
    folder: Path, state: SavedState, tensors: Tensors, *, keep: int, every: int
) -> Path:
    """Write a checkpoint, then tidy those before it (`tidy_checkpoints`).

    Raises DragomanError when writing fails (a full disk): what was saved before stays whole.
    """
    path = folder / f"step-{state.progress.step:08d}"
    unfinished = folder / f".{path.name}.{os.getpid()}"
    try:
        unfinished.mkdir(parents=True)
        for name, group in tensors.items():
            contiguous = {key: tensor.detach().contiguous() for key, tensor in group.items()}
            save_file(contiguous, unfinished / f"{name}.safetensors")
        text = json.dumps(asdict(state), indent=2, sort_keys=True)
        (unfinished / "state.json").write_text(text, encoding="utf-8")
        rename_durably(unfinished, path)
        tidy_checkpoints(folder, keep=keep, every=every)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise DragomanError(
            f"cannot write the checkpoint {path}: {error}; what was saved before is whole: make "
            "room and run the same command to go on from there"
        ) from error
    return path


def tidy_checkpoints(folder: Path, *, keep: int, every: int) -> None:
    """Drop all but the newest `keep`, the older optimizer states, and what a killed run left.

    A checkpoint at a step that is no multiple of `every` (somebody pressed Ctrl-C) goes as soon as
    it is not the newest, so that an interrupted run ends with the same checkpoints as any other.
    Raises DragomanError where something cannot be removed.
    """
    older = checkpoints(folder)[:-1]
    regular = [old for old in older if _step(old) % every == 0]
    kept = regular[max(0, len(regular) + 1 - keep) :]
    try:
        for leftover in folder.glob(".step-*"):
            shutil.rmtree(leftover)
        for old in set(older) - set(kept):
            _drop(old)
        for old in kept:
            (old / "optimizer.safetensors").unlink(missing_ok=True)
    except OSError as error:
        raise DragomanError(
            f"cannot remove an old checkpoint in {folder}: {error}; remove it by hand, and run the "
            "same command to go on"
        ) from error


def checkpoints(folder: Path) -> list[Path]:
    """Return the whole checkpoints of a run, oldest first."""
    return sorted(folder.glob("step-*"))


def load_checkpoint(path: Path) -> tuple[SavedState, Tensors]:
    """Read a checkpoint that has everything resuming needs."""
    state = read_state(path)
    with readable(path):
        return state, {name: load_file(_regular(path / f"{name}.safetensors")) for name in FILES}


def read_state(path: Path) -> SavedState:
    """Read what a checkpoint holds beside tensors."""
    with readable(path):
        data = json.loads(_regular(path / "state.json").read_text(encoding="utf-8"))
        if data["format"] > FORMAT:
            raise InputError(f"{path} was written by a newer dragoman; upgrade to go on with it")
        state = msgspec.convert(data, SavedState)
        if state.progress.step != _step(path):
            raise ValueError(f"its state is that of step {state.progress.step:,}")
    return state


def _regular(path: Path) -> Path:
    """Return the path of a regular file: a named pipe would never be read to its end."""
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}")
    return path


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise InputError where a checkpoint cannot be read, or holds what no run has saved.

    A lack of memory is no fault of the checkpoint and passes through.
    """
    try:
        yield
    except (
        OSError,
        SafetensorError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
        msgspec.ValidationError,
    ) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(
            f"the checkpoint {path} cannot be read ({error}), and older ones do not hold what "
            "resuming needs: restore it, or delete the run's folder to start again"
        ) from error


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights of several checkpoints, summed in float64."""
    total: dict[str, Tensor] = {}
    for path in paths:
        try:
            weights = load_file(path / "weights.safetensors")
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"the checkpoint {path} cannot be read ({error}); delete that folder to average "
                "the others"
            ) from error
        for name, weight in weights.items():
            total[name] = weight.double() + total[name] if name in total else weight.double()
    return {name: (weight / len(paths)).float() for name, weight in total.items()}


def moving_average(path: Path) -> dict[str, Tensor]:
    """Return the moving average of the weights in a checkpoint that can be resumed."""
    with readable(path):
        state = load_file(_regular(path / "optimizer.safetensors"))
        ending = f"/{AVERAGE}"
        averages = {n.removesuffix(ending): t for n, t in state.items() if n.endswith(ending)}
        return load_file(_regular(path / "weights.safetensors")) | averages


def random_state() -> dict[str, Tensor]:
    """Return the state of torch's generators: dropout draws from them."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_random_state(states: Mapping[str, Tensor]) -> None:
    """Put back what `random_state` gave."""
    torch.set_rng_state(states["cpu"])
    for i in range(torch.cuda.device_count()):
        if f"cuda:{i}" in states:
            torch.cuda.set_rng_state(states[f"cuda:{i}"], i)


def _drop(path: Path) -> None:
    """Remove a checkpoint: hidden first, so that a run killed meanwhile leaves no half of it."""
    hidden = path.with_name(f".{path.name}.dropped")
    path.rename(hidden)
    shutil.rmtree(hidden)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))
