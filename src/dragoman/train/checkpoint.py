"""Checkpoints: one folder each, complete or absent.

    training/checkpoints/step-00000500/
        weights.safetensors     in fp32
        optimizer.safetensors   only in the last two: resuming needs it, averaging does not
        random.safetensors      the state of torch's random generators
        state.json              format, progress, position in the data, recipe, machine, hashes

A folder is written under a temporary name, synced and then renamed, so a killed run or a power
failure leaves only complete checkpoints. Hashes detect tensors that have changed on disk; the run
then resumes from the previous checkpoint. Nothing is pickled.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman.errors import DragomanError, InputError, is_out_of_memory
from dragoman.files.writing import rename_durably
from dragoman.train.optimizer import AVERAGE
from dragoman.train.progress import Progress

FORMAT = 1


TensorFile = Literal["weights", "optimizer", "random"]
FILES: tuple[TensorFile, ...] = get_args(TensorFile)
Tensors = Mapping[TensorFile, Mapping[str, Tensor]]
"""Named tensors of a checkpoint, by the file that contains them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """The contents of `state.json`."""

    format: int = FORMAT
    """Version of this layout, incremented when an older dragoman could not read it."""
    progress: Progress
    batches: dict[str, Any]
    """The position in the data."""
    recipe: dict[str, Any]
    """The settings of the run, in case `recipe.json` is damaged."""
    scaler: dict[str, int | float] = field(default_factory=dict)
    """The state of loss scaling in fp16; empty otherwise."""
    machine: dict[str, str]
    """What the exact result depends on besides the settings."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each tensor file, in hexadecimal."""


class DamagedCheckpointError(InputError):
    """A checkpoint that cannot be read, or whose contents no run could have saved."""


def save_checkpoint(
    folder: Path, state: SavedState, tensors: Tensors, *, keep: int, every: int
) -> Path:
    """Write a checkpoint, then tidy the older ones (`tidy_checkpoints`).

    Raises DragomanError if writing fails, such as on a full disk; earlier checkpoints stay intact.
    """
    path = folder / f"step-{state.progress.step:08d}"
    unfinished = folder / f".{path.name}.{os.getpid()}"
    try:
        unfinished.mkdir(parents=True)
        for name, group in tensors.items():
            contiguous = {key: tensor.detach().contiguous() for key, tensor in group.items()}
            save_file(contiguous, unfinished / f"{name}.safetensors")
        hashes: dict[str, str] = {name: _sha256(unfinished, name) for name in tensors}
        text = json.dumps(asdict(replace(state, hashes=hashes)), indent=2, sort_keys=True)
        (unfinished / "state.json").write_text(text, encoding="utf-8")
        rename_durably(unfinished, path)
        tidy_checkpoints(folder, keep=keep, every=every)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise DragomanError(
            f"Cannot write the checkpoint {path}: {error}; what was saved before is whole: make "
            "room and run the same command to resume from there"
        ) from error
    return path


def tidy_checkpoints(folder: Path, *, keep: int, every: int) -> None:
    """Remove all but the newest `keep` checkpoints, old optimizer states and partial checkpoints.

    At least two checkpoints, both with their optimizer states, are kept: if the newest is damaged,
    the run resumes from the previous one. A checkpoint at a step that is not a multiple of `every`
    (after Ctrl-C) is removed once there is a newer one, so that an interrupted run ends with the
    same checkpoints as any other. Raises DragomanError if something cannot be removed.
    """
    older = checkpoints(folder)[:-1]
    regular = [old for old in older if _step(old) % every == 0]
    kept = regular[-max(1, keep - 1) :]
    try:
        for leftover in folder.glob(".step-*"):
            shutil.rmtree(leftover)
        for old in set(older) - set(kept):
            _drop(old)
        for old in kept[:-1]:
            (old / "optimizer.safetensors").unlink(missing_ok=True)
    except OSError as error:
        raise DragomanError(
            f"cannot remove an old checkpoint in {folder}: {error}; remove it by hand, and run the "
            "same command to resume"
        ) from error


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    return sorted(folder.glob("step-*"))


def load_newest(folder: Path, say: Callable[[str], None]) -> tuple[SavedState, Tensors] | None:
    """Read the newest checkpoint of a run; return None if there is none.

    If it is damaged and the previous one has everything that resuming needs, remove it, warn
    through `say` and return the previous one. Raises InputError if neither can be read.
    """
    saved = checkpoints(folder)
    if not saved:
        return None
    try:
        return load_checkpoint(saved[-1])
    except DamagedCheckpointError as error:
        why = error.__cause__
        alone = len(saved) == 1 or not (saved[-2] / "optimizer.safetensors").exists()
        if alone or isinstance(why, PermissionError):
            raise
        found = load_checkpoint(saved[-2])
        _drop(saved[-1])
        say(
            f"Warning: the checkpoint {saved[-1]} is damaged ({why}); it was removed, and "
            f"{saved[-2].name} takes its place."
        )
        return found


def load_checkpoint(path: Path, names: Sequence[TensorFile] = FILES) -> tuple[SavedState, Tensors]:
    """Read a checkpoint, or only some of its files; all of them together suffice for resuming."""
    state = read_state(path)
    with readable(path):
        return state, {name: _load(path, name, state) for name in names}


def read_state(path: Path) -> SavedState:
    """Read everything but the tensors of a checkpoint."""
    with readable(path):
        data = json.loads(_regular(path / "state.json").read_text(encoding="utf-8"))
        if data["format"] > FORMAT:
            raise InputError(f"{path} was written by a newer dragoman; upgrade to resume it")
        state = msgspec.convert(data, SavedState)
        if state.progress.step != _step(path):
            raise ValueError(f"its state is that of step {state.progress.step:,}")
    return state


def _regular(path: Path) -> Path:
    """Return the path if it is a regular file: reading a named pipe would never end."""
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}")
    return path


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors in reading or restoring a checkpoint into DamagedCheckpointError.

    Out-of-memory errors pass through: the checkpoint is not at fault.
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
        raise DamagedCheckpointError(
            f"the checkpoint {path} cannot be read ({error}): restore it, or remove that folder to "
            "continue without it"
        ) from error


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights of several checkpoints, summed in float64."""
    total: dict[str, Tensor] = {}
    for path in paths:
        _, tensors = load_checkpoint(path, ["weights"])
        for name, weight in tensors["weights"].items():
            total[name] = weight.double() + total[name] if name in total else weight.double()
    return {name: (weight / len(paths)).float() for name, weight in total.items()}


def moving_average(path: Path) -> dict[str, Tensor]:
    """Return the moving average of the weights in a checkpoint that can be resumed."""
    _, tensors = load_checkpoint(path, ["optimizer", "weights"])
    moments, ending = tensors["optimizer"], f"/{AVERAGE}"
    averages = {n.removesuffix(ending): t for n, t in moments.items() if n.endswith(ending)}
    return {**tensors["weights"], **averages}


def random_state() -> dict[str, Tensor]:
    """Return the state of torch's random generators, from which dropout draws."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_random_state(states: Mapping[str, Tensor]) -> None:
    """Restore the state that `random_state` returned."""
    torch.set_rng_state(states["cpu"])
    for i in range(torch.cuda.device_count()):
        if f"cuda:{i}" in states:
            torch.cuda.set_rng_state(states[f"cuda:{i}"], i)


@contextmanager
def replayed(states: Mapping[str, Tensor]) -> Iterator[None]:
    """Rewind the random generators to `states` for the block, then restore their present state."""
    now = random_state()
    set_random_state(states)
    try:
        yield
    finally:
        set_random_state(now)


def _load(path: Path, name: TensorFile, state: SavedState) -> dict[str, Tensor]:
    """Read a tensor file; raises ValueError if it has changed since it was written."""
    if state.hashes.get(name) != _sha256(path, name):
        raise ValueError(f"{name}.safetensors has changed since it was written: its hash differs")
    return load_file(path / f"{name}.safetensors")


def _sha256(path: Path, name: TensorFile) -> str:
    with _regular(path / f"{name}.safetensors").open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _drop(path: Path) -> None:
    """Remove a checkpoint, hidden first so that a run killed meanwhile leaves no partial one."""
    hidden = path.with_name(f".{path.name}.dropped")
    path.rename(hidden)
    shutil.rmtree(hidden)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))
