"""What a model is built from. A config stops at the constructors: no forward pass sees one."""

from dataclasses import dataclass, replace
from typing import Literal

from dragoman.errors import InputError, nearest
from dragoman.nn.feedforward import Activation
from dragoman.nn.layers import LayerShape, NormPosition
from dragoman.nn.norm import NormName

Tying = Literal["none", "target-output", "source-target", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDecoderConfig:
    """The encoder-decoder Transformer of the paper. The defaults are its base model."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"
    """Which of the variants this is."""
    src_vocab_size: int = 0
    """Rows of the source embedding; training sets it from the tokenizer."""
    tgt_vocab_size: int = 0
    """Rows of the target embedding and of the output; training sets it from the tokenizer."""
    d_model: int = 512
    """Width of the residual stream."""
    num_heads: int = 8
    """Attention heads."""
    num_kv_heads: int | None = None
    """Key-value heads, shared by groups of query heads; as many as heads unless given."""
    head_dim: int | None = None
    """Width of a head; d_model / num_heads unless given."""
    d_ff: int = 2048
    """Width of the feed-forward network."""
    num_encoder_layers: int = 6
    """Depth of the encoder."""
    num_decoder_layers: int = 6
    """Depth of the decoder."""
    activation: Activation = "relu"
    """Activation of the feed-forward network."""
    gated: bool = False
    """Whether the feed-forward network is gated (GLU, GEGLU, SwiGLU by activation)."""
    bias: bool = True
    """Whether projections and norms have a bias."""
    norm: NormName = "layer"
    """LayerNorm or RMSNorm."""
    norm_eps: float = 1e-5
    """Added to the variance inside the root."""
    norm_position: NormPosition = "post"
    """Post-norm as in the paper, or pre-norm."""
    final_norm: bool | None = None
    """A last norm on each stack; unless given, pre-norm stacks have it and post-norm ones not."""
    dropout: float = 0.1
    """On sublayer outputs and on the sums of embeddings and positions."""
    attention_dropout: float = 0.0
    """On attention weights."""
    ffn_dropout: float = 0.0
    """Inside the feed-forward network."""
    scale_embedding: bool = True
    """Multiply embeddings by the root of d_model."""
    tie_embeddings: Tying = "all"
    """Which of the source, target and output matrices are one; `all` needs a joint vocabulary."""
    output_bias: bool = False
    """Whether the output layer has a bias."""
    pad_id: int = 0
    """Padding."""
    bos_id: int = 2
    """Begins every target."""
    eos_id: int = 3
    """Ends every source and target."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built, naming both options of a conflict."""
        self._check_numbers()
        if self.head_dim is None and self.d_model % self.num_heads:
            raise InputError(
                f"d_model = {self.d_model} is not a multiple of num_heads = {self.num_heads}; "
                "change one of them or set head_dim"
            )
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise InputError(
                f"num_heads = {self.num_heads} is not a multiple of "
                f"num_kv_heads = {self.num_kv_heads}"
            )
        if self.d_model % 2:
            raise InputError(f"d_model = {self.d_model} is odd, which sinusoidal positions forbid")
        shared = self.tie_embeddings in ("all", "source-target")
        if shared and self.src_vocab_size != self.tgt_vocab_size:
            raise InputError(
                f'tie_embeddings = "{self.tie_embeddings}" needs one vocabulary, but '
                f"src_vocab_size = {self.src_vocab_size} and "
                f"tgt_vocab_size = {self.tgt_vocab_size}"
            )
        if self.pad_id == self.eos_id:
            raise InputError(
                f"pad_id = {self.pad_id} and eos_id = {self.eos_id} are one: the end of a sentence "
                "would be masked as padding; give padding an id of its own"
            )

    def _check_numbers(self) -> None:
        """Refuse a number that is out of its range by itself."""
        sizes = ("d_model", "num_heads", "num_kv_heads", "head_dim", "d_ff")
        for name in (*sizes, "num_encoder_layers", "num_decoder_layers"):
            size: int | None = getattr(self, name)
            if size is not None and size < 1:
                raise InputError(f"{name} = {size} is not at least 1")
        for name in ("dropout", "attention_dropout", "ffn_dropout"):
            p: float = getattr(self, name)
            if not 0.0 <= p < 1.0:
                raise InputError(f"{name} = {p} is not a probability below 1")

    @property
    def layer(self) -> LayerShape:
        """The shape of every layer."""
        return LayerShape(
            d_model=self.d_model,
            num_heads=self.num_heads,
            d_ff=self.d_ff,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            activation=self.activation,
            gated=self.gated,
            bias=self.bias,
            norm=self.norm,
            norm_eps=self.norm_eps,
            norm_position=self.norm_position,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            ffn_dropout=self.ffn_dropout,
        )

    @property
    def has_final_norm(self) -> bool:
        """Whether each stack ends in a norm."""
        return self.norm_position == "pre" if self.final_norm is None else self.final_norm


def count_parameters(config: EncoderDecoderConfig) -> dict[str, int]:
    """Count the parameters of each part from the config alone."""
    d, bias = config.d_model, int(config.bias)
    head_dim = config.head_dim or d // config.num_heads
    inner, kv_inner = (
        config.num_heads * head_dim,
        (config.num_kv_heads or config.num_heads) * head_dim,
    )
    attention = 2 * d * inner + 2 * d * kv_inner + bias * (inner + 2 * kv_inner + d)
    ups = 2 if config.gated else 1
    ffn = (ups + 1) * d * config.d_ff + bias * (ups * config.d_ff + d)
    norm = d * (2 if config.norm == "layer" and config.bias else 1)
    final_norm = norm * int(config.has_final_norm)
    matrices = {
        "none": (config.src_vocab_size, config.tgt_vocab_size, config.tgt_vocab_size),
        "target-output": (config.src_vocab_size, config.tgt_vocab_size, 0),
        "source-target": (config.src_vocab_size, 0, config.tgt_vocab_size),
        "all": (config.src_vocab_size, 0, 0),
    }[config.tie_embeddings]
    return {
        "source embedding": matrices[0] * d,
        "target embedding": matrices[1] * d,
        "encoder": config.num_encoder_layers * (attention + ffn + 2 * norm) + final_norm,
        "decoder": config.num_decoder_layers * (2 * attention + ffn + 3 * norm) + final_norm,
        "output": matrices[2] * d + (config.tgt_vocab_size if config.output_bias else 0),
    }


_BASE = EncoderDecoderConfig()
PRESETS: dict[str, EncoderDecoderConfig] = {
    "tiny": replace(
        _BASE, d_model=128, num_heads=4, d_ff=512, num_encoder_layers=3, num_decoder_layers=2
    ),
    "small": replace(
        _BASE, d_model=256, num_heads=4, d_ff=1024, num_encoder_layers=6, num_decoder_layers=3
    ),
    "base": _BASE,
    "big": replace(_BASE, d_model=1024, num_heads=16, d_ff=4096, dropout=0.3),
    "deep": replace(_BASE, num_encoder_layers=12, num_decoder_layers=2, norm_position="pre"),
}


def preset(name: str) -> EncoderDecoderConfig:
    """Return a size with a name: tiny, small, base, big (the paper's Table 3) or deep."""
    if name not in PRESETS:
        close = nearest(name, PRESETS)
        hint = f"; did you mean {close!r}?" if close else ""
        raise InputError(f"unknown model preset {name!r}: known are {', '.join(PRESETS)}{hint}")
    return PRESETS[name]
