"""Published folders damaged in any file: a model that answers, or one sentence, and no crash."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.damage import damage
from tests.foreign_folders import FAMILIES
from tests.property.test_damaged_folders import little_memory

import dragoman
from dragoman.errors import DragomanError, InputError
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.translate.translator import Translator

transformers = pytest.importorskip("transformers", reason="makes the folders")

TRIES = int(os.environ.get("DRAGOMAN_FUZZ", "24"))
"""Damaged folders of each family."""
SIZES = {
    "bart": ("BartForConditionalGeneration", {
        "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8,
        "max_position_embeddings": 32, "vocab_size": 700}),
    "gpt2": ("GPT2LMHeadModel", {
        "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32, "vocab_size": 700}),
    "bert": ("BertForSequenceClassification", {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 32, "vocab_size": 900}),
}  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes the folder of a family by its class, with tokenizers that need no extra package."""

    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        said = FAMILIES[name](folder)
        kind, sizes = SIZES[name]
        cls = getattr(transformers, kind)
        torch.manual_seed(0)
        cls(cls.config_class(**(said | sizes))).save_pretrained(folder)
        return folder

    return make


def used(folder: Path) -> None:
    """Load a folder and let it answer a text."""
    model = dragoman.load(folder, device="cpu")
    if isinstance(model, Translator):
        model.translate("Ein Hund <b>", beam_size=1)
    elif isinstance(model, Generator):
        model.generate("Ein Hund <b>", max_tokens=2)
    else:
        model.classify("Ein Hund <b>")


def refusal(folder: Path) -> str:
    """Why a folder is not used, or nothing; any other error than our own passes through."""
    try:
        used(folder)
    except DragomanError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", SIZES)
def test_any_damage_is_one_sentence(name: str, published: Callable[[str], Path]) -> None:
    """In any of its files, as a disk or a hand may do it; then the folder is put right again."""
    folder, draw = published(name), random.Random(name)
    read = sorted([*folder.glob("*.json"), *folder.glob("*.safetensors")])
    whole = {path: path.read_bytes() for path in read}
    used(folder)
    for _ in range(TRIES):
        path = draw.choice(read)
        path.write_bytes(damage(whole[path], draw))
        with little_memory():
            refused = refusal(folder)
        assert "\n" not in refused
        path.write_bytes(whole[path])
    used(folder)


def test_files_of_two_models_are_told_apart(published: Callable[[str], Path]) -> None:
    """Weights, config and tokenizer of one family in the folder of another."""
    folders = {name: published(name) for name in SIZES}
    for folder in folders.values():
        for other in set(folders.values()) - {folder}:
            for file in ("model.safetensors", "config.json"):
                whole = (folder / file).read_bytes()
                shutil.copy(other / file, folder)
                with pytest.raises(InputError):
                    used(folder)
                (folder / file).write_bytes(whole)
        used(folder)


def test_a_header_that_lies_takes_no_memory(published: Callable[[str], Path]) -> None:
    """A tensor of 4 TiB, a header of 2^60 bytes: refused in the memory that loading takes."""
    folder = published("gpt2")
    for start in (
        b'{"wte.weight":{"dtype":"F32","shape":[1073741824,1024],"data_offsets":[0,4398046511104]}}',
        b"",
    ):
        length = len(start) or 1 << 60
        (folder / "model.safetensors").write_bytes(length.to_bytes(8, "little") + start + bytes(99))
        with little_memory(), pytest.raises(InputError, match=r"model\.safetensors"):
            used(folder)
