"""Published folders damaged in any file: a model that answers, or one sentence, and no crash."""

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.damage import damage
from tests.foreign_folders import FAMILIES
from tests.parity.test_foreign_marian import own_folder, their_folder
from tests.property.test_damaged_folders import attempt, little_memory

import dragoman
from dragoman.convert.published import take_over
from dragoman.errors import InputError
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.translate.translator import Translator

transformers = pytest.importorskip("transformers", reason="makes the folders")

TRIES = int(os.environ.get("DRAGOMAN_FUZZ", "10"))
"""Damaged folders of each kind."""
BART = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8,
    "max_position_embeddings": 32}  # fmt: skip
BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 32}  # fmt: skip
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 2,
      "decoder_start_token_id": 0}  # fmt: skip
LLAMA = {**BERT, "num_key_value_heads": 1}
SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("BartForConditionalGeneration", BART),
    "m2m100": ("M2M100ForConditionalGeneration", BART),
    "nllb": ("M2M100ForConditionalGeneration", BART),
    "mbart": ("MBartForConditionalGeneration", BART | {"decoder_start_token_id": 0}),
    "t5": ("T5ForConditionalGeneration", T5),
    "mt5": ("MT5ForConditionalGeneration", T5),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}),
    "llama": ("LlamaForCausalLM", LLAMA),
    "qwen2": ("Qwen2ForCausalLM", LLAMA),
    "gemma": ("GemmaForCausalLM", LLAMA | {"head_dim": 8}),
    "bert": ("BertForSequenceClassification", BERT),
    "distilbert": ("DistilBertForSequenceClassification", {
        "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 8, "max_position_embeddings": 32}),
    "roberta": ("RobertaForTokenClassification", BERT | {"pad_token_id": 1}),
    "xlm-roberta": ("XLMRobertaForSequenceClassification", BERT | {"pad_token_id": 1}),
    "camembert": ("CamembertForTokenClassification", BERT | {"pad_token_id": 1}),
}  # fmt: skip
SAME = {"mt5": "t5", "gemma": "llama", "distilbert": "bert"}
"""Families with the tokenizer of another one."""
OLD = ("t5", "mbart", "nllb", "llama", "gpt2", "bert", "xlm-roberta", "camembert")
"""Families of which older folders have no tokenizer.json."""


def make(name: str, folder: Path, *, fast: bool = True) -> Path:
    """Write the folder of a family by its class."""
    folder.mkdir()
    said = FAMILIES[SAME.get(name, name)](folder, fast=fast)
    kind, sizes = SIZES[name]
    cls = getattr(transformers, kind)
    torch.manual_seed(0)
    cls(cls.config_class(**(said | {"vocab_size": 1300} | sizes))).save_pretrained(folder)
    return folder


def make_adapters(folder: Path) -> Path:
    """Write adapters of a Llama beside it."""
    peft = pytest.importorskip("peft", reason="needs peft")
    base = make("llama", folder.with_name("base"))
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    lora = peft.LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj", "v_proj"])
    peft.get_peft_model(model, lora).save_pretrained(folder)
    return folder


def make_marian(folder: Path) -> Path:
    """Write a Marian with its two tokenizers."""
    their_folder(folder)
    return folder


def make_marians_own(folder: Path) -> Path:
    """Write a folder as Marian does."""
    theirs = folder.with_name("theirs")
    return own_folder(folder, their_folder(theirs), theirs)


def make_converted(folder: Path) -> Path:
    """Write a folder of ours that was made of a Marian."""
    take_over(make_marian(folder.with_name("theirs")), folder)
    return folder


KINDS: dict[str, Callable[[Path], Path]] = {
    **{name: partial(make, name) for name in SIZES},
    **{f"old {name}": partial(make, name, fast=False) for name in OLD},
    "marian": make_marian,
    "adapters": make_adapters,
    "converted": make_converted,
    "marian's own": make_marians_own,
}


LANGUAGES = {
    "m2m100": ("en", "de"),
    **dict.fromkeys(("nllb", "old nllb"), ("eng_Latn", "deu_Latn")),
    **dict.fromkeys(("mbart", "old mbart"), ("en_XX", "de_DE")),
}


def used(folder: Path, kind: str) -> None:
    """Load a folder and let it answer a text."""
    model = dragoman.load(folder, device="cpu")
    if isinstance(model, Translator):
        options = replace(model.options, max_length_factor=0.0, max_length_constant=4)
        model.between(*LANGUAGES.get(kind, ())).translate("Ein Hund <b>", options=options)
    elif isinstance(model, Generator):
        model.generate("Ein Hund <b>", max_tokens=2)
    elif isinstance(model, Tagger):
        model.tag("Ein Hund <b>")
    else:
        model.classify("Ein Hund <b>")


@pytest.mark.filterwarnings("ignore")  # of packages that write the folders
@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_is_one_sentence(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """In any of its files, as a disk or a hand may do it; then the folder is put right again."""
    folder = KINDS[kind](tmp_path / "m")
    draw = random.Random(f"{request.config.getoption('seed')} {kind}")
    read = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    whole = {path: path.read_bytes() for path in read}
    used(folder, kind)
    for case in range(TRIES):
        path = draw.choice(read)
        path.write_bytes(damage(whole[path], draw))
        with little_memory():
            refused = attempt(lambda: used(folder, kind), f"{case}: {path.name}")
        assert refused is None or "\n" not in refused
        path.write_bytes(whole[path])
    for path in read:
        path.unlink()
        os.mkfifo(path)  # nobody waits for a writer
        attempt(lambda: used(folder, kind), f"a pipe: {path.name}")
        path.unlink()
        path.write_bytes(whole[path])
    used(folder, kind)


def test_a_header_that_lies_takes_no_memory(tmp_path: Path) -> None:
    """A tensor of 4 TiB, a header of 2^60 bytes: refused in the memory that loading takes."""
    folder = make("gpt2", tmp_path / "m")
    for start in (
        b'{"wte.weight":{"dtype":"F32","shape":[1073741824,1024],"data_offsets":[0,4398046511104]}}',
        b"",
    ):
        length = len(start) or 1 << 60
        (folder / "model.safetensors").write_bytes(length.to_bytes(8, "little") + start + bytes(99))
        with little_memory(), pytest.raises(InputError, match=r"model\.safetensors"):
            used(folder, "gpt2")
