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

from dataclasses import dataclass
from typing import Any

from dragoman.cost.counting import forward_pass, step_of
from dragoman.cost.decoding import cache_bytes, decoder_patterns, decoding_flops
from dragoman.cost.machine import Rates
from dragoman.cost.recipes import workload_of
from dragoman.models import count_parameters
from dragoman.tasks.work import Shape, Work
from dragoman.wording import counted

__all__ = [
    "BATCH_TOKENS",
    "Bill",
    "Measured",
    "Prices",
    "TextEstimate",
    "TrainingEstimate",
    "bill_of",
    "estimate_texts",
    "estimate_training",
    "forward_flops",
    "full_batch",
]

BATCH_TOKENS = 8192
"""Source tokens of a batch that is translated, times beams; as translating itself has it."""
VALIDATED = 1000
"""Sentences of a validation, where the data has not been looked at."""
DISK = 500e6
"""Bytes a second at which checkpoints reach the disk, where it was not measured; assumed."""
FLOAT = 4
MILLION = 1e6
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What an hour and a kilowatt-hour cost, in one currency."""

    per_hour: float | None = None
    """Rent of the device for an hour."""
    per_kwh: float | None = None
    """Electricity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What something takes."""

    seconds: float
    """Time."""
    kwh: float | None
    """Energy, where the device's power is known."""
    money: float | None
    """Rent and electricity, where a price is known."""
    currency: str | None = None
    """Of the money; None for that of the user's own prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was timed here: it goes before everything that would be computed."""

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
    """A run of training."""

    steps: int | None
    """Steps until the run's limit; None where only patience ends it."""
    tokens: int | None
    """Tokens of all steps."""
    step_seconds: float
    """A step."""
    validations: int
    """How often it validates."""
    saves: int
    """How often it writes a checkpoint."""
    beside_seconds: float
    """Preparing, validating, saving."""
    limited_by: str
    """What ends the run."""
    bill: Bill | None
    """The whole run; None where only patience ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEstimate:
    """A model at work: an encoder reads texts, the others write tokens."""

    tokens_per_second: float
    """Tokens that are written (or read, by an encoder) in full batches."""
    million: Bill
    """A million of them."""
    month: Bill | None = None
    """The stated traffic of a month."""


def bill_of(seconds: float, rates: Rates, prices: Prices) -> Bill:
    """Return what a time on a device takes; a price that is given goes before the table's.

    A price of electricity without one of an hour means a device of one's own, which has no rent.
    """
    kwh = None if rates.watts is None else rates.watts * seconds / HOUR / 1000
    per_kwh = rates.price_per_kwh if prices.per_kwh is None else prices.per_kwh
    rent = rates.price_per_hour if prices.per_kwh is None else None
    rent = rent if prices.per_hour is None else prices.per_hour
    costs = [] if rent is None else [rent * seconds / HOUR]
    if per_kwh is not None and kwh is not None:
        costs.append(per_kwh * kwh)
    own = prices.per_hour is not None or prices.per_kwh is not None
    return Bill(
        seconds=seconds,
        kwh=kwh,
        money=sum(costs) if costs else None,
        currency=None if own else rates.currency,
    )


def estimate_training(
    work: Work, rates: Rates, prices: Prices, measured: Measured | None = None
) -> TrainingEstimate:
    """Estimate a run to its limit, in steps or minutes, whichever comes first."""
    train = work.recipe.train
    step = _step_seconds(work, rates) if measured is None else measured.step_seconds
    tokens = work.step_tokens if measured is None else measured.step_tokens
    validation, save = _beside_seconds(work, rates, measured)
    prepare = 0.0 if measured is None else measured.prepare_seconds
    limits = (
        [] if train.max_steps is None else [(train.max_steps, counted(train.max_steps, "step"))]
    )
    if train.max_minutes is not None:
        each = step + validation / train.validate_every + save / train.save_every
        by_time = max(1, round((60 * train.max_minutes - prepare) / each))
        limits.append((by_time, counted(float(train.max_minutes), "minute")))
    if not limits:
        return TrainingEstimate(
            steps=None,
            tokens=None,
            step_seconds=step,
            validations=0,
            saves=0,
            beside_seconds=0.0,
            limited_by=f"{counted(train.patience or 0, 'validation')} without a better one",
            bill=None,
        )
    steps, limited_by = min(limits)
    validations, saves = -(-steps // train.validate_every), -(-steps // train.save_every)
    averaging = validation if train.average_last > 1 and saves > 1 else 0.0
    beside = prepare + validations * validation + saves * save + averaging
    return TrainingEstimate(
        steps=steps,
        tokens=round(steps * tokens),
        step_seconds=step,
        validations=validations,
        saves=saves,
        beside_seconds=beside,
        limited_by=limited_by,
        bill=bill_of(steps * step + beside, rates, prices),
    )


def estimate_texts(
    work: Work,
    rates: Rates,
    prices: Prices,
    *,
    per_month: float | None = None,
    measured: Measured | None = None,
) -> TextEstimate:
    """Estimate a model at work in full batches; `per_month` is a traffic in tokens."""
    speed = None if measured is None else measured.tokens_per_second
    if speed is None:
        speed = _tokens_per_second(work, rates, work.beam_size)
    month = None if per_month is None else bill_of(per_month / speed, rates, prices)
    return TextEstimate(
        tokens_per_second=speed, million=bill_of(MILLION / speed, rates, prices), month=month
    )


def full_batch(work: Work, beam_size: int) -> Shape:
    """Return the batch in which texts are read or answered; `length` is that of what is read."""
    rows = max(1, BATCH_TOKENS // (work.length * beam_size))
    source = work.length if work.shape.src_length else 0
    return Shape(rows=rows, src_length=source, length=work.length)


def forward_flops(work: Work, rows: int) -> float:
    """Count one pass over texts of the work's length, with predictions at every position."""
    batch = Shape(
        rows=work.shape.rows,
        src_length=work.length if work.shape.src_length else 0,
        length=work.length,
    )
    return rows * forward_pass(workload_of(work.recipe), work.config, batch).flops / batch.rows


# ---------------------------------------------------------------- training


def _step_seconds(work: Work, rates: Rates) -> float:
    train = work.recipe.train
    flops = step_of(work, "fp32").flops.total
    passes = 4 if train.activation_checkpointing else 3
    started = passes * work.config.depth * rates.layer_seconds
    return train.accumulate * (flops / rates.training + started)


def _beside_seconds(work: Work, rates: Rates, measured: Measured | None) -> tuple[float, float]:
    """A validation with the model folder that it may write, and a checkpoint."""
    if measured is not None:
        return measured.validation_seconds + measured.export_seconds, measured.save_seconds
    parameters = sum(count_parameters(work.config).values())
    seconds = forward_flops(work, VALIDATED) / rates.training
    if work.shape.src_length:  # its greedy translations are scored
        written = min(VALIDATED, work.recipe.train.validate_limit) * work.answer
        seconds += written / _tokens_per_second(work, rates, 1)
    export, save = FLOAT * parameters / DISK, 3 * FLOAT * parameters / DISK
    return seconds + export, save


# ---------------------------------------------------------------- at work


def _tokens_per_second(work: Work, rates: Rates, beam_size: int) -> float:
    """Tokens of all sentences of a full batch, by the time that it takes."""
    batch = full_batch(work, beam_size)
    started = work.config.depth * rates.layer_seconds
    if not work.answer:
        seconds = forward_flops(work, batch.rows) / rates.decoding + started
        return batch.tokens / seconds
    config: Any = work.config  # of a model that writes
    cached = work.answer // 2 + (0 if batch.src_length else work.length)
    flops = decoding_flops(config, batch, beam_size=beam_size, cached=cached)
    prefill = flops.prefill / rates.decoding + started
    each = cache_bytes(config, src_length=batch.src_length, length=cached, precision="fp32")
    reading = (_read_each_step(work) + batch.rows * beam_size * each) / rates.reading
    starting = len(decoder_patterns(config)) * rates.layer_seconds
    step = flops.step / rates.decoding + reading + starting
    return batch.rows * work.answer / (prefill + work.answer * step)


def _read_each_step(work: Work) -> int:
    """Bytes of weights that a step of decoding reads: the decoder and the output matrix."""
    decoder = count_parameters(work.config)["decoder"]
    return FLOAT * (decoder + work.vocab_size * work.config.d_model)
