"""BERT, RoBERTa and their like of Hugging Face, with all heads, against our encoder-only model."""

from typing import Any

import pytest
from tests.parity.foreign import (
    Case,
    assert_same_gradients,
    assert_same_logits,
    both,
    random_ids,
    run,
)
from torch import Tensor
from transformers import PreTrainedModel

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
DISTIL: dict[str, Any] = {
    "vocab_size": V,
    "dim": 12,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 20,
    "max_position_embeddings": 16,
}
CASES: dict[str, Case] = {
    "hidden": Case("BertModel", BERT),
    "masked-language": Case("BertForMaskedLM", BERT),
    "masked-language-other": Case("BertForMaskedLM", OTHER | {"pad_token_id": 4}),
    "pretraining": Case("BertForPreTraining", BERT),
    "classify": Case("BertForSequenceClassification", BERT | LABELS),
    "classify-two": Case("BertForSequenceClassification", OTHER),
    "tag": Case("BertForTokenClassification", BERT | LABELS),
    "roberta": Case("RobertaModel", BERT),
    "roberta-masked": Case("RobertaForMaskedLM", BERT | {"type_vocab_size": 1}),
    "roberta-classify": Case("RobertaForSequenceClassification", OTHER | LABELS),
    "roberta-tag": Case("RobertaForTokenClassification", BERT | LABELS),
    "xlm-roberta": Case("XLMRobertaModel", BERT),
    "xlm-roberta-masked": Case("XLMRobertaForMaskedLM", BERT | {"type_vocab_size": 1}),
    "xlm-roberta-classify": Case("XLMRobertaForSequenceClassification", OTHER | LABELS),
    "xlm-roberta-tag": Case("XLMRobertaForTokenClassification", BERT | LABELS),
    "camembert": Case("CamembertModel", BERT),
    "camembert-masked": Case("CamembertForMaskedLM", BERT | {"type_vocab_size": 1}),
    "camembert-classify": Case("CamembertForSequenceClassification", OTHER | LABELS),
    "camembert-tag": Case("CamembertForTokenClassification", BERT | LABELS),
    "distilbert": Case("DistilBertModel", DISTIL),
    "distilbert-masked": Case(
        "DistilBertForMaskedLM", DISTIL | {"activation": "relu", "pad_token_id": 4}
    ),
    "distilbert-classify": Case("DistilBertForSequenceClassification", DISTIL | LABELS),
    "distilbert-tag": Case("DistilBertForTokenClassification", DISTIL | LABELS),
}


def texts(theirs: PreTrainedModel) -> tuple[Tensor, Tensor, Tensor | None]:
    """Texts of three lengths, padded behind, where they are real, and segments if there are any."""
    ids = random_ids(5, V, 3, 11)
    ids[1, 6:] = ids[2, 1:] = theirs.config.pad_token_id
    num_types = getattr(theirs.config, "type_vocab_size", 0)
    types = random_ids(0, num_types, 3, 11, seed=3) if num_types else None
    return ids, ids != theirs.config.pad_token_id, types


def real_rows(out: Tensor, real: Tensor) -> Tensor:
    """What was computed for real tokens; of a head that has one row for a text, all."""
    return out if out.dim() == 2 else out[real]


@pytest.mark.parametrize("case", CASES)
def test_logits_and_gradients_agree(case: str) -> None:
    """The same weights give the same, with segments and without, whatever is padded."""
    ours, theirs = both(CASES[case])
    ids, real, types = texts(theirs)
    mask = real.long()
    their_types = {} if types is None else {"token_type_ids": types}
    wanted = run(theirs, input_ids=ids, attention_mask=mask)
    assert_same_logits(real_rows(ours(ids, real), real), real_rows(wanted, real))
    wanted = real_rows(run(theirs, input_ids=ids, attention_mask=mask, **their_types), real)
    got = real_rows(ours(ids, types_BL=types), real)
    assert_same_logits(got, wanted)
    assert_same_gradients((ours, got), (theirs, wanted))
