"""Generation, as others see it: what an estimate asks, how it is measured, and its name."""

import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from dragoman.data.documents import prepare_documents
from dragoman.models import DecoderOnlyConfig
from dragoman.nn import row_invariant_products
from dragoman.tasks.generate.batches import LanguageBatch, PackConfig
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.job import assemble, text_loss
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.task import EvaluationData, Report, Task
from dragoman.tasks.work import Shape, Work, Workload, random_ids, sentence_length, some_targets
from dragoman.train.objective import next_token_loss
from dragoman.wording import counted

ROWS = 16
"""Windows at a time."""

CONTEXT = 1024
"""Tokens of a window, where the folder does not say how many the model sees at once."""


def _work(recipe: GenerateRecipe, length: int | None) -> Work:
    batch, config = recipe.batch, recipe.model
    config = replace(config, vocab_size=config.vocab_size or recipe.tokenizer.vocab_size)
    prompt = sentence_length(length, "batch.length", batch.length)
    shape = Shape(rows=batch.rows, length=batch.length)
    if batch.packing == "documents":
        documents = (batch.length,) * batch.rows
        shape = Shape(rows=1, length=sum(documents), documents=documents)
    return Work(
        recipe=recipe,
        config=config,
        length=prompt,
        shape=shape,
        longest=batch.length,
        answer=max(1, min(recipe.generation.max_tokens, batch.length - prompt)),
        vocab_size=config.vocab_size,
    )


def _sample(config: DecoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> LanguageBatch:
    ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
    return LanguageBatch(
        inputs_BL=ids_BL,
        targets_BL=some_targets(ids_BL, shape.targets, config.pad_id),
        document_lengths=shape.documents,
        num_tokens=ids_BL.numel(),
        num_targets=ids_BL.numel() if shape.targets is None else shape.targets,
        indices=np.arange(shape.rows),
    )


def _shape(batch: LanguageBatch) -> Shape:
    rows, length = batch.inputs_BL.shape
    return Shape(rows=rows, length=length, documents=batch.document_lengths)


def _smaller(recipe: GenerateRecipe, shape: Shape, share: float) -> str:
    rows = min(recipe.batch.rows, shape.tokens // recipe.batch.length)  # a text may hold fewer
    return f"batch.rows to {max(1, int(share * rows)):,}"


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


TASK = Task(
    recipe=GenerateRecipe,
    assemble=assemble,
    kind="decoder-only",
    does="goes on with texts (dragoman generate)",
    workload=Workload(
        work=_work, sample=_sample, loss=next_token_loss, shape=_shape, smaller=_smaller
    ),
    use="dragoman generate {folder} PROMPT",
    load=Generator.of,
    evaluate=evaluate_generator,
    measured_on=("text",),
)
