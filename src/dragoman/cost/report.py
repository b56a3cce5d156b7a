"""Everything that `dragoman cost` reports about a recipe on a device, as plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.cost.counting import decoding_step, step_of
from dragoman.cost.estimate import (
    SeveralEstimate,
    TextEstimate,
    Timings,
    TrainingEstimate,
    estimate_several,
    estimate_texts,
    estimate_training,
    forward_flops,
)
from dragoman.cost.machine import Rates
from dragoman.cost.memory import MemoryReport, memory_of
from dragoman.cost.options import CostOptions
from dragoman.models import count_parameters
from dragoman.plain import Plain
from dragoman.train.recipe import Work

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
