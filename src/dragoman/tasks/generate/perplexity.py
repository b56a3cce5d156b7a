r"""How well a language model predicts a text.

.. math:: \text{perplexity} = \exp \frac{\text{sum of the losses}}{\text{tokens}}

A figure per token depends on the tokenizer, one per character does not:

.. math:: \text{nats per character} = \frac{\text{sum of the losses}}{\text{characters}}
"""

import math
from dataclasses import dataclass

from dragoman.data.documents import DocumentDataset
from dragoman.errors import InputError
from dragoman.models import DecoderOnly
from dragoman.tasks.generate.batches import PackConfig, PackedBatches
from dragoman.train.objective import next_token_loss
from dragoman.train.validate import evaluating

__all__ = ["TextLoss", "text_loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLoss:
    """What the tokens of a text cost, given those before them."""

    nats: float
    """The sum of the losses."""
    num_tokens: int
    """Tokens that were predicted, the end of each document among them."""
    num_chars: int
    """Characters of the text."""

    @property
    def per_token(self) -> float:
        """Nats per token: what training minimises."""
        return self.nats / self.num_tokens

    @property
    def per_char(self) -> float:
        """Nats per character: what models of different tokenizers are compared by."""
        return self.nats / self.num_chars

    @property
    def perplexity(self) -> float:
        """The exponential of the nats per token."""
        return math.exp(self.per_token)


def text_loss(model: DecoderOnly, dataset: DocumentDataset, config: PackConfig) -> TextLoss:
    """Predict the whole text once, each token with at least ``length - stride`` before it.

    Where there are so many, that is. The model is left in training mode.
    """
    nats, num_tokens = 0.0, 0
    with evaluating(model) as device:
        for batch in PackedBatches(dataset, config).fixed():
            nats += next_token_loss(model, batch.to(device), 0.0).item()
            num_tokens += batch.num_targets
    if not num_tokens:
        raise InputError(f"{dataset.name} is too short: it holds no token to predict.")
    return TextLoss(nats=nats, num_tokens=num_tokens, num_chars=dataset.num_chars)
