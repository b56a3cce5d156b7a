"""Each attribute of a decoder's config is read as by its class, or rejected by its name."""

from copy import deepcopy
from itertools import chain
from typing import Any

import pytest
import torch
from tests.parity.foreign import (
    assert_same_logits,
    fill_ours,
    make_named,
    random_ids,
    run,
)
from tests.parity.foreign_sizes import GPT2, LLAMA, V
from transformers import DynamicCache

from dragoman.errors import InputError
from dragoman.folder.foreign import FAMILIES

READ = 18
SMALL = {**LLAMA, "pad_token_id": 0, "sliding_window": 6}
SCALED = {**SMALL, "head_dim": 6, "query_pre_attn_scalar": 7}
DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": SMALL,
    "qwen2": SMALL,
    "qwen3": {**SMALL, "head_dim": 6},
    "gemma": {**LLAMA, "head_dim": 6},
    "gemma2": SCALED,
    "gemma3_text": {**SCALED, "sliding_window_pattern": 2},
    "granite": LLAMA,
    "hunyuan_v1_dense": {**LLAMA, "head_dim": 6},
    "olmo2": {**LLAMA, "pad_token_id": 0},
    "olmo3": {**SMALL, "layer_types": ["sliding_attention", "full_attention"]},
    "phi3": {**SMALL, "original_max_position_embeddings": 12},
    "smollm3": {**LLAMA, "pad_token_id": 0},
    "starcoder2": SMALL,
}
"""A config of each family, by its `model_type`."""

WINDOW = {"sliding_window": 3}
LONG = {"short_factor": [1.0, 1.1, 1.5], "long_factor": [1.0, 3.0, 7.5]}
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
KINDS: dict[str, dict[str, Any]] = {
    "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 100.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
}
ROTARY: list[dict[str, Any]] = [
    {"rope_theta": 100.0},
    {"rope_parameters": KINDS},
    {"rope_parameters": {**KINDS, "sliding_attention": {"type": "linear", "factor": 2.0}}},
    {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.67}},
    {"rope_local_base_freq": 20.0},
    {"partial_rotary_factor": 0.67},
    *(
        {"rope_scaling": scaling, **others}
        for scaling, others in (
            ({}, {}),
            ({"type": "linear", "factor": 3.0}, {}),
            ({"type": "linear", "factor": 3.0}, {"rope_parameters": {"rope_type": "default"}}),
            ({"type": "dynamic", "factor": 3.0}, {}),
            ({"type": "dynamic", "factor": 1.0, "alpha": 50.0}, {}),
            ({"type": "yarn", "factor": 3.0}, {"original_max_position_embeddings": 10}),
            ({"type": "yarn", "factor": None}, {"original_max_position_embeddings": 10}),
            ({"type": "yarn", "factor": 3.0, "truncate": False}, {}),
            ({"type": "yarn", "factor": 3.0, **LONG}, {}),
            ({"type": "default", **LONG}, {}),
            ({"type": "longrope", **LONG}, {"original_max_position_embeddings": 10}),
            ({"type": "longrope", **LONG}, {"original_max_position_embeddings": 17}),
            ({"type": "longrope", **LONG, "attention_factor": 0}, {}),
            ({"rope_type": "llama3", "factor": 8.0, **LLAMA3}, {"rope_theta": 500.0}),
            ({"rope_type": "proportional", "factor": 2.0}, {}),
        )
    ),
]
WINDOWS: list[dict[str, Any]] = [
    WINDOW,
    {"sliding_window": None},
    {**WINDOW, "use_sliding_window": True, "max_window_layers": 1},
    {**WINDOW, "use_sliding_window": False},
    {**WINDOW, "layer_types": ["full_attention", "sliding_attention"]},
    {
        **WINDOW,
        "layer_types": ["sliding_attention", "full_attention"],
        "use_sliding_window": True,
    },
    {"layer_types": ["full_attention"]},
    {"sliding_window_pattern": 3},
    {**WINDOW, "use_sliding_window": True, "no_rope_layers": [0, 1]},
]
OTHERS: list[dict[str, Any]] = [
    {"is_causal": False},
    {"per_layer_config": {"0": {"rms_norm_eps": 0.5}}},
    {"use_bidirectional_attention": True},
    {"add_cross_attention": True},
    {"attention_bias": True},
    {"mlp_bias": True},
    {"use_bias": False},
    {"hidden_act": "gelu"},
    {"hidden_activation": "relu", "activation_function": "relu"},
    {"hidden_act": "relu2", "hidden_activation": "relu2"},
    {"tie_word_embeddings": True},
    {"tie_word_embeddings": False},
    {"num_key_value_heads": None},
    {"head_dim": 8},
    {"rms_norm_eps": 0.05, "norm_epsilon": 0.05, "layer_norm_epsilon": 0.05},
    {"attn_logit_softcapping": 2.0},
    {"final_logit_softcapping": 2.0},
    {"query_pre_attn_scalar": 3},
    {"embedding_multiplier": 3.0, "residual_multiplier": 0.3},
    {"attention_multiplier": 0.2, "logits_scaling": 4.0},
    {"no_rope_layer_interval": 2},
    {"use_qk_norm": False},
    {"scale_attn_weights": False},
    {"scale_attn_by_inverse_layer_idx": True},
    {"reorder_and_upcast_attn": True, "n_inner": 30},
    {"pad_token_id": None},
    {"eos_token_id": [2, 3], "bos_token_id": None},
]


def names(value: Any) -> set[str]:  # noqa: ANN401 (JSON)
    """Return the keys of a config and of the objects in it."""
    inner = value.values() if isinstance(value, dict) else ()
    return {*(value if isinstance(value, dict) else ()), *chain(*map(names, inner))}


@torch.no_grad()
def check(family: str, change: dict[str, Any]) -> str:
    """Compare a changed model with its class: logits of a whole text, and from a cache."""
    (name, *_), keys = FAMILIES[family].classes, DECODERS[family] | change
    hf = {**keys, "model_type": family, "architectures": [name]}
    try:
        theirs = make_named(name, deepcopy(keys), torch.float32)
    except Exception:  # noqa: BLE001 -- their class has no such model
        return "impossible"
    try:
        ours: Any = fill_ours(theirs, hf)
    except InputError as error:
        named = any(key in str(error) for key in names(change))
        return "rejected" if named else pytest.fail(f"{family} with {change}: {error}")
    ids = random_ids(3, V, 1, READ + 1)
    try:
        state = ours.start(ids[:, :READ], 1)
        past = DynamicCache()  # made from a config, it drops keys that a class may still see
        for end in (READ, READ + 1):
            new = ids[:, past.get_seq_length() : end]
            logits = run(theirs, input_ids=new, past_key_values=past)
            assert_same_logits(ours.step(ids[:, end - 1], state), logits[:, -1])
            if end == READ:
                assert_same_logits(ours(ids[:, :end]), logits)
    except AssertionError as error:
        raise AssertionError(family, change) from error
    return "equal"


@pytest.mark.parametrize("family", DECODERS)
def test_a_changed_attribute_is_read_as_by_its_class_or_rejected(family: str) -> None:
    """One is changed at a time, also to values of other families, which the class may ignore."""
    read = FAMILIES[family].fields["positions"]
    own = family == "llama" or read is not FAMILIES["llama"].fields["positions"]
    rotary = ROTARY if own and family != "gpt2" else ()
    found = [check(family, change) for change in [{}, *rotary, *WINDOWS, *OTHERS]]
    assert found[0] == "equal"
    assert "rejected" in found
