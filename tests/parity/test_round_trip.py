"""From Hugging Face to our folder and back: every tensor, bit for bit, and every other file."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load, load_file
from tests.parity.foreign import make_theirs
from tests.parity.test_foreign_encoder_only import DISTIL
from tests.parity.test_foreign_files import BART, BERT, GPT2, LLAMA, MANY_HEADS, MARIAN, SMALL, T5
from torch import Tensor
from transformers import PreTrainedModel

from dragoman.folder.foreign import FAMILIES, family
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import open_folder
from dragoman.folder.origin import Content, give_back, keep_origin

TWO = {"encoder_layers": 2, "decoder_layers": 2}
LABELS = {"id2label": {0: "a", 1: "b", 2: "c"}}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "marian-untied": (
        "MarianMTModel",
        {
            **MARIAN,
            "decoder_vocab_size": 19,
            "share_encoder_decoder_embeddings": False,
            "tie_word_embeddings": False,
        },
    ),
    "mbart": ("MBartForConditionalGeneration", {**BART, **TWO}),
    "bert-classes": ("BertForSequenceClassification", {**BERT, **LABELS}),
    "bert-tags": ("BertForTokenClassification", {**BERT, **LABELS}),
    "bert-bare": ("BertModel", BERT),
    "gpt2-untied": ("GPT2LMHeadModel", {**GPT2, "n_layer": 2, "tie_word_embeddings": False}),
    "mistral": ("MistralForCausalLM", {**MANY_HEADS, "sliding_window": 3}),
    "qwen2": ("Qwen2ForCausalLM", {**MANY_HEADS, "num_key_value_heads": 32}),
    "qwen3": ("Qwen3ForCausalLM", {**LLAMA, "num_key_value_heads": 1, "head_dim": 6}),
    "starcoder2": ("Starcoder2ForCausalLM", {**LLAMA, "num_key_value_heads": 2}),
    "gemma": ("GemmaForCausalLM", {**MANY_HEADS, "num_attention_heads": 16}),
    "mt5": ("MT5ForConditionalGeneration", T5),
    "roberta": ("RobertaForMaskedLM", {**BERT, "max_position_embeddings": 18}),
    "distilbert": ("DistilBertForSequenceClassification", {**DISTIL, **LABELS}),
}
REST = {  # what no model of ours has a place for
    "model.encoder.embed_positions.weight",
    "model.decoder.embed_positions.weight",
    "roberta.embeddings.position_embeddings.weight",
    "pooler.dense.weight",
    "pooler.dense.bias",
}
CASES = {name: (kind.__name__, keys) for name, (kind, _, keys) in SMALL.items()} | MORE


def make(case: str) -> PreTrainedModel:
    """A model of theirs with random weights."""
    name, keys = CASES[case]
    kind = getattr(transformers, name)
    return make_theirs(kind, kind.config_class(**keys), torch.float32)


def test_every_family_is_here() -> None:
    """A table that is added has its way back tried."""
    kinds = [getattr(transformers, name) for name, _ in CASES.values()]
    assert {kind.config_class.model_type for kind in kinds} == set(FAMILIES)


@pytest.mark.parametrize("case", CASES)
def test_the_way_back_gives_every_bit(case: str, tmp_path: Path) -> None:
    """Through what our folder keeps; fp64 loses digits here, which are kept beside."""
    theirs = make(case)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        folder = tmp_path / str(dtype)
        theirs.to(dtype).save_pretrained(folder)
        expected = load_file(folder / "model.safetensors")
        files, weights, config = kept(folder)
        origin = tmp_path / f"ours-{dtype}"
        for name, content in files.items():
            (origin / name).parent.mkdir(parents=True, exist_ok=True)
            content.save(origin / name)
        found, others = give_back(origin / "huggingface", weights, config.model)
        assert {name: content.data for name, content in others.items()} == {
            path.name: path.read_bytes() for path in folder.glob("*.json")
        }
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert found[name].dtype == dtype
            assert torch.equal(found[name], tensor), name
        if dtype == torch.bfloat16:
            assert not {*load((origin / "huggingface/rest.safetensors").read_bytes())} - REST


def kept(folder: Path) -> tuple[dict[str, Content], dict[str, Tensor], FolderConfig]:
    """What our folder keeps of one of theirs, our weights and our config."""
    opened = open_folder(folder)
    weights = opened.model.state_dict()
    return keep_origin(opened, weights), weights, opened.config


@pytest.mark.parametrize("case", ["gemma", "bart", "mt5"])
def test_weights_that_were_trained_go_back_too(case: str, tmp_path: Path) -> None:
    """What is kept of the old ones does not come back in their place."""
    make(case).save_pretrained(tmp_path)
    files, weights, config = kept(tmp_path)
    (tmp_path / "huggingface").mkdir()
    for name, content in files.items():
        content.save(tmp_path / name)
    trained = {name: tensor + 0.5 for name, tensor in weights.items()}
    found, _ = give_back(tmp_path / "huggingface", trained, config.model)
    again = dict(
        family(json.loads((tmp_path / "config.json").read_text())).each_weight(found, config.model)
    )
    for name, tensor in again.items():
        assert torch.allclose(tensor, trained[name], atol=1e-6), name
