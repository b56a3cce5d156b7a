"""Model configs. Only constructors read a config: no forward pass sees one.

There are three configs, one for each variant of the Transformer. Each extends `LayerConfig`, whose
fields, all that a layer is built from, they share; the fields that differ are here.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from dragoman.errors import InputError
from dragoman.models.heads import Head, NoHead, TaggingHead
from dragoman.nn import AttentionPattern, Rwkv
from dragoman.nn.config import LayerConfig
from dragoman.nn.rwkv import check_rwkv
from dragoman.ranges import Positive, Range

Layers = Annotated[int, Range(least=1, most=10_000)]
WordRows = Annotated[int, Range(least=0, most=10_000_000)]
Tying = Literal["none", "target-output", "source-target", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDecoderConfig(LayerConfig):
    """The encoder-decoder Transformer of the paper. The defaults are its base model."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"
    """The variant of the Transformer."""
    src_vocab_size: int = 0
    """Rows of the source embedding; training sets it from the tokenizer."""
    tgt_vocab_size: int = 0
    """Rows of the target embedding and of the output; training sets it from the tokenizer."""
    num_encoder_layers: Layers = 6
    """Number of encoder layers."""
    num_decoder_layers: Layers = 6
    """Number of decoder layers."""
    encoder_patterns: tuple[AttentionPattern, ...] = ()
    """Self-attention of the encoder layers, repeated from the first; full by default."""
    decoder_patterns: tuple[AttentionPattern, ...] = ()
    """Self-attention of the decoder layers, repeated from the first; causal by default."""
    scale_embedding: bool = True
    """Whether embeddings are multiplied by the square root of d_model."""
    tie_embeddings: Tying = "all"
    """Which of the source, target and output matrices are shared; `all` needs one vocabulary."""
    output_bias: bool = False
    """Whether the output layer has a bias."""
    logit_scale: Positive = 1.0
    """Factor on the last hidden states (T5 with tied matrices: d_model^-0.5)."""
    logit_soft_cap: Positive | None = None
    """Soft cap of the logits, c tanh(logit / c); none by default."""
    bos_id: int = 2
    """Id of the token that begins every target."""
    eos_id: int = 3
    """Id of the token that ends every source and target."""

    @property
    def depth(self) -> int:
        """The number of layers of both stacks."""
        return self.num_encoder_layers + self.num_decoder_layers

    def __post_init__(self) -> None:
        """Raise InputError if it cannot be built, naming both options of a conflict."""
        LayerConfig.__post_init__(self)
        self._check_patterns("encoder_patterns", self.encoder_patterns)
        self._check_patterns("decoder_patterns", self.decoder_patterns, causal=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderOnlyConfig(LayerConfig):
    """The decoder alone, trained to predict the next token (GPT, Llama, Mistral)."""

    kind: Literal["decoder-only"] = "decoder-only"
    """The variant of the Transformer."""
    vocab_size: int = 0
    """Rows of the embedding and of the output; training sets it from the tokenizer."""
    num_layers: Layers = 6
    """Number of layers."""
    patterns: tuple[AttentionPattern | Rwkv, ...] = ()
    """Self-attention of the layers, repeated from the first; causal by default."""
    tie_embeddings: bool = True
    """Whether the embedding and the output share one matrix."""
    output_bias: bool = False
    """Whether the output layer has a bias."""
    logit_scale: Positive = 1.0
    """Factor on the last hidden states."""
    logit_soft_cap: Positive | None = None
    """Soft cap of the logits, c tanh(logit / c); none by default."""
    bos_id: int = 2
    """Id of the token that begins every document."""
    eos_id: int = 3
    """Id of the token that ends every document."""

    @property
    def depth(self) -> int:
        """The number of layers."""
        return self.num_layers

    @property
    def attention_patterns(self) -> tuple[AttentionPattern, ...]:
        """The patterns without RWKV, whose layers do not attend."""
        return tuple(each for each in self.patterns if not isinstance(each, Rwkv))

    def __post_init__(self) -> None:
        """Raise InputError if it cannot be built."""
        LayerConfig.__post_init__(self)
        self._check_patterns("patterns", self.attention_patterns, causal=True)
        if Rwkv() in self.patterns:
            check_rwkv(self)
            if self.attention_patterns:
                raise InputError(
                    'patterns names "rwkv" beside attention, but it replaces all layers or none: '
                    'patterns = ["rwkv"]'
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderOnlyConfig(LayerConfig):
    """The encoder alone, and a head for what it is used for (BERT)."""

    kind: Literal["encoder-only"] = "encoder-only"
    """The variant of the Transformer."""
    vocab_size: int = 0
    """Rows of the embedding; training sets it from the tokenizer."""
    num_layers: Layers = 6
    """Number of layers."""
    patterns: tuple[AttentionPattern, ...] = ()
    """Self-attention of the layers, repeated from the first; full by default."""
    head: Head = field(default_factory=NoHead)
    """What the model computes from the hidden states."""
    num_token_types: int = 0
    """Number of segment embeddings (BERT: 2)."""
    first_norm: bool = True
    """Whether the first layer of a pre-norm stack normalizes what attention reads, as others do
    (ModernBERT: it reads normalized embeddings)."""
    word_features: WordRows = 0
    """Rows of the table of word features (form, shape, prefixes, suffixes) for task = "tag", such
    as 20000; 0 uses only pieces."""
    bos_id: int = 2
    """Id of the token that begins every text and can represent it (BERT: [CLS])."""
    eos_id: int = 3
    """Id of the token that ends every text (BERT: [SEP])."""

    @property
    def depth(self) -> int:
        """The number of layers."""
        return self.num_layers

    def __post_init__(self) -> None:
        """Raise InputError if it cannot be built."""
        LayerConfig.__post_init__(self)
        self._check_patterns("patterns", self.patterns)
        if self.word_features and not isinstance(self.head, TaggingHead):
            raise InputError(
                f"word_features = {self.word_features} is for a head of tags, whose words are "
                f'known; leave it out with head.kind = "{self.head.kind}"'
            )
        if not self.first_norm and self.norm_position != "pre":
            raise InputError(
                f'first_norm = false is for norm_position = "pre", not "{self.norm_position}"'
            )
        if self.word_features == 1:
            raise InputError("word_features = 1 has no row for a word; take 1000 or more")


ModelConfig = EncoderDecoderConfig | DecoderOnlyConfig | EncoderOnlyConfig
