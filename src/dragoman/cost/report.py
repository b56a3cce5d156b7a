"""Everything that `dragoman cost` reports about a recipe on a device, as plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.cost.counting import (
    FLOAT,
    DecodingMemory,
    TrainingMemory,
    decoding_memory,
    decoding_step,
    step_of,
    validation_memory,
)
from dragoman.cost.estimate import (
    SeveralEstimate,
    TextEstimate,
    Timings,
    TrainingEstimate,
    estimate_several,
    estimate_texts,
    estimate_training,
    forward_flops,
    full_batch,
)
from dragoman.cost.machine import Rates
from dragoman.cost.options import CostOptions
from dragoman.models import count_parameters
from dragoman.plain import Plain
from dragoman.train.recipe import Work

ENOUGH_TOKENS = 4096
"""Tokens of a batch above which memory grows by the activations of each further row."""
SPARE = 0.98
"""Share of the memory that the largest batch may use: the line is not quite straight."""
ROWS = 64
"""Rows of a batch whose products are large enough to run unchanged (`nn/cpu/products.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsPerToken:
    """Operations per token; a multiplication and an addition count as two."""

    training: float
    """Forward and backward, per token of a full batch."""
    prefill: float
    """Per token read before the first one is written; for an encoder, per token."""
    decoding: float | None
    """Per token written and hypothesis, with half of the answer before it."""
    scores: float
    """The share of training that grows with the length: queries with keys, weights with values."""
    output: float
    """The share of training that the output layer takes, or the head of an encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """Bytes at the peak; for decoding, a full batch of sentences with their beams, if any."""

    training: TrainingMemory
    other_precision: TrainingMemory
    """In the other of fp32 and bf16."""
    other_checkpointing: TrainingMemory
    """With activation checkpointing or, if the recipe has it, without."""
    decoding: DecodingMemory | None
    bf16_decoding: DecodingMemory | None
    validation: int
    unfused_loss: int
    """What the logits of the batch and their gradient would take; they never exist at once."""
    cache: int | None
    """What a step of decoding reads for each sentence and beam at the end of an answer."""
    largest_rows: int | None
    """Rows of the batch's lengths with which a step fits the device; None for an unknown memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Plain):
    """What a recipe costs on a device, in seconds, bytes and kWh."""

    name: str
    task: str
    kind: str
    parameters: dict[str, int]
    """Number of parameters of each part, and the total."""
    batch: dict[str, int]
    """The size of a full batch."""
    flops_per_token: FlopsPerToken
    memory: MemoryReport
    device: Rates
    training: TrainingEstimate
    several: Sequence[SeveralEstimate]
    """A step on each requested number of devices."""
    texts: TextEstimate
    measured: Timings | None


NOTHING_ASKED = CostOptions()


def cost_of(
    name: str,
    work: Work,
    rates: Rates,
    asked: CostOptions = NOTHING_ASKED,
    measured: Timings | None = None,
) -> Cost:
    """Count and estimate everything."""
    parts, shape = count_parameters(work.config), work.shape
    sizes = {"rows": shape.rows, "src_length": shape.src_length, "length": shape.length}
    paid = rates.priced(per_hour=asked.price, per_kwh=asked.kwh_price)
    training = estimate_training(work, paid, measured)
    link, month = 1e9 * (asked.link_gb or 0.0), asked.tokens_per_month
    return Cost(
        name=name,
        task=work.recipe.task,
        kind=work.config.kind,
        parameters=parts | {"total": work.parameters},
        batch=sizes | {"tokens": shape.tokens},
        flops_per_token=_flops_per_token(work),
        memory=memory_of(work, rates),
        device=rates,
        training=training,
        several=[estimate_several(work, rates, training, n, link) for n in asked.nproc],
        texts=estimate_texts(work, paid, per_month=month, measured=measured),
        measured=measured,
    )


def _flops_per_token(work: Work) -> FlopsPerToken:
    training = step_of(work, "fp32")
    read, written = forward_flops(work, 1) / work.length, None
    if work.answer:
        # the first step is fed the last token of a prompt, so one more is counted than is read
        batch = replace(work.texts(ROWS), length=work.length + 1)
        cached = work.prompt + work.answer // 2
        step = decoding_step(work.config, batch, cached=cached)
        read, written = step.prefill / (ROWS * work.length), step.flops / ROWS
    return FlopsPerToken(
        training=training.flops / work.shape.tokens,
        prefill=read,
        decoding=written,
        scores=training.scores / training.flops,
        output=training.output / training.flops,
    )


def memory_of(work: Work, rates: Rates) -> MemoryReport:
    """Return the peaks of training, validation and decoding on a device."""
    shape, precision = work.shape, rates.precision
    decoding, bf16_decoding, cache = None, None, None
    if work.answer:
        texts, at_end = full_batch(work, work.beam_size), work.prompt + work.answer
        batch = replace(texts, src_length=work.length, length=at_end)
        decoding, bf16_decoding = (
            decoding_memory(work.config, batch, beam_size=work.beam_size, precision=each)
            for each in ("fp32", "bf16")
        )
        cache = decoding_step(work.config, work.texts(1), cached=at_end).read
    targets = shape.rows * shape.length if shape.targets is None else shape.targets
    checkpointing = not work.recipe.train.activation_checkpointing
    return MemoryReport(
        training=step_of(work, precision).memory,
        other_precision=step_of(work, "fp32" if precision == "bf16" else "bf16").memory,
        other_checkpointing=step_of(work, precision, checkpointing=checkpointing).memory,
        decoding=decoding,
        bf16_decoding=bf16_decoding,
        validation=validation_memory(work, precision),
        unfused_loss=2 * FLOAT * targets * work.vocab_size,
        cache=cache,
        largest_rows=None if rates.memory is None else _largest_rows(work, rates, rates.memory),
    )


def _largest_rows(work: Work, rates: Rates, memory: int) -> int:
    """Return the rows that fill the device, on a line through two activation-bound batches."""

    def peak(rows: int) -> int:
        targets = work.shape.targets and work.shape.targets * rows // work.shape.rows
        shape = replace(work.shape, rows=rows, targets=targets)
        return step_of(work, rates.precision, shape=shape).memory.total

    few = max(1, -(-ENOUGH_TOKENS * work.shape.rows // work.shape.tokens))
    many = 2 * few
    at_few, at_many = (peak(rows) for rows in (few, many))
    rows = few + (SPARE * memory - at_few) * (many - few) / (at_many - at_few)
    return max(0, int(rows))
