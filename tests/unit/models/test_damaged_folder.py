"""Anything but a complete folder of one model is refused in one sentence."""

import hashlib
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.models.saved import logits, save

from dragoman.errors import InputError
from dragoman.folder.opening import open_folder


def edit_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the JSON of a saved config."""
    path = folder / "config.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the saved weights."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


def set_weight(name: str, value: torch.Tensor) -> Callable[[Path], None]:
    """Return a function that sets one of the weights."""
    return lambda folder: edit_weights(folder, lambda weights: weights.update({name: value}))


def set_model(key: str, value: object) -> Callable[[Path], None]:
    """Return a function that changes the architecture of a folder of format 1, without hashes."""

    def change(data: dict[str, Any]) -> None:
        data["model"][key] = value
        data.update(format=1, weights_sha256=None, model_sha256=None)

    return lambda folder: edit_config(folder, change)


def set_config(key: str, value: object) -> Callable[[Path], None]:
    """Return a function that sets a value in the config."""
    return lambda folder: edit_config(folder, lambda data: data.update({key: value}))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut short": (
        lambda folder: os.truncate(folder / "model.safetensors", 900),
        "model.safetensors is damaged or cut short",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
    "many": (
        lambda folder: (folder / "model.safetensors").write_bytes(
            struct.pack("<Q", 200_002) + b"[" * 200_002
        ),
        "model.safetensors has more than 100,000 tensors, which no model has",
    ),
    "missing": (
        lambda folder: edit_weights(folder, lambda weights: weights.pop("src_embedding.weight")),
        r"lacks weights that config.json asks for: src_embedding.weight\.",
    ),
    "left over": (set_weight("encoder.extra", torch.zeros(1)), r"no place for: encoder.extra\."),
    "shape": (
        set_weight("src_embedding.weight", torch.zeros(13, 8)),
        r"src_embedding.weight has shape \(13, 8\), but config.json makes it \(12, 8\)",
    ),
    "integers": (
        set_weight("src_embedding.weight", torch.ones(12, 8, dtype=torch.int8)),
        "src_embedding.weight must hold 32-bit",
    ),
    "another weight": (
        lambda folder: edit_weights(
            folder, lambda weights: weights["src_embedding.weight"].add_(1)
        ),
        "model.safetensors is not the file that config.json was saved with",
    ),
    "other heads": (
        lambda folder: edit_config(folder, lambda data: data["model"].update(num_heads=4)),
        "config.json: the section model is not the one that the weights were saved with",
    ),
    "too wide": (set_model("d_model", 10**8), "has shape .* not of one model"),
    "beyond 64 bits": (set_model("d_model", 1 << 40), r"config.json: the model's sizes cannot be"),
    "beyond an integer": (set_model("head_dim", 1 << 62), r"sizes cannot be built \(.*change"),
    "too deep": (set_model("num_decoder_layers", 9000), r"describes a model of 9,00\d layers"),
    "too many heads": (set_model("num_kv_heads", 1), "kv_proj.* has shape"),
    "half a character": (set_model("norm", "\ud800"), "model.norm must be one of"),
    "padding": (set_model("pad_id", 12), "pad_id = 12 is not in a vocabulary of 12"),
    "endless": (
        set_config("decoding", {"max_length_factor": 1e300}),
        r"decoding.max_length_factor is 1e\+300; it must be at least 0 and at most 1,000",
    ),
    "newer": (set_config("format", 5), r"format 5, made by a newer dragoman .*upgrade"),
    "format 0": (set_config("format", 0), "no format number"),
    "no hash": (set_config("weights_sha256", None), "lacks the hash of the weights"),
    "unknown key": (set_config("decodin", {}), "decodin; did you mean decoding"),
    "another kind": (
        lambda folder: edit_config(folder, lambda data: data["model"].update(kind="encoder")),
        "model.kind must be",
    ),
    "not JSON": (
        lambda folder: (folder / "config.json").write_text("{"),
        r"config.json is damaged \(.*\); restore it, or download it again",
    ),
    "wrong tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("[]"),
        "tokenizer.json is not the tokenizer that the weights were trained with",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "There is no file"),
    "a tokenizer elsewhere": (
        set_config("tokenizers", {"../tokenizer.json": "0"}),
        "tokenizers must name tokenizer.json",
    ),
}


SOURCE, SCALE = "src_embedding.weight", "src_embedding.weight.scale"
NORM = "encoder.layers.0.ffn_residual.norm.weight"


IN_EIGHT_BITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no scales": (
        lambda folder: edit_weights(folder, lambda weights: weights.pop(SCALE)),
        rf"lacks weights that config.json asks for: {SCALE}\.",
    ),
    "a scale for each column": (
        set_weight(SCALE, torch.ones(8)),
        rf"{SCALE} has shape \(8,\), but config.json makes it \(12,\)",
    ),
    "scales left over": (set_weight(SOURCE, torch.ones(12, 8)), rf"no place for: {SCALE}\."),
    "scales in half precision": (
        set_weight(SCALE, torch.ones(12).half()),
        f"{SCALE} must hold 32-bit",
    ),
    "a norm in 8 bits": (
        set_weight(NORM, torch.ones(8, dtype=torch.int8)),
        f"{NORM} must hold 32-bit",
    ),
    "unsigned integers": (
        set_weight(SOURCE, torch.ones(12, 8, dtype=torch.uint8)),
        f"{SOURCE} must hold 32-bit",
    ),
    "NaN": (
        set_weight(SCALE, torch.full((12,), float("nan"))),
        f"the weights {SOURCE} hold NaN or infinity",
    ),
    "infinity": (
        set_weight(SCALE, torch.full((12,), float("-inf"))),
        f"the weights {SOURCE} hold NaN or infinity",
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder to copy and damage."""
    folder = tmp_path_factory.mktemp("model")
    save(folder)
    return folder


def assert_refused(folder: Path, sentence: str) -> None:
    """Assert that it does not load, and that one line with its name says so."""
    with pytest.raises(InputError, match=sentence) as caught:
        open_folder(folder).load()
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_refused_in_one_sentence(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    """The sentence names the file and what is wrong with it."""
    folder = shutil.copytree(whole, tmp_path / "m")
    spoil, sentence = DAMAGES[damage]
    spoil(folder)
    assert_refused(folder, sentence)


@pytest.mark.parametrize("damage", IN_EIGHT_BITS)
def test_damaged_weights_in_8_bits_are_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    """This holds even if the hash is made to fit: integers without scales are not weights."""
    folder = tmp_path / "m"
    save(folder, eight_bits=True)
    spoil, sentence = IN_EIGHT_BITS[damage]
    spoil(folder)
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    edit_config(folder, lambda data: data.update(weights_sha256=found))
    assert_refused(folder, sentence)


@pytest.mark.parametrize("number", [1, 2])
def test_integers_are_of_format_3(tmp_path: Path, number: int) -> None:
    """Older formats have no integers, with or without scales."""
    save(tmp_path / "m", eight_bits=True)
    edit_config(tmp_path / "m", lambda data: data.update(format=number))
    with pytest.raises(InputError, match=r"weight.* must hold 32-bit floating-point numbers"):
        open_folder(tmp_path / "m").load()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_an_older_folder_loads_with_a_warning(
    whole: Path, tmp_path: Path, dtype: torch.dtype
) -> None:
    """Format 1 has no hash of the weights, and any float dtype; it is read with a warning."""
    folder = shutil.copytree(whole, tmp_path / "m")
    weights = {name: w.to(dtype) for name, w in load_file(whole / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors")

    def make_older(data: dict[str, Any]) -> None:
        data["format"] = 1
        del data["weights_sha256"], data["model_sha256"]

    edit_config(folder, make_older)
    with pytest.warns(UserWarning, match="m was written by an older dragoman without a hash"):
        older = open_folder(folder).model
    expected = open_folder(whole).model
    rounded = {name: value.to(dtype).float() for name, value in expected.state_dict().items()}
    expected.load_state_dict(rounded)
    assert torch.equal(logits(older), logits(expected))


def test_defaults_of_decoding_may_be_edited(whole: Path, tmp_path: Path) -> None:
    """Only the architecture is tied to the weights; the layout of the file does not matter."""
    folder = shutil.copytree(whole, tmp_path / "m")
    edit_config(folder, lambda data: data["decoding"].update(beam_size=7))
    assert open_folder(folder).config.decoding.beam_size == 7


def test_a_folder_that_is_none_says_what_it_is(whole: Path, tmp_path: Path) -> None:
    """Missing (with the nearest name), a file, an unfinished run, half a model, something else."""
    shutil.copytree(whole, tmp_path / "en-zh")
    (tmp_path / "run" / "training" / "checkpoints" / "step-1").mkdir(parents=True)
    shutil.copytree(whole, tmp_path / "half")
    (tmp_path / "half" / "config.json").unlink()
    (tmp_path / "half" / "training").mkdir(exist_ok=True)
    (tmp_path / "other").mkdir()
    for name in "dbca":
        shutil.copytree(tmp_path / "en-zh", tmp_path / "several" / name)
    for name, sentence in {
        "en-hz": "There is no model folder .*en-hz; did you mean .*en-zh?",
        "quite/else": r"There is no model folder .*else\.",
        "en-zh/config.json": "is a file; give the model folder",
        "run": "holds a training run that has not written a model yet",
        "run/training/checkpoints/step-1": "; give the folder of the run, .*/run, which holds",
        "half": r"has model.safetensors but no config\.json; copy that file too",
        "other": r"is not a model folder: it has no config\.json\.",
        "several": r"is not a model folder: .*; it has model folders: \S*/a, \S*/b, \S*/c\.",
    }.items():
        with pytest.raises(InputError, match=sentence):
            open_folder(tmp_path / name).load()


def test_weights_that_may_not_be_read_are_not_missing(whole: Path) -> None:
    """The sentence has the system's reason, although the library reports a missing file."""
    with tempfile.TemporaryDirectory() as open_to_all:
        folder = Path(open_to_all, "model")
        shutil.copytree(whole, folder)
        for path in (Path(open_to_all), folder):
            path.chmod(0o755)
        (folder / "model.safetensors").chmod(0o000)
        superuser = os.geteuid() == 0
        if superuser:
            os.seteuid(65534)  # a user to whom file modes apply
        try:
            with pytest.raises(InputError, match=r"Cannot read .*safetensors: Permission denied"):
                open_folder(folder).load()
        finally:
            if superuser:
                os.seteuid(0)
