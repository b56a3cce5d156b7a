"""GPT-2, Llama, Mistral, Qwen2, Qwen3 and Gemma of Hugging Face against our decoder-only model."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from tests.parity.foreign import (
    assert_same_gradients,
    assert_same_logits,
    both,
    cases,
    computing_in,
    random_ids,
    run,
)
from torch import Tensor
from transformers import PreTrainedModel

from dragoman.models import DecoderOnly

V = 31
GPT2 = {"vocab_size": V, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 40}
GPT2 |= {"bos_token_id": 2, "eos_token_id": 2}
LLAMA = {
    "vocab_size": V,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,  # fewer than the tokens of the longest text
}
ODD = {**LLAMA, "head_dim": 10, "num_key_value_heads": 1, "rms_norm_eps": 0.05}
WINDOWS = {**LLAMA, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 3}


def rope(kind: str, **settings: float) -> dict[str, Any]:
    """A Llama with rotary positions of this kind."""
    parameters = {"rope_type": kind, "rope_theta": 100.0, **settings}
    return {**LLAMA, "head_dim": 12, "rope_parameters": parameters}


GPT2S: dict[str, dict[str, Any]] = {
    "gpt2": GPT2,
    "gpt2-padded": {**GPT2, "pad_token_id": 0, "n_inner": 20, "layer_norm_epsilon": 0.1},
    "gpt2-unscaled-untied": {**GPT2, "scale_attn_weights": False, "tie_word_embeddings": False},
    "gpt2-relu": {**GPT2, "activation_function": "relu"},
}
LLAMAS: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "llama-tied-padded": {**ODD, "tie_word_embeddings": True, "pad_token_id": 0},
    "llama-biases": {**ODD, "attention_bias": True, "mlp_bias": True},
    "llama-attention-bias": {**LLAMA, "attention_bias": True},
    "llama-mlp-bias": {**LLAMA, "mlp_bias": True, "num_key_value_heads": None},
    "llama-dynamic": rope("dynamic", factor=3.0),
    "llama-yarn": rope("yarn", factor=4.0, original_max_position_embeddings=64),
    "llama-llama3": rope(
        "llama3",
        factor=4.0,
        original_max_position_embeddings=64,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
    ),
}
MISTRALS: dict[str, dict[str, Any]] = {
    "mistral": {**LLAMA, "sliding_window": 3},
    "mistral-head-dim": {**ODD, "sliding_window": 5},
    "mistral-no-window": {**LLAMA, "sliding_window": None},
}
QWEN2S: dict[str, dict[str, Any]] = {
    "qwen2": LLAMA,
    "qwen2-windows": {**WINDOWS, "max_window_layers": 1, "tie_word_embeddings": True},
}
QWEN3S: dict[str, dict[str, Any]] = {
    "qwen3": {**ODD},
    "qwen3-biases": {**LLAMA, "head_dim": 8, "attention_bias": True, "tie_word_embeddings": True},
    "qwen3-windows": {**WINDOWS, "head_dim": 6, "max_window_layers": 2},
}
GEMMAS: dict[str, dict[str, Any]] = {
    "gemma": {**ODD, "pad_token_id": 0},
    "gemma-untied-gelu": {
        **LLAMA,
        "head_dim": 8,
        "hidden_act": "gelu",
        "tie_word_embeddings": False,
    },
}
CASES = {
    **cases("GPT2LMHeadModel", GPT2S),
    **cases("LlamaForCausalLM", LLAMAS),
    **cases("MistralForCausalLM", MISTRALS),
    **cases("Qwen2ForCausalLM", QWEN2S),
    **cases("Qwen3ForCausalLM", QWEN3S),
    **cases("GemmaForCausalLM", GEMMAS),
}
PROMPT, LENGTH = 6, 22


def copied(case: str) -> tuple[DecoderOnly, PreTrainedModel]:
    """Our model, and a copy of theirs: with dynamic scaling it remembers the longest text."""
    ours, theirs = both(CASES[case])
    return ours, deepcopy(theirs)


def texts(ours: DecoderOnly) -> tuple[Tensor, Tensor]:
    """Texts of three lengths, padded in front, and where they are real."""
    ids = random_ids(3, V, 3, LENGTH)
    real = torch.ones_like(ids, dtype=torch.bool)
    real[1, :2] = real[2, : PROMPT - 1] = False
    ids[~real] = ours.pad_id
    return ids, real


def their_logits(theirs: PreTrainedModel, ids: Tensor, real: Tensor) -> Tensor:
    """Run theirs as its `generate` does: positions count what is real.

    Theirs has no id for padding where ours has -1, and is given some other.
    """
    places = (real.long().cumsum(1) - 1).clamp(min=0)
    mask = real.long()
    return run(theirs, input_ids=ids.clamp(min=0), attention_mask=mask, position_ids=places)


@pytest.mark.parametrize("case", CASES)
def test_logits_and_gradients_agree(case: str) -> None:
    """The same weights give the same, with padding in front and without."""
    ours, theirs = copied(case)
    ids, real = texts(ours)
    got, wanted = ours(ids, real)[real], their_logits(theirs, ids, real)[real]
    assert_same_logits(got, wanted)
    assert_same_gradients((ours, got), (theirs, wanted))
    with torch.no_grad():
        ours, theirs = copied(case)
        assert_same_logits(ours(ids[:1]), run(theirs, input_ids=ids[:1]))


@torch.no_grad()
def test_cached_decoding_with_dynamic_scaling_agrees() -> None:
    """Frequencies change with the length and cached keys do not: as their cached decoding."""
    ours, theirs = copied("llama-dynamic")
    ids, _ = texts(ours)
    state = ours.start(ids[:1, :PROMPT], 1)
    with computing_in(torch.float64):
        past = theirs(input_ids=ids[:1, : PROMPT - 1], use_cache=True).past_key_values
        for column in ids[:1, PROMPT - 1 :].unbind(1):
            out = theirs(input_ids=column[:, None], past_key_values=past, use_cache=True)
            assert_same_logits(ours.step(column, state), out.logits[:, -1])
