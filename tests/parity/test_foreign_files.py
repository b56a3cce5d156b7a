"""Variants of Hugging Face files, and files that are refused with the name of the problem."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from tests.parity.foreign import config_file, make_named
from tests.parity.foreign_sizes import (
    BART,
    BERT,
    DISTIL,
    FSMT,
    GPT2,
    IMAGES,
    LLAMA,
    PUBLISHED,
    SEPARATE,
    T5,
)
from torch import Tensor
from transformers import AutoConfig

from dragoman.errors import InputError
from dragoman.folder.foreign import FAMILIES, family
from dragoman.models import DecoderOnlyConfig, EncoderOnlyConfig, ModelConfig
from dragoman.models.heads import TaggingHead

State = dict[str, Tensor]
MANY_HEADS = {**BERT, "hidden_size": 128, "num_attention_heads": 64}  # which their defaults keep
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("MarianMTModel", PUBLISHED),
    "marian-two": (
        "MarianMTModel",
        {**SEPARATE, "scale_embedding": True, "activation_function": "relu"},
    ),
    "bart": ("BartForConditionalGeneration", BART),
    "m2m_100": ("M2M100ForConditionalGeneration", BART),
    "t5": ("T5ForConditionalGeneration", T5),
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "bert": ("BertForMaskedLM", BERT),
    "llama": ("LlamaForCausalLM", {**LLAMA, "tie_word_embeddings": True}),
    "gemma3": ("Gemma3ForConditionalGeneration", IMAGES),
}


@cache
def small(name: str) -> tuple[dict[str, Any], State]:
    """Return the config and the weights of a small model."""
    theirs = make_named(*SMALL[name])
    return config_file(theirs), {n: t.clone() for n, t in theirs.state_dict().items()}


def without(state: State, *names: str) -> State:
    """Return the state without these weights."""
    assert set(names) <= set(state)
    return {name: tensor for name, tensor in state.items() if name not in names}


# What other versions left out (tied matrices, tables of sines) and stored besides the weights.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "marian": ("model.encoder.embed_positions.weight",),
    "bart": ("model.encoder.embed_tokens.weight", "lm_head.weight"),
    "m2m_100": ("model.shared.weight",),
    "t5": ("shared.weight", "lm_head.weight"),
    "gpt2": ("lm_head.weight",),
    "bert": ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
    "llama": ("model.embed_tokens.weight",),
}
BESIDE: dict[str, tuple[str, ...]] = {
    "bart": ("model.encoder.version", "model.decoder.version"),
    "m2m_100": ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights"),
    "t5": ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    "gpt2": ("h.0.attn.bias", "h.0.attn.masked_bias"),
    "bert": ("bert.embeddings.position_ids", "bert.pooler.dense.weight", "bert.pooler.dense.bias"),
    "llama": ("model.rotary_emb.inv_freq", "model.layers.0.self_attn.rotary_emb.inv_freq"),
}
RENAMED: dict[str, dict[str, str]] = {
    "gpt2": {"transformer.": ""},  # a model without a head
    "bert": {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"},
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_files_of_old_hold_the_same_model(name: str) -> None:
    """Tied matrices once or more, buffers, other prefixes and names of norms change no weight."""
    hf, state = small(name)
    kind, config = family(hf), family(hf).config(hf)
    old = without(state, *LEFT_OUT[name])
    for new, before in RENAMED.get(name, {}).items():
        old = {key.replace(new, before): tensor for key, tensor in old.items()}
    old |= dict.fromkeys(BESIDE.get(name, ()), torch.zeros(1))
    found, wanted = (dict(kind.each_weight(each, config)) for each in (old, state))
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)


ONLY_SIZES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("marian", "bart", "mbart", "m2m_100"), BART),
    "fsmt": FSMT,
    **dict.fromkeys(("t5", "mt5", "umt5"), T5),
    **dict.fromkeys(("bert", "camembert", "modernbert", "mpnet", "roberta", "xlm-roberta"), BERT),
    **dict.fromkeys(("mistral", "qwen2", "qwen3", "starcoder2"), MANY_HEADS),
    "gpt2": GPT2,
    "distilbert": DISTIL,
    "gemma": {**MANY_HEADS, "num_attention_heads": 16},
    **dict.fromkeys(("gemma2", "gemma3_text", "hunyuan_v1_dense"), LLAMA),
    **dict.fromkeys(("phi3", "smollm3", "olmo2", "olmo3", "granite"), LLAMA),
    "gemma3": {"text_config": {}},
    "llama": LLAMA,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_file_leaves_out_is_as_their_class_has_it(name: str) -> None:
    """A config with only sizes is read like the complete one that their class makes of it."""
    sizes, config = ONLY_SIZES[name], FAMILIES[name].config
    whole = AutoConfig.for_model(name, **sizes).to_dict()
    assert explicit(config({"model_type": name, **sizes})) == explicit(config(whole))


def test_the_part_for_text_counts_in_a_config_of_several() -> None:
    """Only ties are told outside of it, and are the default there, as in their class."""
    inner = {**LLAMA, "rope_theta": 500.0, "tie_word_embeddings": False}
    hf = {"text_config": inner, "hidden_size": 48, "rope_theta": 7.0}
    tied = AutoConfig.for_model("gemma3", **hf).tie_word_embeddings
    alone = FAMILIES["gemma3_text"].config({**inner, "tie_word_embeddings": tied})
    assert FAMILIES["gemma3"].config(hf) == alone


def test_labels_are_in_the_order_of_their_numbers() -> None:
    """JSON stores the numbers of labels as text, in which 10 precedes 2."""
    labels = {str(n): f"label-{n}" for n in reversed(range(12))}
    hf = {"model_type": "bert", **BERT, "id2label": labels}
    config = family(hf).config({**hf, "architectures": ["BertForTokenClassification"]})
    assert isinstance(config, EncoderOnlyConfig)
    assert config.head == TaggingHead(labels=tuple(f"label-{n}" for n in range(12)))


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("bert", "cls."), ("roberta", "lm_head."), ("distilbert", "vocab_"), ("modernbert", "head.")],
)
def test_a_head_that_was_not_saved_is_known_by_its_prefix(name: str, prefix: str) -> None:
    """sentence-transformers names it in the config nevertheless; other families' prefixes vary."""
    hf, stored = {"architectures": ["SomeForMaskedLM"]}, FAMILIES[name].stored
    for other in ("cls.", "lm_head.", "vocab_", "head."):
        found = stored(hf, {f"{other}dense.weight": torch.zeros(1)})["architectures"]
        assert found == ["SomeForMaskedLM" if other == prefix else "SomeModel"]


def explicit(config: ModelConfig) -> ModelConfig:
    """Return the config with derived fields set, as their class does."""
    kv_heads = config.num_kv_heads or config.num_heads
    return replace(config, head_dim=config.width, num_kv_heads=kv_heads)


PADS = {"pad_id": "pad_token_id"}
STARTS = PADS | {"bos_id": "decoder_start_token_id"}
CARRIED: dict[str, dict[str, str]] = {
    "marian": {
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "ffn_dropout": "activation_dropout",
        **STARTS,
    },
    "t5": {"dropout": "dropout_rate", "ffn_dropout": "dropout_rate", **STARTS},
    "gpt2": {"dropout": "resid_pdrop", "attention_dropout": "attn_pdrop"},
    "bert": {
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        **PADS,
    },
    "llama": {"attention_dropout": "attention_dropout", **PADS},
}
"""Our fields and the keys that they come from, except begin and end with the usual keys."""


@pytest.mark.parametrize("name", CARRIED)
def test_rates_and_special_tokens_are_carried_over(name: str) -> None:
    """Logits do not show these: probabilities of dropout, padding, begin and end."""
    keys = {"bos_id": "bos_token_id", "eos_id": "eos_token_id"} | CARRIED[name]
    numbered = enumerate(sorted({*keys.values()}), start=2)
    given = {key: n if key.endswith("id") else n / 10 for n, key in numbered}
    hf = {"model_type": name, **ONLY_SIZES[name], **given}
    config = family(hf).config(hf)
    wanted = {"pad_id": -1, "dropout": 0.0} | {field: given[key] for field, key in keys.items()}
    assert {field: getattr(config, field) for field in wanted} == wanted


def test_special_tokens_are_told_as_far_as_they_are_known() -> None:
    """The first of several end tokens is taken; a missing one is -1."""
    hf = {"model_type": "llama", **LLAMA, "eos_token_id": [7, 8], "bos_token_id": None}
    config = family(hf).config(hf)
    assert isinstance(config, DecoderOnlyConfig)
    assert (config.pad_id, config.bos_id, config.eos_id) == (-1, -1, 7)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("marian", {"activation_function": "mish"}),
    ("marian", {"d_model": None}),
    ("bert", {"architectures": ["BertForQuestionAnswering"]}),
    ("camembert", {"hidden_act": "relu", "architectures": ["CamembertForMaskedLM"]}),
    ("modernbert", {"architectures": ["ModernBertForSequenceClassification"]}),
    (
        "llama",
        {"long_factor": None, "rope_scaling": {"type": "longrope", "short_factor": [1.0]}},
    ),
    ("llama", {"factor": None, "rope_scaling": {"type": "linear"}}),
    ("qwen3", {"sliding_window": None, "layer_types": ["sliding_attention"]}),
    ("gemma3", {"architectures": ["Gemma3Model"]}),
    (
        "gemma3",
        {"final_logit_softcapping": 2.0, "text_config": {**LLAMA, "final_logit_softcapping": 2.0}},
    ),
]
"""What `test_foreign_attributes` and `test_foreign_keys` do not change."""


@pytest.mark.parametrize(("name", "keys"), REFUSED, ids=str)
def test_what_we_would_compute_otherwise_is_refused(name: str, keys: dict[str, Any]) -> None:
    """The error names the key (the first one here) and, if there is one, the value."""
    hf = {"model_type": name, **ONLY_SIZES.get(name, {}), **keys}
    with pytest.raises(InputError) as caught:
        family(hf).config(hf)
    key, value = next(iter(keys.items()))
    assert key in str(caught.value)
    if value is not None:
        text = json.dumps(value[0] if isinstance(value, list) else value)
        assert f"{key} = {text}" in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model_type": "nllb-moe"}, "is not supported; it has mixtures of experts; take a model"),
        ({"auto_map": {"a": "b"}}, "asks for code of its own, which is not run"),
        ({"model_type": "deberta"}, "it has scores by contents and positions apart; take"),
        ({"model_type": "mbert"}, "is not supported; no conversion makes it so; take a model"),
        (
            {"architectures": ["BertForQuestionAnswering"]},
            "known are BertModel, BertForMaskedLM, BertForSequenceClassification, BertForToken",
        ),
        (
            {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}},
            "has 1 label, so the model gives a number and no label, .* not supported; take one of",
        ),
        (
            {"architectures": ["BertForTokenClassification"], "id2label": {"1": "a", "2": "b"}},
            "id2label = .* not supported; it must number 2 labels from 0",
        ),
    ],
)
def test_it_is_said_what_is_read_instead(keys: dict[str, Any], said: str) -> None:
    """A program wrote the config, so no name is treated as a typing error."""
    hf = {"model_type": "bert", **BERT, **keys}
    with pytest.raises(InputError, match=said) as caught:
        family(hf).config(hf)
    assert "did you mean" not in str(caught.value)
    assert "('" not in str(caught.value)


def test_tensors_that_do_not_fit_are_named() -> None:
    """They are missing, left over, of another shape, or different although the config ties them."""
    hf, state = small("marian")
    kind, config = family(hf), family(hf).config(hf)
    k_proj = "model.encoder.layers.0.self_attn.k_proj.weight"
    tied = [n for n in state if "embed_tokens" in n or "shared" in n or "lm_head" in n]
    for given, message in (
        (without(state, k_proj), r"lack encoder\.layers\.0\.self_attn\.k_proj\.weight"),
        (without(state, *tied), r"lack .*shared\.weight"),
        ({f"module.{name}": each for name, each in state.items()}, "begins with module.; save "),
        (
            {**state, "model.encoder.layers.9.fc1.weight": torch.zeros(1)},
            r"hold encoder\.layers\.9\.fc1\.weight",
        ),
        (
            {**state, k_proj: torch.zeros(7, 12)},
            r"k_proj.* with .*v_proj.* gives .*kv_proj.* the shape",
        ),
        ({**state, "lm_head.weight": torch.zeros(29, 12)}, "are tied in the config"),
    ):
        with pytest.raises(InputError, match=message):
            dict(kind.each_weight(given, config))
