"""`pytorch_model.bin`: weights and texts as from safetensors; anything beyond is refused."""

import json
import os
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.archives import packed, unpacked
from tests.parity.test_foreign_folders import saved
from tests.parity.test_foreign_texts import make_folder
from torch import Tensor

from dragoman.convert.published import take_over, verify
from dragoman.convert.targets import convert
from dragoman.errors import InputError
from dragoman.folder.foreign.files import read_checkpoint
from dragoman.folder.foreign.pickled import read_pickled
from dragoman.folder.opening import open_folder
from dragoman.tasks.folders import read_folder

BIN, INDEX, WEIGHTS = "pytorch_model.bin", "pytorch_model.bin.index.json", "model.safetensors"
State = dict[str, Tensor]


def as_zip(state: State, folder: Path) -> None:
    """Save as torch does since 1.6."""
    torch.save(OrderedDict(state), folder / BIN)


def as_legacy(state: State, folder: Path) -> None:
    """Save as torch did before, in 2020."""
    torch.save(OrderedDict(state), folder / BIN, _use_new_zipfile_serialization=False)


def as_shards(state: State, folder: Path) -> None:
    """Save in two files, one of each format, with an index."""
    names, places = [*state], dict[str, str]()
    for number, save in ((1, as_zip), (2, as_legacy)):
        half = names[number - 1 :: 2]
        save({name: state[name] for name in half}, folder)
        file = f"pytorch_model-0000{number}-of-00002.bin"
        (folder / BIN).rename(folder / file)
        places |= dict.fromkeys(half, file)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))


FORMS = {"zip": as_zip, "legacy": as_legacy, "shards": as_shards}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_weights_of_safetensors(form: str, tmp_path: Path) -> None:
    """They are equal bit for bit; safetensors is preferred if both exist."""
    folder = saved("marian", tmp_path)
    expected = open_folder(folder).load().state_dict()
    state = load_file(folder / WEIGHTS)
    as_zip({"nothing": torch.zeros(1)}, folder)
    assert open_folder(folder).load().state_dict().keys() == expected.keys()
    for file in (WEIGHTS, BIN):
        (folder / file).unlink()
    FORMS[form](state, folder)
    found = open_folder(folder).load().state_dict()
    assert [key for key in expected if not torch.equal(found[key], expected[key])] == []


def test_a_folder_of_2020_is_verified_converted_and_given_back(tmp_path: Path) -> None:
    """It works like a safetensors folder; the result has every tensor, in today's format."""
    theirs, ours, again = (tmp_path / name for name in ("theirs", "ours", "again"))
    state = make_folder(theirs, "marian").state_dict()
    (theirs / WEIGHTS).unlink()
    as_legacy(state, theirs)
    assert verify(read_folder(theirs, device="cpu")) <= 1e-5
    take_over(theirs, ours)
    convert(ours, again, "huggingface")
    back = read_checkpoint(again)[1]
    assert all(torch.equal(state[name], tensor) for name, tensor in back.items())
    assert not [*again.glob("*.bin")]


class Runs:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Call what plain pickle would call."""
        return os.system, ("touch ran",)


class Allocates:
    """Allocates memory when unpickled, through a function that the restricted reader allows."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        """Ask for two terabytes."""
        return bytearray, (1 << 41,)


def compressed(file: Path) -> None:
    """Write a megabyte of zeros in a few bytes."""
    torch.save({"a": torch.zeros(1 << 18)}, file)
    file.write_bytes(packed(unpacked(file.read_bytes())))


def cut(file: Path) -> None:
    """Write half a download."""
    torch.save({"a": torch.zeros(99)}, file)
    os.truncate(file, 900)


def lying(file: Path) -> None:
    """Write a storage that claims more numbers than its archive member has."""
    torch.save({"a": torch.zeros(2)}, file)
    members = {
        name: content.replace(b"K\x02", b"J\xff\xff\xff\x7f")
        for name, content in unpacked(file.read_bytes()).items()
    }
    file.write_bytes(packed(members, ZIP_STORED))


def copying(*calls: bytes) -> Callable[[Path], None]:
    """Write a list of pairs, and calls that copy it repeatedly."""
    pairs = (
        b"]q\x00(" + b"".join(b"J%b\x88\x86" % n.to_bytes(4, "little") for n in range(99)) + b"e"
    )
    names = b"ccollections\nOrderedDict\nq\x01ctorch\nFloatStorage\nq\x02"

    def make(file: Path) -> None:
        torch.save({}, file)
        members = unpacked(file.read_bytes())
        (program,) = (name for name in members if name.endswith("data.pkl"))
        members[program] = b"\x80\x02(" + pairs + names + b"".join(calls) * 99 + b"t."
        file.write_bytes(packed(members, ZIP_STORED))

    return make


def legacy(state: object) -> Callable[[Path], None]:
    """Save in the format of 2020."""
    return lambda file: torch.save(state, file, _use_new_zipfile_serialization=False)


def torch_saved(state: object) -> Callable[[Path], None]:
    """Save in today's format."""
    return lambda file: torch.save(state, file)


WIDE = torch.zeros(1).expand(1 << 40)
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "code": (torch_saved({"a": Runs()}), r"refers to \w+\.system, which is not part"),
    "code of old": (legacy({"a": Runs()}), r"refers to \w+\.system, which is not part"),
    "pickle": (lambda f: f.write_bytes(pickle.dumps({"a": 1}, 2)), "is damaged"),
    "memory": (torch_saved({"a": Allocates()}), r"refers to \w+\.bytearray"),
    "numpy": (torch_saved({"a": np.float32(1)}), r"refers to numpy\._?core\.multiarray\.scalar"),
    "array": (legacy({"a": np.zeros(2)}), r"refers to numpy\._?core\.multiarray\._reconstruct"),
    "number": (torch_saved({"a": torch.zeros(1), "step": 3}), "holds 'step', which is a int"),
    "nested": (torch_saved({"state_dict": {"a": torch.zeros(1)}}), "'state_dict', which is a dict"),
    "list": (torch_saved([torch.zeros(1)]), "is not a dictionary of tensors"),
    "module": (torch_saved(torch.nn.Linear(1, 1)), r"refers to torch\.nn\.modules\.linear\.Linear"),
    "expanded": (torch_saved({"a": WIDE}), r"bytes, but its tensors 4,398,046,511,104"),
    "expanded of old": (legacy({"a": WIDE}), r"bytes, but its tensors 4,398,046,511,104"),
    "overlapping": (
        torch_saved({str(n): torch.zeros(4096).expand(9, 4096) for n in range(9)}),
        "bytes, but its tensors 1,3",
    ),
    "lying": (lying, "is damaged"),
    "copies": (copying(b"h\x01h\x00\x85R"), "by a call that could copy"),
    "copies behind a mark": (copying(b"h\x01(h\x00\x88atR"), "by a call that could copy"),
    "copies of a kept tuple": (copying(b"h\x00\x85q\x04h\x01h\x04R"), "call that could copy"),
    "updates": (copying(b"h\x01)Rh\x00b"), "several objects by BUILD"),
    "new objects": (copying(b"h\x01h\x00\x85\x81"), "an object by NEWOBJ"),
    "storages": (copying(b"h\x02J\xff\xff\x00\x00\x85R"), "by a call that could copy"),
    "sizes": (copying(b"ctorch\nSize\nh\x00\x85R"), "refers to torch.Size"),
    "compressed": (compressed, "is compressed"),
    "cut": (cut, "is damaged"),
    "sparse": (torch_saved({"a": torch.zeros(3, 3).to_sparse()}), "_rebuild_sparse_tensor"),
    "empty": (lambda f: f.write_bytes(b""), "is damaged"),
    "text": (lambda f: f.write_bytes(b"<html>"), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_state_dict_is_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is one sentence with the reason; no code runs and no memory is allocated."""
    monkeypatch.chdir(tmp_path)
    make, pattern = REFUSED[case]
    make(tmp_path / BIN)
    with pytest.raises(InputError) as caught:
        read_pickled(tmp_path / BIN)
    text = str(caught.value)
    assert re.search(pattern, text), text
    assert text.endswith(".")
    assert "\n" not in text
    assert not Path("ran").exists()


@pytest.mark.parametrize("form", FORMS)
def test_any_flipped_byte_loads_or_is_refused(form: str, tmp_path: Path) -> None:
    """This covers the pickles, the archive's directory and the numbers."""
    FORMS[form]({"a": torch.zeros(3), "b": torch.ones(2, 2)}, tmp_path)
    (tmp_path / "config.json").write_text("{}")
    file = min(tmp_path.glob("*.bin"))
    whole = file.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 150)):
        changed = bytearray(whole)
        changed[place] ^= 0x15
        file.write_bytes(changed)
        try:
            read_checkpoint(tmp_path)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- it may load too
