r"""Learning to go on with a text: documents, a decoder alone, judged by its loss per character.

.. math:: \text{perplexity} = \exp \frac{\text{sum of the losses}}{\text{tokens}}

A figure per token depends on the tokenizer, one per character does not:

.. math:: \text{nats per character} = \frac{\text{sum of the losses}}{\text{characters}}
"""

import math
from dataclasses import dataclass, replace

from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.data.documents import DocumentDataset, DocumentTexts, prepare_documents
from dragoman.errors import InputError
from dragoman.models import DecoderOnly
from dragoman.models.folder import FolderConfig
from dragoman.tasks.generate.batches import LanguageBatch, PackConfig, PackedBatches
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import next_token_loss
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, begin_tokenizer, check_tokens
from dragoman.wording import counted


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateJob:
    """A decoder and texts."""

    recipe: GenerateRecipe
    config: FolderConfig
    model: DecoderOnly
    tokenizer: Tokenizer
    batches: Stream[LanguageBatch]
    validation: DocumentDataset

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """One for all."""
        return self.tokenizer, self.tokenizer

    def loss(self, batch: LanguageBatch) -> Tensor:
        """Sum the cross-entropy of the next tokens."""
        return next_token_loss(self.model, batch, self.recipe.train.label_smoothing)

    def measure(self) -> Validation:
        """Find the loss over the whole validation text, by token and by character."""
        found = text_loss(self.model, self.validation, self.recipe.batch)
        return Validation(
            loss=found.per_token,
            diagnostics={"nats_per_char": found.per_char, "perplexity": found.perplexity},
        )

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say which texts, and what the figures mean."""
        model = self.recipe.model
        return CardPart(
            title="Language model",
            data=self.recipe.data.summary,
            architecture=f"a decoder of {counted(model.num_layers, 'layer')}, "
            f"d_model {model.d_model}, {counted(model.num_heads, 'head')}, d_ff {model.d_ff}, "
            f"{model.norm_position}-norm, positions: {model.positions.kind}",
            judged="The loss is in nats per token, over the whole validation text with at least "
            f"{self.recipe.batch.length - self.recipe.batch.step} tokens before each (where there "
            "are so many); the perplexity is its exponential.",
            use="dragoman generate THIS_FOLDER PROMPT",
        )


def assemble(
    recipe: GenerateRecipe,
    folder: RunFolder,
    say: Say,
    check: Check = unchecked,
) -> GenerateJob:
    """Read the texts, learn or load the tokenizer, and build model and batches."""
    data = recipe.data
    hold_out = None if data.valid else data.hold_out
    texts = DocumentTexts(data.training, data.split, hold_out)
    tokenizer = begin_tokenizer(recipe, texts, folder.training, say)
    training, held = prepare_documents(
        data.training, data.split, tokenizer, data.cache_folder, hold_out
    )
    if held is None:
        held, _ = prepare_documents(data.validation, data.split, tokenizer, data.cache_folder)
    for dataset in (training, held):
        for sentence in dataset.report():
            say(sentence)
    splits = tokenizer.splits() if recipe.batch.subword_sampling else None
    architecture = replace(recipe.model, vocab_size=recipe.model.vocab_size or tokenizer.vocab_size)
    source = PackedBatches(training, recipe.batch, splits)
    batches = Stream(source, seed=recipe.train.seed)
    check_tokens(architecture, tokenizer)
    check(architecture, batches, PackedBatches(held, recipe.batch).fixed())
    return GenerateJob(
        recipe=recipe,
        config=FolderConfig(model=architecture, generation=recipe.generating),
        model=begin_model(DecoderOnly, architecture, recipe),
        tokenizer=tokenizer,
        batches=batches,
        validation=held,
    )
