"""BERT of Hugging Face, with each of its heads, against our encoder-only Transformer."""

from typing import Any

import pytest
import torch
from tests.parity.foreign import (
    DTYPES,
    Case,
    assert_same_gradients,
    assert_same_logits,
    both,
    random_ids,
    run,
)
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    PreTrainedModel,
)

V = 31
BERT: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
OTHER = {**BERT, "hidden_act": "gelu_new", "layer_norm_eps": 0.1, "type_vocab_size": 3}
LABELS = {"id2label": dict(enumerate("abcdefghijkl")), "num_labels": 12}
CASES: dict[str, Case] = {
    "hidden": Case(BertModel, BertConfig(**BERT)),
    "masked-language": Case(BertForMaskedLM, BertConfig(**BERT)),
    "masked-language-other": Case(BertForMaskedLM, BertConfig(**OTHER, pad_token_id=4)),
    "pretraining": Case(BertForPreTraining, BertConfig(**BERT)),
    "classify": Case(BertForSequenceClassification, BertConfig(**BERT, **LABELS)),
    "classify-two": Case(BertForSequenceClassification, BertConfig(**OTHER)),
    "tag": Case(BertForTokenClassification, BertConfig(**BERT, **LABELS)),
}


def texts(theirs: PreTrainedModel) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of three lengths, padded behind, where they are real, and their segments."""
    ids = random_ids(5, V, 3, 11)
    ids[1, 6:] = ids[2, 1:] = theirs.config.pad_token_id
    types = random_ids(0, theirs.config.type_vocab_size, 3, 11, seed=3)
    return ids, ids != theirs.config.pad_token_id, types


def real_rows(out: Tensor, real: Tensor) -> Tensor:
    """What was computed for real tokens; of a head that has one row for a text, all."""
    return out if out.dim() == 2 else out[real]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_logits_agree(case: str, dtype: torch.dtype) -> None:
    """The same weights give the same logits, with segments and without, whatever is padded."""
    ours, theirs = both(CASES[case], dtype)
    ids, real, types = texts(theirs)
    mask = real.long()
    wanted = run(theirs, input_ids=ids, attention_mask=mask, token_type_ids=types)
    got = ours(ids, types_BL=types)
    assert_same_logits(real_rows(got, real), real_rows(wanted, real))
    wanted = run(theirs, input_ids=ids, attention_mask=mask)
    assert_same_logits(real_rows(ours(ids, real), real), real_rows(wanted, real))


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree(case: str) -> None:
    """A loss of both has the same gradients."""
    ours, theirs = both(CASES[case], torch.float64)
    ids, real, types = texts(theirs)
    wanted = run(theirs, input_ids=ids, attention_mask=real.long(), token_type_ids=types)
    got = real_rows(ours(ids, types_BL=types), real)
    assert_same_gradients((ours, got), (theirs, real_rows(wanted, real)))
