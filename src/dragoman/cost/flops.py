"""The arithmetic of a model, counted from its config alone.

Only products are counted: everything else (norms, softmax, activations, the optimizer) is of lower
order. A product of `(m, k)` and `(k, n)` takes `2 m k n` FLOPs, a multiplication and an addition
each, as in `torch.utils.flop_counter`, with which the tests compare every number. With the letters
of the paper (`D` d_model, `F` d_ff, `H` heads of width `d`, `K` key-value heads, `V` vocabulary),
for each token:

    projections   2 D (H d)  for Q, the same for the output, 2 D (2 K d) for K and V  (3.2.2)
    scores        4 H d      for each key that it meets, q k^T and weights v            (3.2.1)
    ffn           4 D F      two products; gated, 6 D F for three                       (3.3)
    output        2 D V      where a token is predicted                                 (3.4)

The backward pass takes each product twice more, once for either factor, so a training step takes
three times the forward pass, or four with activation checkpointing, which runs the layers again.
With all matrices of a layer `N`, that is the `6 N` for each token of Kaplan et al. (2020), plus the
scores, which grow with the length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import NamedTuple

from dragoman.cost.cache import Generator, decoder_patterns
from dragoman.cost.flops_patterns import Call, Work, attention_work
from dragoman.models import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, TaggingHead
from dragoman.nn import (
    Documents,
    Full,
    LayerConfig,
    Packed,
    Pattern,
    Precision,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a batch is."""

    rows: int
    """Sentences, or texts."""
    src_length: int = 0
    """Source tokens of a row; 0 where there is no source."""
    length: int = 0
    """Target tokens of a row (encoder-decoder), or tokens."""
    targets: int | None = None
    """Predictions in the whole batch; unless given one for each token, or for each text."""
    documents: tuple[int, ...] | None = None
    """Lengths of the documents that each row is packed from, together `length`; none if None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flops:
    """Floating-point operations of each part."""

    projections: int = 0
    """To queries, keys and values, and from the heads' outputs."""
    scores: int = 0
    """Queries with keys and weights with values: what grows with the length."""
    ffn: int = 0
    """The feed-forward networks."""
    output: int = 0
    """The output layer, or the head of an encoder."""

    @property
    def total(self) -> int:
        """Of all parts."""
        return self.projections + self.scores + self.ffn + self.output


def forward_flops(config: ModelConfig, shape: Shape, *, precision: Precision = "fp32") -> Flops:
    """Count one forward pass without learning, the logits of every position included."""
    layers = _forward(config, shape, _Mode(learns=False, precision=precision, rows=shape.rows))
    return _flops(layers, shape.rows, _output(config, shape))


def training_flops(
    config: ModelConfig,
    shape: Shape,
    *,
    activation_checkpointing: bool = False,
    precision: Precision = "fp32",
) -> Flops:
    """Count the forward and backward pass of a batch, loss included.

    Activation checkpointing runs each layer once more. What cross-attention attends to is made
    outside the layers and kept.
    """
    layers = _forward(config, shape, _Mode(learns=True, precision=precision, rows=shape.rows))
    learnt = _Layers(
        3 * layers.projections,
        Work(layers.work.forward + layers.work.backward, 0),
        3 * layers.ffn,
    )
    if activation_checkpointing:
        learnt += _Layers(
            layers.projections - _memory(config, shape.src_length),
            Work(layers.work.forward, 0),
            layers.ffn - _not_again(config, shape),
        )
    return _flops(learnt, shape.rows, 3 * _output(config, shape))


def prefill_flops(config: Generator, shape: Shape, *, precision: Precision = "fp32") -> Flops:
    """Count what is computed before the first step of decoding.

    Of an encoder-decoder: the encoder, and the keys and values of cross-attention, for `rows`
    sentences of `src_length`. Of a decoder: `rows` prompts of `length` tokens but for their last
    one, which the first step is fed. The output layer does not run.
    """
    mode = _Mode(learns=False, precision=precision, rows=shape.rows)
    if isinstance(config, EncoderDecoderConfig):
        layers = _encoder(config, shape.src_length, mode)
        layers += _Layers(_memory(config, shape.src_length))
    else:
        length = shape.length - 1
        layers = _stack(config, decoder_patterns(config), mode.call(config, length, length))
    return _flops(layers, shape.rows, 0)


def step_flops(
    config: Generator, shape: Shape, *, cached: int, precision: Precision = "fp32"
) -> Flops:
    """Count one decoded token of each row, with `cached` tokens of it before.

    `rows` are sentences times beams. Cross-attention meets `src_length` keys.
    """
    mode = _Mode(learns=False, precision=precision, rows=shape.rows)
    layers = _stack(config, decoder_patterns(config), mode.call(config, 1, cached + 1))
    if isinstance(config, EncoderDecoderConfig):
        layers += _crossing(config, 1, shape.src_length, mode)
        vocab_size = config.tgt_vocab_size
    else:
        vocab_size = config.vocab_size
    return _flops(layers, shape.rows, 2 * shape.rows * config.d_model * vocab_size)


class _Mode(NamedTuple):
    """What all calls of attention have in common."""

    learns: bool
    precision: Precision
    rows: int

    def call(self, shape: LayerConfig, queries: int, keys: int, *, masked: bool = False) -> Call:
        """Return a call of self-attention."""
        biased = shape.positions.changes_scores
        crossing = self.crossing(shape, queries, keys)
        return replace(crossing, masked=masked, matrix=crossing.matrix or biased)

    def crossing(self, shape: LayerConfig, queries: int, keys: int) -> Call:
        """Return a call of cross-attention: no bias, and always a mask."""
        drops = self.learns and shape.attention_dropout > 0
        return Call(
            queries=queries,
            keys=keys,
            learns=self.learns,
            masked=True,
            matrix=drops or shape.score_soft_cap is not None,
            precision=self.precision,
            rows=self.rows,
        )


class _Layers(NamedTuple):
    """The work of layers on one row, forward; of the scores backward too."""

    projections: int = 0
    work: Work = Work(0, 0)
    ffn: int = 0

    def __add__(self, other: object) -> "_Layers":
        """Add part by part."""
        if not isinstance(other, _Layers):
            return NotImplemented
        return _Layers(
            self.projections + other.projections, self.work + other.work, self.ffn + other.ffn
        )


def _forward(config: ModelConfig, shape: Shape, mode: _Mode) -> _Layers:
    length = shape.length
    match config:
        case EncoderDecoderConfig():
            layers = _encoder(config, shape.src_length, mode)
            layers += _stack(config, decoder_patterns(config), mode.call(config, length, length))
            layers += _crossing(config, length, shape.src_length, mode)
            return layers + _Layers(_memory(config, shape.src_length))
        case DecoderOnlyConfig():
            patterns = decoder_patterns(config)
            if shape.documents is not None:
                documents = Documents(shape.documents)
                patterns = [Packed(pattern, documents) for pattern in patterns]
            return _stack(config, patterns, mode.call(config, length, length))
        case EncoderOnlyConfig():
            patterns = _repeated(config.patterns or (Full(),), config.num_layers)
            return _stack(config, patterns, mode.call(config, length, length, masked=True))


def _encoder(config: EncoderDecoderConfig, length: int, mode: _Mode) -> _Layers:
    patterns = _repeated(config.encoder_patterns or (Full(),), config.num_encoder_layers)
    return _stack(config, patterns, mode.call(config, length, length, masked=True))


def _repeated(patterns: Sequence[Pattern], num_layers: int) -> list[Pattern]:
    return list(islice(cycle(patterns), num_layers))


def _stack(shape: LayerConfig, patterns: Sequence[Pattern], call: Call) -> _Layers:
    """Self-attention and feed-forward for as many tokens as there are queries."""
    tokens = call.queries
    work = Work(0, 0)
    for pattern in patterns:
        work += attention_work(shape, pattern, call)
    projections = _queries_and_output(shape, tokens) + _keys_and_values(shape, tokens)
    products = 3 if shape.gated else 2
    ffn = 2 * products * shape.d_model * shape.d_ff * tokens
    return _Layers(len(patterns) * projections, work, len(patterns) * ffn)


def _crossing(config: EncoderDecoderConfig, queries: int, keys: int, mode: _Mode) -> _Layers:
    """Cross-attention of all layers, without the making of keys and values."""
    work = attention_work(config, Full(), mode.crossing(config, queries, keys))
    layers = config.num_decoder_layers
    return _Layers(layers * _queries_and_output(config, queries), work.times(layers))


def _memory(config: ModelConfig, src_length: int) -> int:
    """Keys and values of cross-attention, of all layers."""
    if not isinstance(config, EncoderDecoderConfig):
        return 0
    return config.num_decoder_layers * _keys_and_values(config, src_length)


def _queries_and_output(shape: LayerConfig, tokens: int) -> int:
    return 4 * shape.d_model * shape.num_heads * shape.width * tokens


def _keys_and_values(shape: LayerConfig, tokens: int) -> int:
    return 4 * shape.d_model * (shape.num_kv_heads or shape.num_heads) * shape.width * tokens


def _not_again(config: ModelConfig, shape: Shape) -> int:
    """The last product of each layer where the backward pass needs nothing that comes after it.

    That is so in pre-norm layers without dropout: checkpointing stops before it.
    """
    if config.norm_position != "pre" or config.dropout > 0:
        return 0
    if isinstance(config, EncoderDecoderConfig):
        tokens = config.num_encoder_layers * shape.src_length
        tokens += config.num_decoder_layers * shape.length
    else:
        tokens = config.num_layers * shape.length
    return 2 * config.d_model * config.d_ff * tokens


def _output(config: ModelConfig, shape: Shape) -> int:
    """The output layer forward, or the head of an encoder, for the whole batch."""
    d, tokens = config.d_model, shape.rows * shape.length
    targets = tokens if shape.targets is None else shape.targets
    match config:
        case EncoderDecoderConfig():
            return 2 * d * config.tgt_vocab_size * targets
        case DecoderOnlyConfig():
            return 2 * d * config.vocab_size * targets
    match config.head:
        case MaskedLanguageHead():
            return 2 * d * (d + config.vocab_size) * targets
        case ClassificationHead(labels=labels, pooling=pooling, pooler=pooler):
            mean = 2 * d * tokens if pooling == "mean" else 0
            return mean + 2 * d * (pooler * d + len(labels)) * shape.rows
        case TaggingHead(labels=labels):
            return 2 * d * len(labels) * tokens
        case _:
            return 0


def _flops(layers: _Layers, rows: int, output: int) -> Flops:
    return Flops(
        projections=rows * layers.projections,
        scores=rows * layers.work.forward,
        ffn=rows * layers.ffn,
        output=output,
    )
