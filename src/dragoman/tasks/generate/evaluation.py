r"""How well a language model predicts a text.

.. math:: \text{perplexity} = \exp \frac{\text{sum of the losses}}{\text{tokens}}

A figure per token depends on the tokenizer, one per character does not:

.. math:: \text{nats per character} = \frac{\text{sum of the losses}}{\text{characters}}
"""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from dragoman.data.documents import DocumentDataset, prepare_documents
from dragoman.errors import InputError
from dragoman.models import DecoderOnly
from dragoman.nn import row_invariant_products
from dragoman.tasks.evaluation import EvaluationData, Report
from dragoman.tasks.generate.batches import PackConfig, PackedBatches
from dragoman.tasks.generate.generator import Generator
from dragoman.train.objective import next_token_loss
from dragoman.train.validate import evaluating
from dragoman.wording import counted

__all__ = ["TextLoss", "evaluate_generator", "text_loss"]

ROWS = 16
"""Windows at a time."""

CONTEXT = 1024
"""Tokens of a window, where the folder does not say how many the model sees at once."""


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
    """Predict the whole text once, each token with at least `length - stride` before it.

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


def evaluate_generator(model: Path, test: EvaluationData) -> Report:
    """Return the perplexity of a text, and what its tokens and characters cost in nats.

    A window moves over the text by half of the context that the model generates with, so that every
    token has at least the other half before it (where there is so much).
    """
    assert test.text is not None  # noqa: S101 (the task asks for it)
    generator = Generator.load(model, device=test.device)
    context = generator.context or CONTEXT
    with tempfile.TemporaryDirectory() as cache:
        texts, _ = prepare_documents([test.text], test.split, generator.tokenizer, Path(cache))
        config = PackConfig(
            length=context, rows=ROWS, packing="stream" if test.split == "file" else "documents"
        )
        start = perf_counter()
        with row_invariant_products():
            loss = text_loss(generator.model, texts, config)
        seconds = perf_counter() - start
    figures = {
        "perplexity": loss.perplexity,
        "nats_per_token": loss.per_token,
        "nats_per_char": loss.per_char,
        "tokens": loss.num_tokens,
        "characters": loss.num_chars,
        "context": context,
        "tokens_per_second": loss.num_tokens / seconds,
    }
    counts = f"{counted(loss.num_chars, 'character')}, {counted(loss.num_tokens, 'token')}"
    return Report(
        figures=figures,
        lines=(
            f"perplexity  {loss.perplexity:.3f}",
            f"per token   {loss.per_token:.4f} nats",
            f"per char    {loss.per_char:.4f} nats",
            f"speed       {figures['tokens_per_second']:,.0f} tokens/s",
        ),
        remarks=(f"{counts} in {seconds:.1f} s",),
    )
