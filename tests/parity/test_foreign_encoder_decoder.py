"""Marian, BART, mBART, M2M100, T5 and mT5 of Hugging Face against our encoder-decoder."""

from typing import Any

import pytest
import torch
from tests.parity.foreign import (
    assert_same_gradients,
    assert_same_logits,
    both,
    cases,
    random_ids,
    run,
)
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.t5.modeling_t5 import T5Attention

from dragoman.nn import RelativeBias

V = 29
BART = {
    "vocab_size": V,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 16,
}
MARIAN = {**BART, "pad_token_id": V - 1, "decoder_start_token_id": V - 1}
SEPARATE = {**MARIAN, "share_encoder_decoder_embeddings": False}
T5 = {
    "vocab_size": V,
    "d_model": 12,
    "d_kv": 5,
    "d_ff": 20,
    "num_layers": 2,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}
T5_1_1 = {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

MARIANS: dict[str, dict[str, Any]] = {
    "marian": {**MARIAN, "scale_embedding": True, "activation_function": "swish"},  # as published
    "marian-gelu": MARIAN,
    "marian-two-vocabularies": {**SEPARATE, "decoder_vocab_size": V + 4},
    "marian-untied": {**SEPARATE, "tie_word_embeddings": False},
}
BARTS: dict[str, dict[str, Any]] = {
    "bart": BART,
    "bart-scaled": {**BART, "scale_embedding": True, "activation_function": "gelu_new"},
    "bart-untied": {**BART, "tie_word_embeddings": False},
}
MBARTS: dict[str, dict[str, Any]] = {
    "mbart": {**BART, "scale_embedding": True},
    "mbart-relu": {**BART, "activation_function": "relu"},
}
M2M100S: dict[str, dict[str, Any]] = {
    "m2m100": BART,
    "m2m100-padding-5": {**BART, "pad_token_id": 5},
    "m2m100-untied": {**BART, "tie_word_embeddings": False, "scale_embedding": False},
}
T5S: dict[str, dict[str, Any]] = {
    "t5": T5,
    "t5-deep-decoder": {**T5, "num_decoder_layers": 3, "layer_norm_epsilon": 0.1},
    "t5-v1.1": T5_1_1,
    "t5-gated-silu": {**T5_1_1, "feed_forward_proj": "gated-silu"},
}
MT5S: dict[str, dict[str, Any]] = {
    "mt5": T5,
    "mt5-relu": {**T5, "feed_forward_proj": "relu", "num_decoder_layers": 3},
}
CASES = {
    **cases("MarianMTModel", MARIANS),
    **cases("BartForConditionalGeneration", BARTS),
    **cases("MBartForConditionalGeneration", MBARTS),
    **cases("M2M100ForConditionalGeneration", M2M100S),
    **cases("T5ForConditionalGeneration", T5S),
    **cases("MT5ForConditionalGeneration", MT5S),
}


def sentences(theirs: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Sources of three lengths, padded behind, and the targets that the decoder reads."""
    pad_id, start_id = theirs.config.pad_token_id, theirs.config.decoder_start_token_id
    src = random_ids(6, V - 1, 3, 13)
    src[1, 5:] = src[2, 1:] = pad_id
    tgt = random_ids(6, V - 1, 3, 11, seed=2)
    tgt[:, 0] = 4 if start_id is None else start_id
    return src, tgt


def their_logits(theirs: PreTrainedModel, src: Tensor, tgt: Tensor) -> Tensor:
    """Run theirs with the padding masked."""
    mask = (src != theirs.config.pad_token_id).long()
    return run(theirs, input_ids=src, attention_mask=mask, decoder_input_ids=tgt)


@pytest.mark.parametrize("case", CASES)
def test_logits_and_gradients_agree(case: str) -> None:
    """The same weights give the same logits at every place, whatever padding stands behind.

    A loss of both has the same gradients. T5 alone trains the embedding of padding, which begins
    its targets; ours never does.
    """
    ours, theirs = both(CASES[case])
    src, tgt = sentences(theirs)
    got, wanted = ours(src, tgt), their_logits(theirs, src, tgt)
    assert_same_logits(got, wanted)
    padding = theirs.config.pad_token_id if "t5" in case else None
    assert_same_gradients((ours, got), (theirs, wanted), except_row=padding)


@pytest.mark.parametrize("buckets", [(32, 128), (8, 20), (16, 64)])
@pytest.mark.parametrize("bidirectional", [True, False], ids=["encoder", "decoder"])
def test_distances_fall_into_the_buckets_of_t5(
    buckets: tuple[int, int], *, bidirectional: bool
) -> None:
    """At every distance, at the borders of two buckets as well."""
    num_buckets, max_distance = buckets
    scheme = RelativeBias(num_buckets=num_buckets, max_distance=max_distance)
    distances = torch.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(
        distances, bidirectional, num_buckets, max_distance
    )
    ours = scheme.make_bias(3, bidirectional=bidirectional).buckets(distances)
    assert torch.equal(ours, theirs)
