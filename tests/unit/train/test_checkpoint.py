"""Checkpoints are complete or absent."""

import json
import os
import random
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from tests.disk import Disk
from tests.unit.train.made import file_size_limit

from dragoman.errors import DragomanError, InputError
from dragoman.train.checkpoint import (
    FILES,
    FORMAT,
    SavedState,
    Tensors,
    average_weights,
    checkpoints,
    load_checkpoint,
    load_newest,
    random_state,
    readable,
    save_checkpoint,
    tidy_checkpoints,
)
from dragoman.train.progress import Progress


def make_state(step: int, text: str = "") -> SavedState:
    """Return the state after a step."""
    numbers = {field.name: number for number, field in enumerate(fields(Progress), start=1)}
    progress = replace(Progress(**numbers), step=step, seconds=1 / 3, best={"loss": 0.1})  # type: ignore[arg-type]
    return SavedState(progress=progress, batches={"epoch": 2, "x": text}, recipe={}, machine={})


def make_tensors(size: int = 4) -> Tensors:
    """Return a checkpoint of random numbers."""
    return {
        "weights": {"a.weight": torch.randn(size, 3), "b": torch.randn(3)},
        "optimizer": {"a.weight/exp_avg": torch.randn(size, 3), "a.weight/step": torch.tensor(7.0)},
        "random": random_state(),
    }


def save(folder: Path, step: int, keep: int = 3, every: int = 10) -> Path:
    """Write a small checkpoint."""
    return save_checkpoint(folder, make_state(step), make_tensors(), keep=keep, every=every)


def steps(folder: Path) -> list[int]:
    """Return the steps of the existing checkpoints."""
    return [int(path.name.removeprefix("step-")) for path in checkpoints(folder)]


def test_round_trip(tmp_path: Path) -> None:
    """Tensors are read as they were written, to the bit and under the same names."""
    written = make_tensors()
    path = save_checkpoint(tmp_path, make_state(20), written, keep=3, every=10)
    state, read = load_checkpoint(path)
    assert read.keys() == written.keys()
    for name, theirs in written.items():
        assert read[name].keys() == theirs.keys()
        assert all(torch.equal(read[name][key], theirs[key]) for key in theirs)
    assert replace(state, hashes={}) == make_state(20)


@pytest.mark.parametrize(
    ("written", "keep", "kept"),
    [
        ([10, 20, 30, 40, 50], 3, [30, 40, 50]),
        ([10, 20, 27, 30], 1, [20, 30]),  # and the one at 20, which 27 does not replace
        ([10, 20, 30, 37, 38], 3, [20, 30, 38]),
        ([10, 20, 30, 37, 38, 40], 3, [20, 30, 40]),
        ([10, 20, 30, 40, 43], 3, [30, 40, 43]),  # such as a run's last step
    ],
)
def test_keeps_the_newest(tmp_path: Path, written: list[int], keep: int, kept: list[int]) -> None:
    """The newest `keep` stay; one at an odd step (Ctrl-C) does not displace regular ones.

    The newest two have the optimizer's state.
    """
    for step in written:
        save(tmp_path, step, keep=keep)
    assert steps(tmp_path) == kept
    complete = [(path / "optimizer.safetensors").exists() for path in checkpoints(tmp_path)]
    assert complete == [False] * (len(kept) - 2) + [True] * 2


def test_full_disk(tmp_path: Path) -> None:
    """A full disk is reported in one sentence; older checkpoints stay, and no partial one does."""
    first = save(tmp_path, 10)
    before = {path: path.read_bytes() for path in first.iterdir()}
    large = make_tensors(size=20_000)
    with file_size_limit(100_000), pytest.raises(DragomanError, match="Cannot write the") as raised:
        save_checkpoint(tmp_path, make_state(20), large, keep=1, every=10)
    assert raised.value.exit_code == 1
    assert list(tmp_path.iterdir()) == [first]
    assert {path: path.read_bytes() for path in first.iterdir()} == before
    assert load_checkpoint(first)[0].progress.step == 10


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "optimizer.safetensors", "random.safetensors", "state.json"]
)
@pytest.mark.parametrize("damage", ["missing", "pipe", "cut", "noise"])
def test_damaged_files(tmp_path: Path, name: str, damage: str) -> None:
    """A missing, truncated or invalid file is reported in one sentence; a pipe does not hang."""
    path = save(tmp_path, 10)
    file = path / name
    if damage in {"missing", "pipe"}:
        file.unlink()
        if damage == "pipe":
            os.mkfifo(file)
    else:
        file.write_bytes(file.read_bytes()[:-2] if damage == "cut" else b"{]noise" * 5)
    with pytest.raises(InputError, match=r"step-00000010 cannot be read"):
        load_checkpoint(path)


def flip(file: Path) -> None:
    """Flip one bit of the last tensor."""
    content = bytearray(file.read_bytes())
    content[-2] ^= 1 << random.randrange(8)
    file.write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed(tmp_path: Path, name: str) -> None:
    """The damaged tensor file is named.

    The previous checkpoint replaces the damaged one, which is removed; the only one is kept.
    """
    said: list[str] = []
    flip(save(tmp_path, 10) / f"{name}.safetensors")
    with pytest.raises(InputError, match=rf"step-00000010 .*\({name}.safetensors has changed"):
        load_newest(tmp_path, said.append)
    assert steps(tmp_path) == [10]
    assert not said
    for step in (20, 30, 37):
        path = save(tmp_path, step)
    flip(path / f"{name}.safetensors")
    loaded = load_newest(tmp_path, said.append)
    assert loaded is not None
    assert loaded[0].progress.step == 30
    assert steps(tmp_path) == [20, 30]
    assert len(said) == 1
    assert "step-00000037 is damaged" in said[0]


def test_a_tensor_file_without_a_hash_is_named(tmp_path: Path) -> None:
    """It cannot be verified, so it may have changed."""
    path = save(tmp_path, 10)
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps(state | {"hashes": {}}))
    with pytest.raises(InputError, match=r"\(weights.safetensors has changed"):
        load_checkpoint(path, ["weights"])


def test_a_newer_version(tmp_path: Path) -> None:
    """Its checkpoint is not taken for damaged."""
    for step in (10, 20):
        path = save(tmp_path, step)
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps(state | {"format": FORMAT + 1}))
    with pytest.raises(InputError, match="newer dragoman; upgrade"):
        load_newest(tmp_path, print)
    assert steps(tmp_path) == [10, 20]


def test_average_is_the_mean(tmp_path: Path) -> None:
    """Averaging gives the mean of each weight in float32, correctly rounded."""
    written = {step: make_tensors() for step in (10, 20, 30)}
    paths = [
        save_checkpoint(tmp_path, make_state(step), tensors, keep=3, every=10)
        for step, tensors in written.items()
    ]
    average = average_weights(paths)
    assert set(average) == {"a.weight", "b"}
    for name, weight in average.items():
        stack = torch.stack([tensors["weights"][name] for tensors in written.values()]).double()
        assert torch.equal(weight, stack.mean(0).float())


def test_tidy_where_nothing_can_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be removed is reported by name."""
    for step in (10, 20, 30):
        save(tmp_path, step)

    def refuse(path: Path, _target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(DragomanError, match="step-00000010'; remove it by hand"):
        tidy_checkpoints(tmp_path, keep=1, every=10)


def test_a_checkpoint_survives_a_power_failure(tmp_path: Path, disk: Disk) -> None:
    """The files and the folder are synced before the rename, and the new name after it."""
    save(tmp_path, 10)
    disk.assert_renamed("step-00000010")


def test_a_lack_of_memory_is_no_fault_of_a_checkpoint(tmp_path: Path) -> None:
    """Out of memory is not reported as a damaged checkpoint, which users might delete."""
    with pytest.raises(RuntimeError, match="out of memory"), readable(tmp_path):
        raise RuntimeError("CUDA error: out of memory")
