"""All that `dragoman cost` reports of a recipe on a device, as plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.cost.counting import FLOAT, TrainingMemory, step_of
from dragoman.cost.decoding import DecodingMemory, decoding_memory, decoding_step
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
from dragoman.cost.forecast import usual_validation
from dragoman.cost.machine import Rates
from dragoman.cost.options import CostOptions
from dragoman.models import count_parameters
from dragoman.nn.cpu.products import Precision
from dragoman.plain import Plain
from dragoman.train.recipe import Work

ENOUGH_TOKENS = 4096
"""Tokens of a batch from which on memory grows by the activations of each further row."""
ROWS = 64
"""Of a batch whose products are large enough to be computed as they are (`nn/cpu/products.py`)."""
SPARE = 0.98
"""Share of the memory that the largest batch is fitted into: the line is not quite straight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsPerToken:
    """Operations for one token, a multiplication and an addition being two."""

    training: float
    """Forward and backward, of a token of a full batch."""
    prefill: float
    """A token that is read before the first one is written; of an encoder, a token at all."""
    decoding: float | None
    """A token that is written, for each hypothesis, with half of the answer before it."""
    scores: float
    """The share of training that grows with the length: queries with keys, weights with values."""
    output: float
    """The share of training that the output layer takes, or the head of an encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """Bytes at the peak; of decoding, a full batch of sentences with their beams, if any."""

    training: TrainingMemory
    other_precision: TrainingMemory
    """In the other of fp32 and bf16."""
    other_checkpointing: TrainingMemory
    """With activation checkpointing, or, where the recipe has it, without."""
    decoding: DecodingMemory | None
    bf16_decoding: DecodingMemory | None
    validation: int
    unfused_loss: int
    """What the logits of the batch and their gradient would take, which never exist at once."""
    cache: int | None
    """What decoding keeps for each sentence and beam at the end of an answer."""
    largest_rows: int | None
    """Rows of the batch's lengths with which a step fits the device; None for an unknown memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Plain):
    """What a recipe costs on a device, in seconds, bytes and kWh."""

    name: str
    task: str
    kind: str
    parameters: dict[str, int]
    """Of each part, and the total."""
    batch: dict[str, int]
    """The size of a full one."""
    flops_per_token: FlopsPerToken
    memory: MemoryReport
    device: Rates
    training: TrainingEstimate
    several: Sequence[SeveralEstimate]
    """A step of as many devices as were asked for."""
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
        memory=_memory(work, rates),
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
        # the last token of a prompt is the first step's, so one more is counted than is read
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


def _memory(work: Work, rates: Rates) -> MemoryReport:
    shape = work.shape
    other: Precision = "fp32" if rates.precision == "bf16" else "bf16"
    checkpointing = not work.recipe.train.activation_checkpointing
    checkpointed = step_of(work, rates.precision, checkpointing=checkpointing)
    cache = None
    if work.answer:
        cache = decoding_step(work.config, work.texts(1), cached=work.prompt + work.answer).read
    targets = shape.rows * shape.length if shape.targets is None else shape.targets
    return MemoryReport(
        training=step_of(work, rates.precision).memory,
        other_precision=step_of(work, other).memory,
        other_checkpointing=checkpointed.memory,
        decoding=decoding_memory_of(work, "fp32"),
        bf16_decoding=decoding_memory_of(work, "bf16"),
        validation=usual_validation(work, rates.precision),
        unfused_loss=2 * FLOAT * targets * work.vocab_size,
        cache=cache,
        largest_rows=None if rates.memory is None else _largest_rows(work, rates, rates.memory),
    )


def decoding_memory_of(work: Work, precision: Precision) -> DecodingMemory | None:
    """Decode a full batch of sentences and their beams dry; None for encoders."""
    if not work.answer:
        return None
    batch = full_batch(work, work.beam_size)
    shape = replace(batch, src_length=work.length, length=work.prompt + work.answer)
    return decoding_memory(work.config, shape, beam_size=work.beam_size, precision=precision)


def _largest_rows(work: Work, rates: Rates, memory: int) -> int:
    """Rows that fill the device, on the line through two batches in which activations prevail."""

    def peak(rows: int) -> int:
        targets = work.shape.targets and work.shape.targets * rows // work.shape.rows
        shape = replace(work.shape, rows=rows, targets=targets)
        return step_of(work, rates.precision, shape=shape).memory.total

    few = max(1, -(-ENOUGH_TOKENS * work.shape.rows // work.shape.tokens))
    many = 2 * few
    at_few, at_many = (peak(rows) for rows in (few, many))
    rows = few + (SPARE * memory - at_few) * (many - few) / (at_many - at_few)
    return max(0, int(rows))
