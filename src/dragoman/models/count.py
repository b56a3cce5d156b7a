"""How many parameters a model will have, from its config alone."""

from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, TaggingHead
from dragoman.nn import LayerConfig, Learned, RelativeBias


def count_parameters(config: ModelConfig) -> dict[str, int]:
    """Count the parameters of each part; a matrix that several places share counts once."""
    match config:
        case EncoderDecoderConfig():
            return _encoder_decoder(config)
        case DecoderOnlyConfig():
            return _decoder_only(config)
        case EncoderOnlyConfig():
            return _encoder_only(config)


def _encoder_decoder(config: EncoderDecoderConfig) -> dict[str, int]:
    d = config.d_model
    own_target = config.tie_embeddings in ("none", "target-output")
    own_output = config.tie_embeddings in ("none", "source-target")
    beside = _beside(config, norm=config.embedding_norm)
    ends = _stack(config)
    layer, cross = _layer(config), _attention(config) + _norm(config)
    return {
        "source embedding": config.src_vocab_size * d + beside,
        "target embedding": own_target * config.tgt_vocab_size * d + beside,
        "encoder": config.num_encoder_layers * layer + ends,
        "decoder": config.num_decoder_layers * (layer + cross) + ends,
        "output": config.tgt_vocab_size * (own_output * d + config.output_bias),
    }


def _decoder_only(config: DecoderOnlyConfig) -> dict[str, int]:
    own_output = not config.tie_embeddings
    return {
        "embedding": config.vocab_size * config.d_model
        + _beside(config, norm=config.embedding_norm),
        "decoder": config.num_layers * _layer(config) + _stack(config),
        "output": config.vocab_size * (own_output * config.d_model + config.output_bias),
    }


def _encoder_only(config: EncoderOnlyConfig) -> dict[str, int]:
    d = config.d_model
    match config.head:
        case MaskedLanguageHead():
            head = d * d + d + _norm(config) + config.vocab_size
        case ClassificationHead(labels=labels, pooler=pooler):
            head = (d + 1) * len(labels) + pooler * (d * d + d)
        case TaggingHead(labels=labels):
            head = (d + 1) * len(labels)
        case _:
            head = 0
    rows = config.vocab_size + config.num_token_types
    return {
        "embedding": rows * d + _beside(config, norm=config.embedding_norm),
        "encoder": config.num_layers * _layer(config) + _stack(config),
        "head": head,
    }


def _beside(shape: LayerConfig, *, norm: bool) -> int:
    """What stands beside an embedding matrix: learned positions, a norm."""
    rows = shape.positions.max_length if isinstance(shape.positions, Learned) else 0
    return rows * shape.d_model + norm * _norm(shape)


def _stack(shape: LayerConfig) -> int:
    """What stands beside the layers of a stack: a last norm, a bias of positions."""
    buckets = shape.positions.num_buckets if isinstance(shape.positions, RelativeBias) else 0
    return shape.ends_in_norm * _norm(shape) + buckets * shape.num_heads


def _layer(shape: LayerConfig) -> int:
    return _attention(shape) + _ffn(shape) + 2 * _norm(shape)


def _attention(shape: LayerConfig) -> int:
    d, inner = shape.d_model, shape.num_heads * shape.width
    kv_inner = (shape.num_kv_heads or shape.num_heads) * shape.width
    qkv_bias = shape.bias if shape.qkv_bias is None else shape.qkv_bias
    biases = qkv_bias * (inner + 2 * kv_inner) + shape.bias * d
    return 2 * d * inner + 2 * d * kv_inner + biases + shape.qk_norm * 2 * shape.width


def _ffn(shape: LayerConfig) -> int:
    ups = 2 if shape.gated else 1
    bias = shape.bias if shape.ffn_bias is None else shape.ffn_bias
    return (ups + 1) * shape.d_model * shape.d_ff + bias * (ups * shape.d_ff + shape.d_model)


def _norm(shape: LayerConfig) -> int:
    return shape.d_model * (2 if shape.norm == "layer" and shape.bias else 1)
