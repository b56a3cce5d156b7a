"""All that `dragoman cost` says of a recipe on a device, as plain numbers."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from dragoman.cost.estimate import (
    BATCH_TOKENS,
    FLOAT,
    Measured,
    Prices,
    TextEstimate,
    TrainingEstimate,
    estimate_texts,
    estimate_training,
)
from dragoman.cost.estimate_machine import Rates
from dragoman.cost.estimate_recipe import Work, vocabulary_of
from dragoman.cost.estimate_train import validation_shape
from dragoman.cost.flops import Shape, forward_flops, prefill_flops, step_flops, training_flops
from dragoman.cost.memory import (
    DecodingMemory,
    TrainingMemory,
    cache_bytes,
    decoding_memory,
    training_memory,
    validation_memory,
)
from dragoman.models import EncoderDecoderConfig, EncoderOnlyConfig, count_parameters
from dragoman.nn.cpu.precision import Precision

__all__ = ["Cost", "FlopsPerToken", "MemoryReport", "Request", "cost_of"]

REHEARSED = 4096
"""Tokens of a batch from which on memory grows by the activations of each further row."""
SPARE = 0.98
"""Share of the memory that the largest batch is fitted into: the line is not quite straight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked beside the recipe and the device."""

    prices: Prices = Prices()  # noqa: RUF009 (frozen)
    """What an hour and a kilowatt-hour cost."""
    per_month: float | None = None
    """Tokens of a month's traffic."""
    measured: Measured | None = None
    """What was timed here, if anything was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsPerToken:
    """Operations for one token, a multiplication and an addition being two."""

    training: float
    """Forward and backward, of a token of a full batch."""
    prefill: float | None
    """A token that is read before the first one is written; of an encoder, a token at all."""
    decoding: float | None
    """A token that is written, for each hypothesis, with half of the answer before it."""
    scores: float
    """The share of training that grows with the length: queries with keys, weights with values."""
    output: float
    """The share of training that the output layer takes, or the head of an encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """Bytes."""

    training: TrainingMemory
    """The peak of a step, as the recipe is."""
    other_precision: TrainingMemory
    """The same in the other of fp32 and bf16."""
    other_checkpointing: TrainingMemory
    """The same with activation checkpointing, or, where the recipe has it, without."""
    validation: int
    """The peak of a validation: the loss of a batch, and greedy translations."""
    unfused_loss: int
    """What the logits of the batch and their gradient would take, which never exist at once."""
    cache: int | None
    """What decoding keeps for each sentence and beam at the end of an answer; None for encoders."""
    decoding: DecodingMemory | None
    """The peak of decoding a full batch of sentences, each with its beams; None for encoders."""
    bf16_decoding: DecodingMemory | None
    """The same in bf16; decoding is in fp32 unless it is asked for otherwise."""
    largest_rows: int | None
    """Rows of the batch's lengths with which a step fits the device; None for an unknown memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a recipe costs on a device."""

    name: str
    """What was asked for."""
    work: Work
    """What it is."""
    rates: Rates
    """What computes it."""
    parameters: dict[str, int]
    """Of each part."""
    flops: FlopsPerToken
    """Arithmetic."""
    memory: MemoryReport
    """Memory."""
    training: TrainingEstimate
    """A run."""
    texts: TextEstimate
    """The model at work."""
    measured: Measured | None
    """What was timed here."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; times in seconds, sizes in bytes, energy in kWh."""
        work, memory = self.work, self.memory
        return {
            "name": self.name,
            "task": work.recipe.task,
            "kind": work.config.kind,
            "parameters": self.parameters | {"total": sum(self.parameters.values())},
            "batch": {
                "rows": work.shape.rows,
                "src_length": work.shape.src_length,
                "length": work.shape.length,
                "tokens": work.batch_tokens,
            },
            "flops_per_token": asdict(self.flops),
            "memory": {
                name: None if value is None else asdict(value) | {"total": value.total}
                for name, value in (
                    ("training", memory.training),
                    ("other_precision", memory.other_precision),
                    ("other_checkpointing", memory.other_checkpointing),
                    ("decoding", memory.decoding),
                    ("bf16_decoding", memory.bf16_decoding),
                )
            }
            | {
                "validation": memory.validation,
                "unfused_loss": memory.unfused_loss,
                "cache": memory.cache,
                "largest_rows": memory.largest_rows,
            },
            "device": asdict(self.rates),
            "training": asdict(self.training),
            "texts": asdict(self.texts),
            "measured": None if self.measured is None else asdict(self.measured),
        }


def cost_of(name: str, work: Work, rates: Rates, request: Request) -> Cost:
    """Count, rehearse and estimate everything."""
    return Cost(
        name=name,
        work=work,
        rates=rates,
        parameters=count_parameters(work.config),
        flops=_flops_per_token(work),
        memory=_memory(work, rates),
        training=estimate_training(work, rates, request.prices, request.measured),
        texts=estimate_texts(
            work,
            rates,
            request.prices,
            per_month=request.per_month,
            measured=request.measured,
        ),
        measured=request.measured,
    )


def memory_of(
    work: Work,
    precision: Precision,
    *,
    shape: Shape | None = None,
    activation_checkpointing: bool | None = None,
) -> TrainingMemory:
    """Rehearse a step of the recipe, with another shape or checkpointing where it is given."""
    train = work.recipe.train
    checkpointing = activation_checkpointing
    return training_memory(
        work.config,
        work.shape if shape is None else shape,
        optimizer=train.optimizer,
        precision=precision,
        activation_checkpointing=train.activation_checkpointing
        if checkpointing is None
        else checkpointing,
        accumulate=train.accumulate,
    )


def _flops_per_token(work: Work) -> FlopsPerToken:
    config, shape = work.config, work.shape
    training = training_flops(
        config, shape, activation_checkpointing=work.recipe.train.activation_checkpointing
    )
    read, written = None, None
    if isinstance(config, EncoderOnlyConfig):
        text = Shape(rows=1, length=work.length)
        read = forward_flops(config, text).total / work.length
    else:
        source = work.length if isinstance(config, EncoderDecoderConfig) else 0
        one = Shape(rows=1, src_length=source, length=work.length)
        # the last token of a prompt is the first step's, so one more is counted than is read
        prompt = replace(one, length=work.length + 1)
        read = prefill_flops(config, prompt).total / work.length
        before = work.answer // 2 + (0 if source else work.length)
        written = step_flops(config, one, cached=before).total
    return FlopsPerToken(
        training=training.total / work.batch_tokens,
        prefill=read,
        decoding=written,
        scores=training.scores / training.total,
        output=training.output / training.total,
    )


def _memory(work: Work, rates: Rates) -> MemoryReport:
    config, train = work.config, work.recipe.train
    here = memory_of(work, rates.precision)
    other: Precision = "fp32" if rates.precision == "bf16" else "bf16"
    cache = None
    if not isinstance(config, EncoderOnlyConfig):
        source = work.length if isinstance(config, EncoderDecoderConfig) else 0
        written = work.answer + (0 if source else work.length)
        cache = cache_bytes(config, src_length=source, length=written, precision="fp32")
    return MemoryReport(
        training=here,
        other_precision=memory_of(work, other),
        other_checkpointing=memory_of(
            work,
            rates.precision,
            activation_checkpointing=not train.activation_checkpointing,
        ),
        validation=validation_memory(
            config,
            work.shape,
            validation_shape(work),
            optimizer=train.optimizer,
            precision=rates.precision,
        ),
        unfused_loss=_logits_bytes(work),
        cache=cache,
        decoding=decoding_memory_of(work, "fp32"),
        bf16_decoding=decoding_memory_of(work, "bf16"),
        largest_rows=None if rates.memory is None else _largest_rows(work, rates),
    )


def decoding_memory_of(work: Work, precision: Precision) -> DecodingMemory | None:
    """Rehearse decoding a full batch of sentences and their beams; None for encoders."""
    config = work.config
    if isinstance(config, EncoderOnlyConfig):
        return None
    paired = isinstance(config, EncoderDecoderConfig)
    shape = Shape(
        rows=max(1, BATCH_TOKENS // (work.length * work.beam_size)),
        src_length=work.length,
        length=work.answer + (0 if paired else work.length),
    )
    return decoding_memory(config, shape, beam_size=work.beam_size, precision=precision)


def _logits_bytes(work: Work) -> int:
    """Logits of all targets of a batch, and as much again for their gradient."""
    config, shape = work.config, work.shape
    if isinstance(config, EncoderOnlyConfig):
        return 2 * FLOAT * (shape.targets or 0) * vocabulary_of(config)
    return 2 * FLOAT * shape.rows * shape.length * vocabulary_of(config)


def _largest_rows(work: Work, rates: Rates) -> int:
    """Rows that fill the device, on the line through two batches in which activations prevail."""
    assert rates.memory is not None  # noqa: S101 (the caller has looked)
    few = max(1, -(-REHEARSED * work.shape.rows // work.batch_tokens))
    many = 2 * few
    at_few, at_many = (
        memory_of(work, rates.precision, shape=_with_rows(work.shape, rows)).total
        for rows in (few, many)
    )
    rows = few + (SPARE * rates.memory - at_few) * (many - few) / (at_many - at_few)
    return max(0, int(rows))


def _with_rows(shape: Shape, rows: int) -> Shape:
    targets = None if shape.targets is None else shape.targets * rows // shape.rows
    return replace(shape, rows=rows, targets=targets)
