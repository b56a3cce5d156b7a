"""Any Hugging Face folder gives a model, or one sentence that says what to do."""

import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.foreign_folders import set_keys
from tests.parity.test_foreign_folders import saved

from dragoman.engine import freeze
from dragoman.engine.products import Lend
from dragoman.errors import InputError
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.folder.opening import open_folder

Change = Callable[[Path], object]
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def weights(folder: Path, **tensors: torch.Tensor) -> None:
    """Set tensors of the weights; a double underscore stands for a dot."""
    new = {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    save_file(load_file(folder / WEIGHTS) | new, folder / WEIGHTS)


def header(folder: Path, text: bytes, length: int | None = None, body: bytes = b"") -> None:
    """Write weights with the given header."""
    start = struct.pack("<Q", len(text) if length is None else length)
    (folder / WEIGHTS).write_bytes(start + text + body)


def only(*names: str) -> Change:
    """Return a function that leaves nothing but these files, which may be new."""

    def change(folder: Path) -> None:
        for path in folder.iterdir():
            path.unlink()
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"{}")

    return change


def entry(dtype: str, shape: list[int], *span: int) -> dict[str, object]:
    """Return a header's entry for a tensor."""
    return {"dtype": dtype, "shape": shape, "data_offsets": span}


EMPTY = entry("F32", [0], 0, 0)


def lie(**entries: dict[str, object]) -> Change:
    """Return a function that writes a header over 16 bytes."""
    return lambda folder: header(folder, json.dumps(entries).encode(), body=bytes(16))


REFUSED: dict[str, tuple[Change, str]] = {
    "no weights": (lambda f: (f / WEIGHTS).unlink(), r"model\.safetensors is missing; download"),
    "no files": (only(), "is not a model folder: it has no config.json"),
    "gguf": (only("m.gguf", "config.json"), r"m\.gguf is a file of llama\.cpp"),
    "cache": (only("snapshots/abc/config.json"), "give the folder around it"),
    "no family": (lambda f: set_keys(f, model_type=None), r"config\.json.* has no model_type"),
    "a part": (
        lambda f: (f / WEIGHTS).rename(f / "pytorch_model-00001-of-00002.bin"),
        r"pytorch_model\.bin\.index\.json is missing; download it",
    ),
    "pickle": (  # it is none
        lambda f: (f / WEIGHTS).rename(f / "pytorch_model.bin"),
        r"pytorch_model\.bin is damaged .*; download it again",
    ),
    "cut": (lambda f: os.truncate(f / WEIGHTS, 9_000), r"half a download: [\d,]+ of [\d,]+ bytes"),
    "cut header": (lambda f: os.truncate(f / WEIGHTS, 99), r"half a download: [\d,]+ of [\d,]+ "),
    "empty": (lambda f: os.truncate(f / WEIGHTS, 0), "is damaged"),
    "pointer": (
        lambda f: (f / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\noid x\n"),
        "git lfs pull",
    ),
    "config is a pointer": (
        lambda f: (f / "config.json").write_text("version https://git-lfs.github.com/spec/v1\n"),
        "git lfs pull",
    ),
    "no JSON": (lambda f: (f / "config.json").write_text("{"), "is damaged .Expecting"),
    "no object": (lambda f: (f / "config.json").write_text("[1]"), "is damaged .Expected `object`"),
    "long header": (lambda f: header(f, b"{}", 1 << 60), "is damaged"),
    "beyond the end": (lie(a=entry("F32", [1 << 40], 0, 1 << 42)), "bytes are missing"),
    "overlap": (lie(a=entry("F32", [4], 0, 16), b=entry("F32", [4], 0, 16)), "is damaged"),
    "many": (
        lambda f: header(f, json.dumps(dict.fromkeys(range(100_001), EMPTY)).encode()),
        r"model\.safetensors has more than 100,000 tensors, which no model has",
    ),
    "gptq": (
        lambda f: set_keys(f, quantization_config={"quant_method": "gptq", "bits": 4}),
        r'quantization_config = "gptq"',
    ),
    "bits": (
        lambda f: set_keys(f, quantization_config={"load_in_8bit": True}),
        '"bitsandbytes".* 32 bits',
    ),
    "fp8": (
        lambda f: weights(f, model__shared__weight=torch.zeros(29, 12).to(torch.float8_e4m3fn)),
        r"model.shared.weight holds float8_e4m3fn|shared.weight holds float8_e4m3fn",
    ),
    "family": (
        lambda f: set_keys(f, model_type="mamba"),
        r'"mamba" .* no conversion .* is read \(docs/pretrained\.md\): bart, [^?]*\.$',
    ),
    "depth": (lambda f: set_keys(f, encoder_layers=9_999), "10002 layers"),
    "width": (lambda f: set_keys(f, d_model=24), r"the shape \(29, 12\), but the config makes"),
    "beyond 64 bits": (lambda f: set_keys(f, d_model=3 << 39), "sizes cannot be built .*change"),
    "not finite": (
        lambda f: weights(f, model__encoder__layers__0__fc1__bias=torch.full((20,), torch.nan)),
        r"encoder\.layers\.0\.ffn\.up\.bias holds NaN",
    ),
    "left over": (lambda f: weights(f, extra=torch.zeros(1)), "the weights hold extra"),
}  # fmt: skip
SHARDED: dict[str, tuple[Callable[[Path, list[Path]], object], str]] = {
    "missing": (lambda _, shards: shards[1].unlink(), r"1 of \d files is missing: .*00002"),
    "swapped": (lambda _, shards: shutil.copy(shards[0], shards[1]), "another file does too"),
    "emptied": (
        lambda _, shards: save_file({}, shards[0]),
        r"index\.json names .*, which no file holds",
    ),
    "outside": (
        lambda f, _: (f / INDEX).write_text('{"weight_map": {"a": "../model.safetensors"}}'),
        "not a file in its folder",
    ),
    "many": (
        lambda f, _: (f / INDEX).write_text(
            json.dumps({"weight_map": dict.fromkeys(map(str, range(100_001)), "a.bin")})
        ),
        r"index\.json has more than 100,000 tensors",
    ),
    "no map": (lambda f, _: (f / INDEX).write_text("{}"), "has no weight_map"),
}


def loaded(folder: Path) -> object:
    """Load the model of a folder."""
    return open_folder(folder).load()


def lent(folder: Path) -> object:
    """Freeze the model of a folder layer by layer."""

    def make(model: Any, lend: Lend) -> object:  # noqa: ANN401 -- of any kind
        return freeze(model, "fp32", lend)

    return open_folder(folder).lend_to(make)


def sentences(folder: Path) -> list[str]:
    """Return the errors of loading a folder, at once and layer by layer: one sentence each."""
    said = []
    for load in (loaded, lent):
        with pytest.raises(InputError) as caught:
            load(folder)
        said.append(text := str(caught.value))
        assert text.endswith(".")
        assert "\n" not in text
    return said


@pytest.mark.parametrize("case", REFUSED)
def test_a_folder_that_is_none_is_refused(case: str, tmp_path: Path) -> None:
    """The error says what is wrong, in which file, and what to do."""
    change, pattern = REFUSED[case]
    change(saved("marian", tmp_path / "model"))
    found = sentences(tmp_path / "model")
    assert all(re.search(pattern, text) for text in found), found


@pytest.mark.parametrize(
    ("family", "file"),
    [("bert", "tokenizer.json"), ("bert", "vocab.txt"), ("llama", "tokenizer.model")],
)
def test_a_tokenizer_that_is_a_pointer_is_fetched(family: str, file: str, tmp_path: Path) -> None:
    """Large vocabularies are stored in git-lfs, as weights are."""
    (tmp_path / file).write_text("version https://git-lfs.github.com/spec/v1\noid x\nsize 9\n")
    with pytest.raises(InputError, match=rf"{file} is a pointer .*git lfs pull in"):
        read_tokenizers(tmp_path, {"model_type": family})


@pytest.mark.parametrize("case", SHARDED)
def test_shards_that_do_not_fit_are_named(case: str, tmp_path: Path) -> None:
    """Shards that are missing, swapped or of another model are named."""
    change, pattern = SHARDED[case]
    folder = saved("marian", tmp_path / "model", max_shard_size="5KB")
    change(folder, sorted(folder.glob("model-*.safetensors")))
    found = sentences(folder)
    assert all(re.search(pattern, text) for text in found), found


TOOLKITS = {
    "train.en-de.en.idx": "fairseq-preprocess has numbered",
    "model_step_9000.pt": "OpenNMT-py, a pickle, .* no script .* dragoman train",
    "checkpoint_best.pt": "fairseq.* convert_fsmt_original_pytorch_checkpoint_to_pytorch",
    "model.00.safetensors": "OpenNMT-py or eole.* dragoman train",
    "params.best": "Sockeye.* dragoman train",
    "params.00042": "Sockeye",
    "best.ckpt": "JoeyNMT, Lightning or PyTorch, a pickle.* folder of Hugging Face, if .* train",
    "optimizer.pt": "the state of an optimizer, which is no model",
    "model.ckpt-250000.index": "tensor2tensor, OpenNMT-tf.* dragoman train",
    "ckpt-5000.index": "tensor2tensor, OpenNMT-tf",
    "saved_model.pb": "TensorFlow",
    "tf_model.h5": "from_tf=True",
    "flax_model.msgpack": "from_flax=True",
    "model.enes.intgemm.alphas.bin": r"browsers have them.* take the model\.npz",
    "model.bin": "CTranslate2 or Marian",
    "model.pt": "fairseq, OpenNMT or PyTorch",
    "m.Q4_K.gguf": r"a file of llama\.cpp .* 16 or 32 bits",
    "encoder.onnx": "a graph for onnxruntime",
}


def test_a_checkpoint_counts_more_than_what_is_beside_it(tmp_path: Path) -> None:
    """A corpus and the state of an optimizer lie beside many models."""
    for name in ("train.en-de.en.idx", "optimizer.pt", "checkpoint_best.pt"):
        (tmp_path / name).write_bytes(b"\x80\x02.")
    with pytest.raises(InputError, match=r"checkpoint_best\.pt is a checkpoint of fairseq"):
        open_folder(tmp_path)


@pytest.mark.parametrize("name", TOOLKITS)
def test_the_toolkit_of_a_checkpoint_is_named(name: str, tmp_path: Path) -> None:
    """With what to do, for the folder and for the file; eole's folder has a config of its own."""
    (tmp_path / name).write_bytes(b"\x80\x02.")
    if name == "model.00.safetensors":
        (tmp_path / "config.json").write_text('{"model": {"architecture": "transformer"}}')
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(InputError, match=f"{re.escape(name)} is .*{TOOLKITS[name]}"):
            open_folder(path)
