r"""Language modelling: documents, a decoder alone, measured by its loss per character.

.. math:: \text{perplexity} = \exp \frac{\text{sum of the losses}}{\text{tokens}}

A figure per token depends on the tokenizer, one per character does not:

.. math:: \text{nats per character} = \frac{\text{sum of the losses}}{\text{characters}}
"""

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.data.documents import DocumentDataset, DocumentTexts, prepare_documents
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.folder.format import TRANSLATION, FolderConfig
from dragoman.folder.opening import ModelFolder
from dragoman.models import DecoderOnly
from dragoman.nn import row_invariant_products
from dragoman.tasks.generate.batches import LanguageBatch, PackConfig, PackedBatches
from dragoman.tasks.generate.dialogue import DialogueCodec, last_answers
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.middle import Middle
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.task import EvaluationData, Report, Task, described
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating, unchecked
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, begin_tokenizer, check_tokens
from dragoman.wording import counted

ROWS = 16
"""Windows at a time."""

CONTEXT = 1024
"""Tokens of a window, if the folder does not say how many the model sees at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLoss:
    """The loss of a text's tokens, given those before them."""

    nats: float
    """The sum of the losses."""
    num_tokens: int
    """Predicted tokens, including the end of each document."""
    num_chars: int
    """Characters of the text."""

    @property
    def per_token(self) -> float:
        """Nats per token: what training minimises."""
        return self.nats / self.num_tokens

    @property
    def per_char(self) -> float:
        """Nats per character, for comparing models with different tokenizers."""
        return self.nats / self.num_chars

    @property
    def perplexity(self) -> float:
        """The exponential of the nats per token."""
        return math.exp(self.per_token)


def text_loss(model: DecoderOnly, dataset: DocumentDataset, config: PackConfig) -> TextLoss:
    """Predict the whole text once, each token with `length - stride` or more before it, if any.

    Leaves the model in training mode.
    """
    nats, num_tokens = 0.0, 0
    with evaluating(model) as device:
        for batch in PackedBatches(dataset, config).fixed():
            nats += GenerateRecipe.loss(model, batch.to(device), 0.0).item()
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
        """The one tokenizer, for both sides."""
        return self.tokenizer, self.tokenizer

    def loss(self, batch: LanguageBatch) -> Tensor:
        """Sum the cross-entropy of the next tokens."""
        return self.recipe.loss(self.model, batch, self.recipe.train.label_smoothing)

    def measure(self) -> Validation:
        """Measure the loss over the whole validation text, per token and, for texts, character."""
        found = text_loss(self.model, self.validation, self.recipe.batch)
        by_char = {} if self.validation.roles else {"nats_per_char": found.per_char}
        diagnostics = {**by_char, "perplexity": found.perplexity}
        return Validation(loss=found.per_token, diagnostics=diagnostics)

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say which texts were used, and what the figures mean."""
        dialogues = self.validation.roles is not None
        return CardPart(
            title="Language model",
            data=self.recipe.data.summary,
            architecture=described("a decoder", self.recipe.model),
            judged="The loss is in nats per token, over the "
            f"{'answers of the' if dialogues else 'whole'} validation text with at least "
            f"{self.recipe.batch.length - self.recipe.batch.step} tokens before each (where there "
            "are so many); the perplexity is its exponential.",
            use=(self.recipe.use() or TASK.use).format(folder="THIS_FOLDER"),
        )


def assemble(
    recipe: GenerateRecipe, folder: RunFolder, say: Say, check: Check = unchecked
) -> GenerateJob:
    """Read the texts, train or load the tokenizer, and build model and batches."""
    data = recipe.data.write(folder.training / "texts")
    hold_out = None if data.valid else data.hold_out
    texts = DocumentTexts(data.training, data.split, hold_out)
    for path in (*data.training, *data.validation):
        if ".jsonl" in path.suffixes:
            say(
                f"Warning: {path} is learned as it is, braces and keys too; write its texts to a "
                "text file, of dialogues a turn a line and a blank line after each."
            )
    tokenizer = begin_tokenizer(recipe, texts, folder, say)
    chat = recipe.generation.chat
    encoder = tokenizer if chat is None else DialogueCodec(tokenizer, chat)
    training, held = prepare_documents(
        data.training, data.split, encoder, data.cache_folder, hold_out
    )
    if held is None:
        held, _ = prepare_documents(data.validation, data.split, encoder, data.cache_folder)
    if isinstance(encoder, DialogueCodec):
        training, held = (replace(side, roles=encoder.roles) for side in (training, held))
    for dataset in (training, held):
        for sentence in dataset.report():
            say(sentence)
    splits = tokenizer.splits() if recipe.batch.subword_sampling else None
    architecture = replace(recipe.model, vocab_size=recipe.model.vocab_size or tokenizer.vocab_size)
    middle = Middle(tokenizer) if recipe.batch.fill_in_middle else None
    source = PackedBatches(training, recipe.batch, splits, middle)
    batches = Stream(source, seed=recipe.train.seed, validation=held.content_hash)
    published = folder.start is not None and folder.start.config.published is not None
    check_tokens(architecture, tokenizer, named=not published)  # the publisher's may name others
    check(architecture, batches, PackedBatches(held, recipe.batch).fixed())
    return GenerateJob(
        recipe=recipe,
        config=FolderConfig(
            model=architecture,
            decoding=replace(TRANSLATION, beam_size=1),
            generation=recipe.generating,
        ),
        model=begin_model(DecoderOnly, architecture, recipe),
        tokenizer=tokenizer,
        batches=batches,
        validation=held,
    )


def evaluate_generator(folder: ModelFolder, test: EvaluationData) -> Report:
    """Return the perplexity of a text, and its nats per token and per character.

    In dialogues, only answers are predicted, and the last of each is also generated and compared.

    A window moves over the text by half of the context that the model generates with, so every
    token has at least the other half before it (if there is so much).
    """
    assert test.text is not None  # noqa: S101 (the task asks for it)
    generator = Generator.load(folder, device=test.device, precision=test.precision)
    chat = generator.dialogues
    split = "blank-line" if chat else test.split
    context = generator.context or CONTEXT
    with tempfile.TemporaryDirectory() as cache:
        texts, _ = prepare_documents([test.text], split, chat or generator.tokenizer, Path(cache))
        texts = replace(texts, roles=chat.roles if chat else None)
        config = PackConfig(
            length=context, rows=ROWS, packing="stream" if split == "file" else "documents"
        )
        start = perf_counter()
        with row_invariant_products():
            loss = text_loss(generator.model, texts, config)
        seconds = perf_counter() - start
    if chat is not None:
        return _evaluate_answers(generator, test, loss)
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


def _evaluate_answers(generator: Generator, test: EvaluationData, loss: TextLoss) -> Report:
    """Answer the last question of each dialogue greedily, and compare character by character."""
    assert test.text is not None  # noqa: S101 (the task asks for it)
    prompts, references = last_answers(test.text)
    options = Decoding(temperature=0.0)
    found, seconds = test.read(generator.each(prompts, options), "answer", len(prompts))
    answers = [answer.text for answer in found]
    right = sum(map(str.__eq__, answers, references))
    figures = {
        "perplexity": loss.perplexity,
        "nats_per_token": loss.per_token,
        "tokens": loss.num_tokens,
        "exact": 100.0 * right / max(1, len(answers)),
        "dialogues": len(answers),
    }
    return Report(
        figures=figures,
        lines=(
            f"perplexity  {loss.perplexity:.3f}",
            f"per token   {loss.per_token:.4f} nats",
            f"exact       {figures['exact']:.1f} % of the last answers",
        ),
        remarks=(f"{counted(len(answers), 'answer')} in {seconds:.1f} s",),
        answers=answers,
    )


TASK = Task(
    recipe=GenerateRecipe,
    assemble=assemble,
    kind="decoder-only",
    does="continues texts (dragoman generate)",
    use="dragoman generate {folder} PROMPT",
    load=Generator.of,
    evaluate=evaluate_generator,
    measured_on=("text",),
)
