"""An encoder's heads: predictions of masked words, a class, or a tag for each token."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.errors import InputError, escaped
from dragoman.nn import Dropout, LayerConfig, Linear, head_product
from dragoman.nn.feedforward import ACTIVATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class NoHead:
    """The hidden states themselves."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedLanguageHead:
    """The masked words (Devlin et al., 2019, section 3.1)."""

    kind: Literal["masked-language"] = "masked-language"
    dense_bias: bool = True
    """Whether the layer before the output has a bias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationHead:
    """One of several labels for the whole text."""

    kind: Literal["classify"] = "classify"
    labels: tuple[str, ...] = ()
    """Names of the classes; training sets them from the data."""
    pooling: Literal["first", "mean"] = "mean"
    """Vector of the text: that of its first token, or the mean over all tokens."""
    pooler: bool = False
    """A layer `act(W x + b)` on that vector (BERT)."""
    pooler_activation: Literal["tanh", "relu"] = "tanh"
    """Activation of that layer."""

    def __post_init__(self) -> None:
        """Raise InputError for labels with control characters."""
        _check_labels(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingHead:
    """One of several labels for each token."""

    kind: Literal["tag"] = "tag"
    labels: tuple[str, ...] = ()
    """Names of the tags; training sets them from the data."""

    def __post_init__(self) -> None:
        """Raise InputError for labels with control characters."""
        _check_labels(self.labels)


Head = NoHead | MaskedLanguageHead | ClassificationHead | TaggingHead


class MaskedLanguageOutput(nn.Module):
    """`logits = norm(act(x W + b)) E^T + c`, with the matrix `E` of the embedding."""

    def __init__(
        self, shape: LayerConfig, head: MaskedLanguageHead, embedding: nn.Parameter
    ) -> None:
        super().__init__()
        self.dense = Linear(shape.d_model, shape.d_model, bias=head.dense_bias)
        self.norm = shape.make_norm()
        self.activation = ACTIVATIONS[shape.activation]
        self.output = Linear(shape.d_model, len(embedding))
        self.output.weight = embedding
        nn.init.zeros_(self.output.bias)

    def features(self, hidden: Tensor) -> Tensor:
        """Map hidden states `(..., D)` to the output layer's input, `(..., D)`."""
        out: Tensor = self.norm(self.activation(self.dense(hidden)))
        return out

    def forward(self, hidden_BLD: Tensor, mask_BL: Tensor) -> Tensor:  # noqa: ARG002 (the form of all heads)
        """Map `(B, L, D)` to logits over the vocabulary `(B, L, V)`."""
        logits_BLV: Tensor = self.output(self.features(hidden_BLD))
        return logits_BLV


class ClassificationOutput(nn.Module):
    """`logits = pool(x) W + b`, one row for each text."""

    def __init__(self, shape: LayerConfig, head: ClassificationHead) -> None:
        super().__init__()
        self.pooling = head.pooling
        self.pooler = Linear(shape.d_model, shape.d_model) if head.pooler else None
        self.activation = torch.tanh if head.pooler_activation == "tanh" else torch.relu
        self.dropout = Dropout(shape.dropout)
        self.output = Linear(shape.d_model, _count(head.labels))

    def forward(self, hidden_BLD: Tensor, mask_BL: Tensor) -> Tensor:
        """Map `(B, L, D)` to logits `(B, C)`; padding is excluded from the mean."""
        first = self.pooling == "first"
        pooled_BD = hidden_BLD[:, 0] if first else mean_of(hidden_BLD, mask_BL)
        if self.pooler is not None:
            pooled_BD = self.activation(self.pooler(pooled_BD))
        logits_BC: Tensor = self.output(self.dropout(pooled_BD))
        return logits_BC


def mean_of(hidden_BLD: Tensor, mask_BL: Tensor) -> Tensor:
    """Return the mean of hidden states `(B, L, D)` where the mask is True, `(B, D)`."""
    real_B1L = mask_BL[:, None].to(hidden_BLD.dtype)
    sum_BD = head_product(real_B1L[:, None], hidden_BLD[:, None])[:, 0, 0]
    return sum_BD / real_B1L.sum(2).clamp(min=1)


class TaggingOutput(nn.Module):
    """`logits = x W + b`, one row for each token."""

    def __init__(self, shape: LayerConfig, head: TaggingHead) -> None:
        super().__init__()
        self.dropout = Dropout(shape.dropout)
        self.output = Linear(shape.d_model, _count(head.labels))

    def forward(self, hidden_BLD: Tensor, mask_BL: Tensor) -> Tensor:  # noqa: ARG002 (the form of all heads)
        """Map `(B, L, D)` to logits `(B, L, C)`."""
        logits_BLC: Tensor = self.output(self.dropout(hidden_BLD))
        return logits_BLC


class NoOutput(nn.Module):
    """The hidden states, unchanged."""

    def forward(self, hidden_BLD: Tensor, mask_BL: Tensor) -> Tensor:  # noqa: ARG002 (the form of all heads)
        """Return `(B, L, D)`."""
        return hidden_BLD


def make_head(head: Head, shape: LayerConfig, embedding: nn.Parameter) -> nn.Module:
    """Build the head that a config names."""
    match head:
        case MaskedLanguageHead():
            return MaskedLanguageOutput(shape, head, embedding)
        case ClassificationHead():
            return ClassificationOutput(shape, head)
        case TaggingHead():
            return TaggingOutput(shape, head)
        case NoHead():
            return NoOutput()


def _check_labels(labels: tuple[str, ...]) -> None:
    """Reject control characters: labels are printed, and terminals execute escape sequences."""
    for label in labels:
        if escaped(label) != label:
            raise InputError(f"the label {label!r:.40} has control characters")


def _count(labels: tuple[str, ...]) -> int:
    if len(labels) < 2:
        found = ": ".join([str(len(labels)), *labels])
        raise InputError(f"a head needs at least two labels, not {found}")
    return len(labels)
