"""Every key of a published config: the logits of its class, or an error that names the key."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
import torch
import transformers
from tests.parity.foreign import fill_ours, make_theirs
from tests.parity.foreign_sizes import BART as SMALL
from tests.parity.foreign_sizes import BERT, DISTIL, FSMT, MODERN, PUBLISHED, T5
from tests.parity.test_foreign_logits import read, translated

from dragoman.errors import InputError
from dragoman.models import EncoderDecoder

BART: dict[str, tuple[Any, ...]] = {
    "activation_function": ("relu", "gelu_new", "silu", "tanh"),
    "add_final_layer_norm": (True, False),
    "decoder_attention_heads": (1,),
    "decoder_ffn_dim": (28,),
    "decoder_layers": (1,),
    "decoder_start_token_id": (3,),
    "encoder_layers": (1,),
    "eos_token_id": (3, [3, 4]),
    "max_position_embeddings": (40,),
    "normalize_before": (True, False),
    "normalize_embedding": (True, False),
    "pad_token_id": (5,),
    "scale_embedding": (True, False),
    "share_encoder_decoder_embeddings": (False,),
    "static_position_embeddings": (True, False),
    "tie_word_embeddings": (False,),
}
T5_KEYS: dict[str, tuple[Any, ...]] = {
    "d_ff": (28,),
    "d_kv": (4,),
    "decoder_start_token_id": (3,),
    "dense_act_fn": ("gelu", "gelu_new", "silu", "tanh"),
    "eos_token_id": (3, [3, 4]),
    "feed_forward_proj": ("relu", "gated-gelu", "gelu", "gated-silu", "gated-tanh"),
    "layer_norm_epsilon": (0.1,),
    "num_decoder_layers": (1, None),
    "num_layers": (1,),
    "pad_token_id": (5,),
    "relative_attention_max_distance": (9,),
    "relative_attention_num_buckets": (4,),
}
SCALED = {"scale_decoder_outputs": (True, False), "tie_word_embeddings": (True, False, None)}
ENCODER: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("relu", "gelu_new", "tanh"),
    "id2label": ({"0": "a", "1": "b", "2": "c"},),
    "is_decoder": (True,),
    "layer_norm_eps": (0.1,),
    "max_position_embeddings": (40,),
    "num_hidden_layers": (1,),
    "pad_token_id": (5,),
    "position_embedding_type": ("absolute", "relative_key"),
    "problem_type": ("multi_label_classification", "single_label_classification"),
    "relative_attention_num_buckets": (16,),
    "tie_word_embeddings": (False,),
    "type_vocab_size": (1, 3),
}
DISTILLED: dict[str, tuple[Any, ...]] = {
    "activation": ("relu", "gelu_new", "tanh"),
    "n_layers": (1,),
    "pad_token_id": (5,),
    "problem_type": ("multi_label_classification",),
    "sinusoidal_pos_embds": (True,),
    "tie_word_embeddings": (False,),
}
WINDOWED: dict[str, tuple[Any, ...]] = {
    "attention_bias": (True,),
    "classifier_activation": ("relu",),
    "classifier_bias": (True,),
    "decoder_bias": (False,),
    "global_attn_every_n_layers": (2, 4),
    "global_rope_theta": (50.0,),
    "hidden_activation": ("relu", "gelu_new"),
    "layer_types": (["full_attention"] * 4, ["full_attention", "sliding_attention"] * 2),
    "local_attention": (2, 7, 128),
    "local_rope_theta": (50.0,),
    "mlp_bias": (True,),
    "norm_bias": (True,),
    "norm_eps": (0.1,),
    "rope_parameters": ({"full_attention": {"rope_type": "linear", "factor": 4.0}},),
    "rope_scaling": ({"rope_type": "linear", "factor": 2.0},),
    "sliding_window": (1,),
    "tie_word_embeddings": (False,),
}
FAMILIES: dict[str, tuple[Mapping[str, Any], Mapping[str, tuple[Any, ...]]]] = {
    "MarianMTModel": (PUBLISHED, BART),
    "BartForConditionalGeneration": (SMALL, BART),
    "MBartForConditionalGeneration": (SMALL, BART),
    "M2M100ForConditionalGeneration": (SMALL, BART),
    "FSMTForConditionalGeneration": (FSMT, BART),
    "T5ForConditionalGeneration": (T5, {**T5_KEYS, **SCALED}),
    "MT5ForConditionalGeneration": (T5, {**T5_KEYS, "tie_word_embeddings": (True, False)}),
    "UMT5ForConditionalGeneration": (T5, T5_KEYS),  # whose scale is its file's
    "BertModel": (BERT, ENCODER),
    "BertForSequenceClassification": (BERT, ENCODER),
    "RobertaForMaskedLM": (BERT, ENCODER),
    "RobertaForTokenClassification": (BERT, ENCODER),
    "MPNetForMaskedLM": (BERT, ENCODER),
    "DistilBertForMaskedLM": (DISTIL, DISTILLED),
    "DistilBertForSequenceClassification": (DISTIL, DISTILLED),
    "ModernBertForMaskedLM": (MODERN, WINDOWED),
}
"""A base config and values of other keys, by the name of the class."""
KEYS = [(name, key) for name, (_, table) in FAMILIES.items() for key in table]


def outcome(name: str, keys: Mapping[str, Any]) -> float | str:
    """Return how far our logits are from theirs, relative to the greatest, or why it is refused."""
    kind = getattr(transformers, name)
    hf = {"model_type": kind.config_class.model_type, "architectures": [name], **keys}
    theirs = make_theirs(kind, kind.config_class.from_dict(dict(hf)))
    try:
        ours: Any = fill_ours(theirs, hf)
    except InputError as error:
        return str(error)
    compute: Any = translated if isinstance(ours, EncoderDecoder) else read
    with torch.no_grad():
        pairs = [*compute(ours, theirs)]
    return max(float((got - wanted).abs().max() / wanted.abs().max()) for got, wanted in pairs)


@pytest.mark.parametrize(("name", "key"), KEYS, ids=str)
def test_a_key_is_read_as_by_its_class_or_named(name: str, key: str) -> None:
    """No value of a key is silently read in another way."""
    base, table = FAMILIES[name]
    for value in table[key]:
        found = outcome(name, {**base, key: value})
        assert key in found if isinstance(found, str) else found < 1e-10, (value, found)


@pytest.mark.parametrize("name", FAMILIES)
def test_several_keys_are_read_as_by_its_class_or_named(name: str) -> None:
    """The same for three keys at once."""
    base, table = FAMILIES[name]
    draw = Random(name)
    for _ in range(3):
        chosen = {key: draw.choice(table[key]) for key in draw.sample(sorted(table), 3)}
        found = outcome(name, {**base, **chosen})
        if isinstance(found, str):
            assert any(key in found for key in chosen), (chosen, found)
        else:
            assert found < 1e-10, (chosen, found)
