r"""Time, energy and money: arithmetic that is counted, divided by rates that are known.

Training, with :math:`F` operations of a batch, :math:`R` operations a second of a training step,
:math:`L` layers, :math:`t_L` the time to start one of them, and :math:`p = 3` passes through them
(forward once, backward twice; 4 with activation checkpointing, which runs forward once more),

.. math:: t_{step} = k (F / R + p L t_L)

for :math:`k` batches a step. A step of decoding takes, with :math:`W` bytes of weights and cache
that it reads at :math:`M` bytes a second, and :math:`L` layers of the decoder,

.. math:: t_{token} = F / R + W / M + L t_L

since products with weights wait for the processor, and attention to the cache for the memory.
Energy is power times time; money is rent times time, or the price of that energy.
"""

from bisect import bisect
from dataclasses import dataclass

from dragoman.cost.counting import forward_pass, step_of
from dragoman.cost.decoding import decoding_step
from dragoman.cost.machine import Rates
from dragoman.data.shape import Shape
from dragoman.decoding import TRANSLATING
from dragoman.models import count_parameters
from dragoman.train.recipe import Work
from dragoman.wording import counted

BATCH_TOKENS = TRANSLATING.max_batch_tokens
"""Source tokens of a batch that is translated, times beams."""
VALIDATED = 1000
"""Sentences of a validation, where the data has not been looked at."""
DISK = 500e6
"""Bytes a second at which checkpoints reach the disk, where it was not measured; assumed."""
FLOAT = 4
MILLION = 1e6
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What something takes: energy where the device's power is known, money where a price is."""

    seconds: float
    kwh: float | None
    money: float | None
    """Rent and electricity."""
    currency: str | None = None
    """Of the money; None for that of the user's own prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """What the parts of a run take, as they were measured here or follow from rates."""

    step_seconds: float
    """A step of the optimizer."""
    step_tokens: float
    """Tokens of a step, of both sides, without padding."""
    prepare_seconds: float
    """From the files to the first step: tokenizer, tokens, model."""
    validation_seconds: float
    """A validation with its decoding."""
    save_seconds: float
    """A checkpoint."""
    export_seconds: float
    """Writing the model folder."""
    tokens_per_second: float | None
    """Tokens that are decoded, or read by an encoder; None where it was not timed."""
    how: str
    """On what it was measured, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """A run of training; its steps, tokens and bill are None where only patience ends it."""

    steps: int | None
    tokens: int | None
    """Of all steps."""
    step_seconds: float
    validations: int
    saves: int
    """How often it writes a checkpoint."""
    beside_seconds: float
    """Preparing, validating, saving."""
    limited_by: str
    """What ends the run."""
    bill: Bill | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEstimate:
    """A model at work in full batches: an encoder reads texts, the others write tokens."""

    tokens_per_second: float
    million: Bill
    """A million of them."""
    month: Bill | None
    """The stated traffic of a month."""


def bill_of(seconds: float, rates: Rates) -> Bill:
    """Return what a time on a device takes."""
    kwh = None if rates.watts is None else rates.watts * seconds / HOUR / 1000
    costs = [] if rates.price_per_hour is None else [rates.price_per_hour * seconds / HOUR]
    if rates.price_per_kwh is not None and kwh is not None:
        costs.append(rates.price_per_kwh * kwh)
    money = sum(costs) if costs else None
    return Bill(seconds=seconds, kwh=kwh, money=money, currency=rates.currency)


def estimate_training(
    work: Work, rates: Rates, measured: Timings | None = None
) -> TrainingEstimate:
    """Estimate a run to its limit, in steps or minutes, whichever comes first.

    What was measured goes before what the rates say.
    """
    train, times = work.recipe.train, measured or _timings(work, rates)
    step, save = times.step_seconds, times.save_seconds
    validation = times.validation_seconds + times.export_seconds
    limits = []
    if train.max_steps is not None:
        limits.append((train.max_steps, counted(train.max_steps, "step")))
    if train.max_minutes is not None:
        available = 60 * train.max_minutes - times.prepare_seconds
        most = range(1, 2 + max(0, int(available / step)))
        by_time = bisect(
            most,
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


def estimate_texts(
    work: Work, rates: Rates, *, per_month: float | None = None, measured: Timings | None = None
) -> TextEstimate:
    """Estimate a model at work in full batches; `per_month` is a traffic in tokens."""
    speed = None if measured is None else measured.tokens_per_second
    speed = _tokens_per_second(work, rates, work.beam_size) if speed is None else speed
    return TextEstimate(
        tokens_per_second=speed,
        million=bill_of(MILLION / speed, rates),
        month=None if per_month is None else bill_of(per_month / speed, rates),
    )


def full_batch(work: Work, beam_size: int) -> Shape:
    """Return the batch in which texts are read or answered; `length` is that of what is read."""
    rows = max(1, BATCH_TOKENS // (work.length * beam_size))
    return Shape(rows=rows, src_length=work.src_length, length=work.length)


def forward_flops(work: Work, rows: int) -> float:
    """Count one pass over texts of the work's length, with predictions at every position."""
    batch = Shape(rows=work.shape.rows, src_length=work.src_length, length=work.length)
    return rows * forward_pass(work.kind, work.config, batch).flops / batch.rows


# ---------------------------------------------------------------- training


def _timings(work: Work, rates: Rates) -> Timings:
    train = work.recipe.train
    flops = step_of(work, "fp32").flops
    passes = 4 if train.activation_checkpointing else 3
    started = passes * work.config.depth * rates.layer_seconds
    validation = forward_flops(work, VALIDATED) / rates.training
    if work.shape.src_length:  # its greedy translations are scored
        written = min(VALIDATED, train.validate_limit) * work.answer
        validation += written / _tokens_per_second(work, rates, 1)
    return Timings(
        step_seconds=train.accumulate * (flops / rates.training + started),
        step_tokens=work.step_tokens,
        prepare_seconds=0.0,
        validation_seconds=validation,
        save_seconds=3 * FLOAT * work.parameters / DISK,
        export_seconds=FLOAT * work.parameters / DISK,
        tokens_per_second=None,
        how=rates.how,
    )


# ---------------------------------------------------------------- at work


def _tokens_per_second(work: Work, rates: Rates, beam_size: int) -> float:
    """Tokens of all sentences of a full batch, by the time that it takes."""
    batch = full_batch(work, beam_size)
    started = work.config.depth * rates.layer_seconds
    if not work.answer:
        seconds = forward_flops(work, batch.rows) / rates.decoding + started
        return batch.tokens / seconds
    config = work.config
    cached = work.prompt + work.answer // 2
    one = decoding_step(config, batch, beam_size=beam_size, cached=cached)
    prefill = one.prefill / rates.decoding + started
    weights = count_parameters(config)["decoder"] + work.vocab_size * config.d_model
    reading = (FLOAT * weights + batch.rows * beam_size * one.read) / rates.reading
    step = one.flops / rates.decoding + reading + one.layers * rates.layer_seconds
    return batch.rows * work.answer / (prefill + work.answer * step)
