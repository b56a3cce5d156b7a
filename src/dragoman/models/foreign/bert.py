"""BERT (Devlin et al., 2019): encoder-only, post-norm, learned positions and segments.

The class in `architectures` tells the head. Which ids [CLS] and [SEP] have is known to the
tokenizer alone.
"""

from collections.abc import Mapping

from dragoman.errors import InputError
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.foreign.reading import HF, Family, activation, only, token_ids, unsupported
from dragoman.models.foreign.weights import Table, either, joined, under
from dragoman.models.heads import (
    ClassificationHead,
    Head,
    MaskedLanguageHead,
    NoHead,
    TaggingHead,
)
from dragoman.nn import Learned

LAYER: Table = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.kv_proj": joined("attention.self.key", "attention.self.value"),
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_residual.norm": "attention.output.LayerNorm",
    "ffn.up": "intermediate.dense",
    "ffn.down": "output.dense",
    "ffn_residual.norm": "output.LayerNorm",
}


def _head(hf: HF) -> Head:
    name = (hf.get("architectures") or ["BertModel"])[0].removeprefix("Bert")
    match name:
        case "Model":
            return NoHead()
        case "ForMaskedLM" | "ForPreTraining":
            return MaskedLanguageHead()
        case "ForSequenceClassification":
            if hf.get("problem_type") is not None:
                only(hf, "problem_type", "single_label_classification")
            return ClassificationHead(labels=_labels(hf), pooling="first", pooler=True)
        case "ForTokenClassification":
            return TaggingHead(labels=_labels(hf))
    known = "Model, ForMaskedLM, ForPreTraining, ForSequenceClassification, ForTokenClassification"
    raise InputError(unsupported("architectures", f"Bert{name}", f"known after Bert are {known}"))


def _labels(hf: HF) -> tuple[str, ...]:
    """Return the labels in the order of their numbers, which JSON keeps as text."""
    labels: Mapping[str | int, str] = hf["id2label"]
    return tuple(labels[key] for key in sorted(labels, key=int))


BERT = Family(
    kind=EncoderOnlyConfig,
    defaults={
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "max_position_embeddings": 512,
        "layer_norm_eps": 1e-12,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "pad_token_id": 0,
        "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    },
    only={
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "tie_word_embeddings": True,
    },
    fields={
        "vocab_size": "vocab_size",
        "d_model": "hidden_size",
        "num_heads": "num_attention_heads",
        "d_ff": "intermediate_size",
        "num_layers": "num_hidden_layers",
        "num_token_types": "type_vocab_size",
        "activation": activation("hidden_act"),
        "positions": lambda hf: Learned(max_length=hf["max_position_embeddings"]),
        "norm_eps": "layer_norm_eps",
        "head": _head,
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        **token_ids(),
    },
    settings={"embedding_norm": True},
    modules={
        "embedding": "embeddings.word_embeddings",
        "embedding.positions": "embeddings.position_embeddings",
        "embedding.types": "embeddings.token_type_embeddings",
        "embedding.norm": "embeddings.LayerNorm",
        **under("encoder.layers.*", "encoder.layer.*", LAYER),
        "head.pooler": "pooler.dense",
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.output": either("cls.predictions.decoder", "classifier"),
        "head.output.bias": either(
            "cls.predictions.bias", "cls.predictions.decoder.bias", "classifier.bias"
        ),
    },
    prefix="bert.",
    renamed={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    ignored=(
        "embeddings.position_ids",  # 0, 1, 2 ... in old files
        "pooler.dense.weight",  # trained to tell whether two sentences follow each other
        "pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
    ),
)
