"""BERT (Devlin et al., 2019), RoBERTa (Liu et al., 2019) and DistilBERT (Sanh et al., 2019).

Encoder-only, post-norm, learned positions. The class in `architectures` determines the head. BERT
has segments; only its tokenizer knows the ids of [CLS] and [SEP]. RoBERTa counts positions from
pad_id + 1, so that its table has two unused rows; XLM-R (Conneau et al., 2020) and CamemBERT
(Martin et al., 2020) are RoBERTa with unigram vocabularies. MPNet (Song et al., 2020) is RoBERTa
without segments, and with T5's bias of distances. DistilBERT has no segments, and a ReLU in its
pooler.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from tokenizers import Tokenizer as Backend
from torch import Tensor

from dragoman.errors import InputError
from dragoman.folder.foreign.reading import (
    HF,
    SIZES,
    Family,
    Reader,
    activation,
    activation_name,
    only,
    token_ids,
    unsupported,
)
from dragoman.folder.foreign.weights import Table, below, either, joined, under
from dragoman.folder.tokenizers.built import by_scores, cut_at_words, fairseq
from dragoman.folder.tokenizers.files import MASK, Pieces, TokenizerFolder, TokenizerRules
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, NoHead, TaggingHead
from dragoman.nn import Learned, RelativeBias
from dragoman.wording import counted

LAYER: Table = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.kv_proj": joined("attention.self.key", "attention.self.value"),
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_residual.norm": "attention.output.LayerNorm",
    "ffn.up": "intermediate.dense",
    "ffn.down": "output.dense",
    "ffn_residual.norm": "output.LayerNorm",
}
DISTILBERT_LAYER: Table = {
    "self_attn.q_proj": "attention.q_lin",
    "self_attn.kv_proj": joined("attention.k_lin", "attention.v_lin"),
    "self_attn.out_proj": "attention.out_lin",
    "self_attn_residual.norm": "sa_layer_norm",
    "ffn.up": "ffn.lin1",
    "ffn.down": "ffn.lin2",
    "ffn_residual.norm": "output_layer_norm",
}
MPNET_ATTENTION: Table = {
    "self_attn.q_proj": "attention.attn.q",
    "self_attn.kv_proj": joined("attention.attn.k", "attention.attn.v"),
    "self_attn.out_proj": "attention.attn.o",
    "self_attn_residual.norm": "attention.LayerNorm",
}
OFFSET = 2  # rows before position 0 in RoBERTa's table, as in fairseq
HEADS: Mapping[str, str] = {
    "none": "Model",
    "masked-language": "ForMaskedLM",
    "classify": "ForSequenceClassification",
    "tag": "ForTokenClassification",
}
"""Suffix of the class name after the family's, by kind of head."""
FRAME = "<s> $A </s>"


def _head(
    family: str, *, always_gelu: bool = False, pooler: Literal["tanh", "relu"] = "tanh"
) -> Reader:
    """Return a reader of the head, by the class name without the family's."""

    def read(hf: HF) -> Head:
        architecture = (hf.get("architectures") or [f"{family}Model"])[0]
        if architecture == "BertForPreTraining":  # its second head is not read
            return MaskedLanguageHead()
        match architecture.removeprefix(family):
            case "Model":
                return NoHead()
            case "ForMaskedLM":
                if always_gelu:
                    only(hf, "hidden_act", "gelu")
                return MaskedLanguageHead()
            case "ForSequenceClassification":
                if hf.get("problem_type") is not None:
                    only(hf, "problem_type", "single_label_classification")
                return ClassificationHead(
                    labels=_labels(hf), pooling="first", pooler=True, pooler_activation=pooler
                )
            case "ForTokenClassification":
                return TaggingHead(labels=_labels(hf))
        known = ", ".join(f"{family}{head}" for head in HEADS.values())
        raise InputError(unsupported("architectures", architecture, f"known are {known}"))

    return read


def _labels(hf: HF) -> tuple[str, ...]:
    """Return the labels ordered by their numbers, which are strings in JSON."""
    labels: Mapping[str | int, str] = hf["id2label"]
    if len(labels) < 2:
        raise InputError(
            f"id2label has {counted(len(labels), 'label')}, so the model gives a number and no "
            "label, as rerankers do, which is not supported; take one of two labels or more"
        )
    numbers = sorted(map(int, labels))
    if numbers != [*range(len(labels))]:
        known = f"it must number {counted(len(labels), 'label')} from 0"
        raise InputError(unsupported("id2label", labels, known))
    return tuple(labels[key] for key in sorted(labels, key=int))


def with_its_head(prefix: str) -> Callable[[HF, Mapping[str, Tensor]], HF]:
    """Return a function that corrects the head that a config names to that of the weights.

    sentence-transformers saves them without the masked-language head, whose tensors have `prefix`.
    """

    def stored(hf: HF, state: Mapping[str, Tensor]) -> HF:
        architecture = (hf.get("architectures") or [""])[0]
        headless = not any(name.startswith(prefix) for name in state)
        if not (headless and architecture.endswith("ForMaskedLM")):
            return hf
        return {**hf, "architectures": [architecture.replace("ForMaskedLM", "Model")]}

    return stored


def _xlm_roberta(_: TokenizerFolder, pieces: Pieces) -> Backend:
    backend = by_scores([*fairseq(pieces), ("<mask>", 0.0)], unk=3)
    return cut_at_words(backend, pieces.charsmap)


def _camembert(_: TokenizerFolder, pieces: Pieces) -> Backend:
    """Put its own names first, then all pieces but <unk>: <s> and </s> are fifth and sixth."""
    first = [(name, 0.0) for name in ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>")]
    rest = [("<unk>NOTUSED", -100.0), *pieces.scores[1:], ("<mask>", 0.0)]
    backend = by_scores([*first, *rest], unk=3)
    backend.add_special_tokens(["<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"])
    return cut_at_words(backend, pieces.charsmap)


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
    only={"position_embedding_type": "absolute", "is_decoder": False, "tie_word_embeddings": True},
    fields={
        **SIZES,
        "num_token_types": "type_vocab_size",
        "activation": activation("hidden_act"),
        "positions": lambda hf: Learned(max_length=hf["max_position_embeddings"]),
        "norm_eps": "layer_norm_eps",
        "head": _head("Bert"),
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
        "pooler.dense.weight",  # trained for next-sentence prediction
        "pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
    ),
    stored=with_its_head("cls."),
)
ROBERTA = replace(BERT, prefix="roberta.", stored=with_its_head("lm_head.")).variant(
    defaults={"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
    only={"pad_token_id": OFFSET - 1},
    fields={
        "positions": lambda hf: Learned(max_length=hf["max_position_embeddings"] - OFFSET),
        "head": _head("Roberta", always_gelu=True),
    },
    modules={
        "embedding.positions": below("embeddings.position_embeddings", OFFSET),
        "head.pooler": "classifier.dense",
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.output": either("lm_head.decoder", "classifier", "classifier.out_proj"),
        "head.output.bias": either(
            "lm_head.bias", "lm_head.decoder.bias", "classifier.bias", "classifier.out_proj.bias"
        ),
    },
)
MPNET = replace(ROBERTA, prefix="mpnet.").variant(
    defaults={"relative_attention_num_buckets": 32},
    only={"relative_attention_num_buckets": 32},
    fields={
        "positions": lambda hf: RelativeBias(max_length=hf["max_position_embeddings"] - OFFSET),
        "head": _head("MPNet", always_gelu=True),
    },
    settings={"num_token_types": 0},
    modules={
        **under("encoder.layers.*", "encoder.layer.*", MPNET_ATTENTION),
        "encoder.bias": "encoder.relative_attention_bias",
    },
)
XLM_ROBERTA = replace(
    ROBERTA,
    tokenizers=dict.fromkeys(
        ("xlm-roberta", "xlmroberta"), TokenizerRules(build=_xlm_roberta, mask=MASK, frame=FRAME)
    ),
).variant(fields={"head": _head("XLMRoberta", always_gelu=True)})
CAMEMBERT = replace(
    ROBERTA, tokenizers={"camembert": TokenizerRules(build=_camembert, mask=MASK, frame=FRAME)}
).variant(fields={"head": _head("Camembert", always_gelu=True)})
DISTILBERT = replace(
    BERT,
    prefix="distilbert.",
    ignored=("embeddings.position_ids",),
    stored=with_its_head("vocab_"),
).variant(
    defaults={"activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1},
    fields={
        "d_model": "dim",
        "num_heads": "n_heads",
        "d_ff": "hidden_dim",
        "num_layers": "n_layers",
        "activation": activation("activation"),
        "head": _head("DistilBert", pooler="relu"),
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    },
    settings={"num_token_types": 0, "norm_eps": 1e-12},
    modules={
        **under("encoder.layers.*", "transformer.layer.*", DISTILBERT_LAYER),
        "head.pooler": "pre_classifier",
        "head.dense": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head.output": either("vocab_projector", "classifier"),
        "head.output.bias": either("vocab_projector.bias", "classifier.bias"),
    },
)


def written(ours: EncoderOnlyConfig) -> tuple[Family, HF]:
    """Return the class for one of our encoders, and keys of its config."""
    config: dict[str, Any] = {
        "type_vocab_size": max(1, ours.num_token_types),
        "max_position_embeddings": ours.positions.num_positions or 1,
        "hidden_act": activation_name(ours.activation),
        "architectures": [f"Bert{HEADS[ours.head.kind]}"],
        "tie_word_embeddings": True,
    }
    if isinstance(ours.head, ClassificationHead | TaggingHead):
        config["id2label"] = dict(enumerate(ours.head.labels))
        config["label2id"] = {label: number for number, label in enumerate(ours.head.labels)}
    return BERT, config
