"""BERT (Devlin et al., 2019): encoder-only, post-norm, learned positions and segments."""

from collections.abc import Mapping

from torch import Tensor

from dragoman.errors import InputError
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.foreign.reading import HF, activation, only, required, token_id, unsupported
from dragoman.models.foreign.weights import Table, convert, joined, tied, under
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
TABLE: Table = {
    "embedding": tied("embeddings.word_embeddings", "cls.predictions.decoder"),
    "embedding.positions": "embeddings.position_embeddings",
    "embedding.types": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    **under("encoder.layers.*", "encoder.layer.*", LAYER),
}
MASKED_LANGUAGE: Table = {
    "head.dense": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.output.bias": tied("cls.predictions.bias", "cls.predictions.decoder.bias"),
}
CLASSIFIER: Table = {"head.pooler": "pooler.dense", "head.output": "classifier"}
DEFAULTS: HF = {
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
}
IGNORED = (
    "embeddings.position_ids",  # 0, 1, 2 ... in old files
    "pooler.dense.weight",  # made for telling whether two sentences follow each other
    "pooler.dense.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
)


def config(hf: HF) -> EncoderOnlyConfig:
    """Return our config of a BERT; the class in `architectures` tells the head.

    Which ids [CLS] and [SEP] have is known to the tokenizer alone.
    """
    hf = {**DEFAULTS, **hf}
    only(hf, "position_embedding_type", "absolute")
    only(hf, "is_decoder", value=False)
    only(hf, "tie_word_embeddings", value=True)
    return EncoderOnlyConfig(
        vocab_size=required(hf, "vocab_size"),
        d_model=required(hf, "hidden_size"),
        num_heads=required(hf, "num_attention_heads"),
        d_ff=required(hf, "intermediate_size"),
        num_layers=required(hf, "num_hidden_layers"),
        num_token_types=hf["type_vocab_size"],
        activation=activation(hf["hidden_act"], "hidden_act"),
        positions=Learned(max_length=hf["max_position_embeddings"]),
        norm_eps=hf["layer_norm_eps"],
        embedding_norm=True,
        head=_head(hf),
        dropout=hf["hidden_dropout_prob"],
        attention_dropout=hf["attention_probs_dropout_prob"],
        pad_id=token_id(hf, "pad_token_id"),
        bos_id=token_id(hf, "bos_token_id"),
        eos_id=token_id(hf, "eos_token_id"),
    )


def weights(state: Mapping[str, Tensor], config: EncoderOnlyConfig) -> dict[str, Tensor]:
    """Make our weights of theirs; norms of old files are called gamma and beta."""
    renamed = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): tensor
        for name, tensor in state.items()
    }
    match config.head:
        case MaskedLanguageHead():
            head = MASKED_LANGUAGE
        case ClassificationHead():
            head = CLASSIFIER
        case _:
            head = {"head.output": "classifier"}
    return convert({**TABLE, **head}, renamed, config, prefix="bert.", ignored=IGNORED)


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
