"""From Hugging Face to our weights and back: every tensor, bit for bit, by the same tables."""

import json
from typing import Any

import pytest
import torch
import transformers
from tests.parity.foreign import config_file, make_theirs
from tests.parity.test_foreign_files import BART, BERT, GPT2, LLAMA, MANY_HEADS, MARIAN, SMALL
from torch import Tensor
from transformers import PreTrainedModel

from dragoman.convert.huggingface import fill
from dragoman.convert.shapes import returned
from dragoman.models.foreign import FAMILIES, family

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
}
CASES = {name: (kind.__name__, keys) for name, (kind, _, keys) in SMALL.items()} | MORE
UNUSED = {"pooler.dense.weight", "pooler.dense.bias"}  # of a bare BERT


def make(case: str) -> PreTrainedModel:
    """A model of theirs with random weights."""
    name, keys = CASES[case]
    kind = getattr(transformers, name)
    return make_theirs(kind, kind.config_class(**keys), torch.float32)


def test_every_family_is_here() -> None:
    """A table that is added has its way back tried."""
    tried = {make(case).config.model_type for case in CASES}
    assert tried == set(FAMILIES)


@pytest.mark.parametrize("case", CASES)
def test_the_way_back_gives_every_bit(case: str) -> None:
    """Into a new model of the class, built of the config as it was; half precision too."""
    theirs = make(case)
    hf = json.loads(json.dumps(config_file(theirs)))
    config = family(hf).config(hf)
    shape = returned(hf, {})
    for dtype in (torch.float32, torch.bfloat16):
        theirs = theirs.to(dtype)
        weights = {n: t.float() for n, t in family(hf).weights(theirs.state_dict(), config).items()}
        again = getattr(transformers, shape.model)(theirs.config_class(**shape.config)).to(dtype)
        fill(again.state_dict(), shape, weights, config)
        assert config_file(again) == hf
        expected, found = theirs.state_dict(), again.state_dict()
        assert set(found) == set(expected)
        for name, tensor in expected.items():
            assert torch.equal(found[name], _kept(name, tensor, case)), name


def _kept(name: str, tensor: Tensor, case: str) -> Tensor:
    """A tensor without what no model of ours has a place for."""
    kept = tensor.clone()
    if name in UNUSED:
        kept.zero_()
    if name.endswith("embed_positions.weight") and case in ("bart", "mbart"):
        kept[:2] = 0.0  # never looked up
    return kept
