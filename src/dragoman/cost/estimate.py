r"""Time, energy and money: counted arithmetic divided by known rates.

With :math:`F` operations of a batch, :math:`R` operations a second, :math:`L` layers and
:math:`t_L` the time to start one of them (in decoding another one),

.. math:: t_{step} = k (F / R + p L t_L) \qquad t_{token} = F / R + W / M + L t_L

for :math:`k` batches a step and :math:`p = 3` passes through the layers (forward once, backward
twice; activation checkpointing runs forward again). A decoded token also waits for the :math:`W`
bytes of weights and cache, read at :math:`M` bytes a second. Energy is power times time; money is
rent times time, or the price of that energy.
"""

from bisect import bisect
from dataclasses import dataclass

from dragoman.cost.counting import (
    BATCH_TOKENS,
    FLOAT,
    VALIDATED,
    decoding_step,
    forward_pass,
    step_of,
)
from dragoman.cost.machine import Rates
from dragoman.data.shape import Shape
from dragoman.models import count_parameters
from dragoman.train.device import STATE_BYTES, needs_shards
from dragoman.train.recipe import Work
from dragoman.wording import counted

DISK = 500e6
"""Bytes a second at which checkpoints reach the disk, if not measured; assumed."""
HOP = 10e-6
"""Seconds until a link between devices delivers the first byte; assumed."""
BACKWARD = 2 / 3
"""Share of the backward pass in the time of a batch."""
MILLION = 1e6
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What something costs: energy if the device's power is known, money if a price is."""

    seconds: float
    kwh: float | None
    money: float | None
    """Rent and electricity."""
    currency: str | None = None
    """Currency of the money; None for that of the user's own prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How long the parts of a run take, measured here or derived from rates."""

    step_seconds: float
    step_tokens: float
    """Tokens of a step, on both sides, without padding."""
    prepare_seconds: float
    """From the files to the first step: tokenizer, tokens, model."""
    validation_seconds: float
    """A validation, with its decoding."""
    save_seconds: float
    """A checkpoint."""
    export_seconds: float
    """Writing the model folder."""
    tokens_per_second: float | None
    """Tokens decoded, or read by an encoder; None if it was not timed."""
    how: str
    """What it was measured on, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """A training run; its steps, tokens and bill are None if only patience ends it."""

    steps: int | None
    tokens: int | None
    step_seconds: float
    validations: int
    saves: int
    beside_seconds: float
    """Preparing, validating, saving."""
    limited_by: str
    bill: Bill | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralEstimate:
    """A training step on several devices, each with the batches of the recipe."""

    devices: int
    sharded: bool
    """Whether each has a shard of the model, because of `train.shard` or the model's size."""
    states: float
    """Bytes of weights, gradients and moments on each device."""
    sent: float
    """Bytes that each device sends in a step."""
    communication_seconds: float
    """Time that sending takes by itself."""
    step_seconds: float
    """Time of a step, including the sending that is not hidden by computing."""
    tokens_per_second: float
    """Tokens of all devices, on both sides, without padding."""
    efficiency: float
    """Tokens per second as a share of as many times those of one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEstimate:
    """A model at work in full batches: an encoder reads texts, the others write tokens."""

    tokens_per_second: float
    million: Bill
    month: Bill | None
    """The stated monthly traffic."""


def bill_of(seconds: float, rates: Rates) -> Bill:
    """Return the bill for a time on a device."""
    kwh = None if rates.watts is None else rates.watts * seconds / HOUR / 1000
    costs = [] if rates.price_per_hour is None else [rates.price_per_hour * seconds / HOUR]
    if rates.price_per_kwh is not None and kwh is not None:
        costs.append(rates.price_per_kwh * kwh)
    money = sum(costs) if costs else None
    return Bill(seconds=seconds, kwh=kwh, money=money, currency=rates.currency)


# ---------------------------------------------------------------- training


def estimate_training(
    work: Work, rates: Rates, measured: Timings | None = None
) -> TrainingEstimate:
    """Estimate a run to its limit, in steps or minutes, whichever comes first.

    Measured values take precedence over the rates.
    """
    train, times = work.recipe.train, measured or _timings(work, rates)
    step, save = times.step_seconds, times.save_seconds
    validation = times.validation_seconds + times.export_seconds
    limits = []
    if train.max_steps is not None:
        limits.append((train.max_steps, counted(train.max_steps, "step")))
    if train.max_minutes is not None:
        available = 60 * train.max_minutes - times.prepare_seconds
        by_time = bisect(
            range(1, 2 + max(0, int(available / step))),
            available,
            key=lambda n: (
                n * step + n // train.validate_every * validation + n // train.save_every * save
            ),
        )
        limits.append((max(1, by_time), counted(float(train.max_minutes), "minute")))
    steps, limited_by = min(limits, default=(0, ""))
    validations, saves = -(-steps // train.validate_every), -(-steps // train.save_every)
    averaging = validation if train.average_last > 1 and saves > 1 else 0.0
    beside = times.prepare_seconds + validations * validation + saves * save + averaging
    patience = f"{counted(train.patience or 0, 'validation')} without a better one"
    return TrainingEstimate(
        steps=steps if limits else None,
        tokens=round(steps * times.step_tokens) if limits else None,
        step_seconds=step,
        validations=validations,
        saves=saves,
        beside_seconds=beside if limits else 0.0,
        limited_by=limited_by or patience,
        bill=bill_of(steps * step + beside, rates) if limits else None,
    )


def _timings(work: Work, rates: Rates) -> Timings:
    train = work.recipe.train
    passes = 4 if train.activation_checkpointing else 3
    started = passes * work.config.depth * rates.layer_seconds
    validation = forward_flops(work, VALIDATED) / rates.training
    if work.src_length:  # its greedy translations are scored
        written = min(VALIDATED, train.validate_limit) * work.answer
        validation += written / _tokens_per_second(work, rates, 1)
    return Timings(
        step_seconds=train.accumulate * (step_of(work, "fp32").flops / rates.training + started),
        step_tokens=work.step_tokens,
        prepare_seconds=0.0,
        validation_seconds=validation,
        save_seconds=3 * FLOAT * work.parameters / DISK,
        export_seconds=FLOAT * work.parameters / DISK,
        tokens_per_second=None,
        how=rates.how,
    )


def estimate_several(
    work: Work, rates: Rates, one: TrainingEstimate, devices: int, link: float
) -> SeveralEstimate:
    r"""Estimate a step of `devices` like the one of `rates`; `link` is in bytes a second.

    With :math:`B` bytes of gradients and :math:`n` devices in a ring, whose links carry :math:`S`
    bytes a second and answer after :math:`h` seconds, a step sends for :math:`2 (n - 1) (B / (n S)
    + h)` seconds (Patarasuk and Yuan, 2009). Shards gather the weights twice and sum the gradients
    once, a factor of 3 instead of 2, for each batch. PyTorch sends while it computes: whole models
    during the backward pass of the last batch, two thirds of its time; shards all the time.
    Whatever does not fit lengthens the step.
    """
    train, parameters = work.recipe.train, work.parameters
    sharded = devices > 1 and train.shard == "on"
    if devices > 1 and train.shard == "auto" and rates.memory is not None:
        sharded = needs_shards(parameters, rates.memory)
    rounds = (3 * train.accumulate if sharded else 2) * (devices - 1)
    sent = rounds * FLOAT * parameters / devices
    communication = sent / link + rounds * HOP
    hiding = one.step_seconds if sharded else BACKWARD * one.step_seconds / train.accumulate
    step = one.step_seconds + max(0.0, communication - hiding)
    return SeveralEstimate(
        devices=devices,
        sharded=sharded,
        states=STATE_BYTES * parameters / (devices if sharded else 1),
        sent=sent,
        communication_seconds=communication,
        step_seconds=step,
        tokens_per_second=devices * work.step_tokens / step,
        efficiency=one.step_seconds / step,
    )


# ---------------------------------------------------------------- at work


def estimate_texts(
    work: Work, rates: Rates, *, per_month: float | None = None, measured: Timings | None = None
) -> TextEstimate:
    """Estimate a model at work in full batches; `per_month` is a monthly traffic in tokens."""
    speed = measured.tokens_per_second if measured else None
    speed = speed or _tokens_per_second(work, rates, work.beam_size)
    return TextEstimate(
        tokens_per_second=speed,
        million=bill_of(MILLION / speed, rates),
        month=None if per_month is None else bill_of(per_month / speed, rates),
    )


def full_batch(work: Work, beam_size: int) -> Shape:
    """Return the batch in which texts are read or answered; `length` is that of the input."""
    return work.texts(max(1, BATCH_TOKENS // (work.length * beam_size)))


def forward_flops(work: Work, rows: int) -> float:
    """Count one pass over texts of the work's length, with predictions at every position."""
    batch = work.texts(work.shape.rows)
    return rows * forward_pass(work.kind, work.config, batch).flops / batch.rows


def _tokens_per_second(work: Work, rates: Rates, beam_size: int) -> float:
    """Return the tokens of all sentences of a full batch, divided by the time that it takes."""
    batch, config = full_batch(work, beam_size), work.config
    started = config.depth * rates.decoding_layer_seconds
    if not work.answer:
        return batch.tokens / (forward_flops(work, batch.rows) / rates.decoding + started)
    cached = work.prompt + work.answer // 2
    one = decoding_step(config, batch, beam_size=beam_size, cached=cached)
    prefill = one.prefill / rates.decoding + started
    weights = count_parameters(config)["decoder"] + work.vocab_size * config.d_model
    reading = (FLOAT * weights + batch.rows * beam_size * one.read) / rates.reading
    step = one.flops / rates.decoding + reading + one.layers * rates.decoding_layer_seconds
    return batch.rows * work.answer / (prefill + work.answer * step)
