"""The peak memory of training, validation and decoding, and whether that much is available.

A GPU is not checked: its kernels keep less than a CPU's, and it reports an excess at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import Any

from dragoman.cost.counting import (
    FLOAT,
    MOMENTS,
    DecodingMemory,
    TrainingMemory,
    decoding_memory,
    decoding_step,
    forward_pass,
    step_of,
)
from dragoman.cost.estimate import BATCH_TOKENS, VALIDATED, full_batch
from dragoman.cost.machine import Rates, counted_as
from dragoman.data.batches import Stream
from dragoman.data.shape import Shape
from dragoman.decode import schedule
from dragoman.decoding import TRANSLATING
from dragoman.errors import InputError
from dragoman.models import ModelConfig, count_parameters
from dragoman.nn import Precision
from dragoman.train.device import STATE_BYTES, choose_device, choose_precision
from dragoman.train.recipe import RunRecipe, Work
from dragoman.wording import counted, format_bytes

ENOUGH_TOKENS = 4096
"""Tokens of a batch above which memory grows by the activations of each further row."""
SPARE = 0.98
"""Share of the memory that the largest batch may use: the line is not quite straight."""
ERROR = 0.9
"""A predicted peak may be a tenth too high: a smaller excess over the memory is not rejected."""
SAFE_MARGIN = 3
"""If this many times the expected peak fits, the batches of an epoch are not checked."""
LOOKED_AT = 2000
"""Number of validation batches whose size is checked."""
LEAST_SHARE = 0.01
"""If less than this share of a batch fits, no smaller batch is suggested."""


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


def peak_memory(work: Work, precision: Precision) -> int:
    """Return the larger of the peaks of a training step and of a validation, in bytes."""
    return max(step_of(work, precision).memory.total, validation_memory(work, precision))


def validation_memory(
    work: Work,
    precision: Precision,
    shape: Shape | None = None,
    lengths: Sequence[int] | None = None,
) -> int:
    """Return the peak of a validation between two steps.

    It computes the loss of a batch of this shape, and translates sources of these lengths greedily
    in float32; by default, a batch of the work's shape, and texts of its length.
    """
    if lengths is None:
        sources = min(VALIDATED, work.recipe.train.validate_limit) if work.src_length else 0
        lengths = [work.length] * sources
    peak = forward_pass(work.kind, work.config, shape or work.shape, precision=precision).peak
    if translated := _translated_shape(work, lengths):
        found = decoding_memory(work.config, translated)
        logits = FLOAT * translated.rows * work.vocab_size
        kept = found.weights + found.packed + found.cache + found.memory
        peak = max(peak, found.total, kept + 2 * logits)
    return peak + MOMENTS * FLOAT * work.parameters


def _translated_shape(work: Work, lengths: Sequence[int]) -> Shape | None:
    """Return the batch that needs most while a validation translates sources of these lengths.

    Each translation reaches its limit, since an untrained model does not end a sentence; the row of
    a finished one stays. None if nothing is translated.
    """
    lengths = [min(length, TRANSLATING.max_src_tokens) for length in lengths]
    factor, constant = TRANSLATING.max_length_factor, TRANSLATING.max_length_constant
    longest = ((len(batch), lengths[batch[0]]) for batch in schedule(lengths, BATCH_TOKENS))
    shapes = (
        Shape(rows=rows, src_length=length + 1, length=int(factor * length) + constant)
        for rows, length in longest
    )

    def size(shape: Shape) -> int:
        """Estimate the bytes of keys, values and logits."""
        one = Shape(rows=1, src_length=shape.src_length, length=1)
        read = decoding_step(work.config, one, cached=shape.length).read
        return shape.rows * (read + 4 * FLOAT * work.vocab_size)

    return max(shapes, key=size, default=None)


# ---------------------------------------------------------------- before a run begins


def check_states(recipe: RunRecipe, limit: int | None) -> None:
    """Raise InputError if weights, gradients and moments alone exceed the `memory_limit`.

    Called before anything is read, when the vocabulary size is unknown: only layers are counted.
    """
    parts = count_parameters(recipe.work().config)
    parameters = parts.get("encoder", 0) + parts.get("decoder", 0)
    frozen = recipe.start.freeze or recipe.start.lora.rank
    averaged = FLOAT if recipe.train.ema is not None else 0
    needed = parameters * (FLOAT if frozen else STATE_BYTES + averaged)
    if limit is not None and needed > limit:
        raise InputError(
            f"the run needs at least {format_bytes(needed)} for the weights, gradients and moments "
            f"of {parameters:,} parameters, and there are {format_bytes(limit)} of memory: make "
            "model.d_model, model.d_ff or the number of layers smaller"
        )


def check_batches(
    work: Work,
    limit: int | None,
    config: ModelConfig,
    batches: Stream[Any],
    validation: Iterable[Any],
) -> None:
    """Raise InputError if a step or a validation needs more memory than a CPU has.

    The largest batches are dry-run, unless usual ones need far less than the memory.
    """
    recipe, train = work.recipe, work.recipe.train
    device = choose_device(train.device)
    if limit is None or device.type != "cpu" or recipe.start.freeze or recipe.start.lora.rank:
        return
    precision = counted_as(choose_precision(train.precision, device))
    shapes, lengths = list[Shape](), list[int]()
    for batch in islice(validation, LOOKED_AT):
        shapes.append(batch.shape)
        lengths += batch.source_lengths(config.pad_id, train.validate_limit)
    # a batch may need more than the usual one: scores grow with tokens and length
    longest = max([work.longest, *(max(each.length, each.src_length) for each in shapes)])
    tokens = max([work.shape.tokens, *(each.tokens for each in shapes)])
    growth = max(1.0, longest / work.shape.length) * tokens / work.shape.tokens
    if SAFE_MARGIN * growth * peak_memory(work, precision) < limit:
        return
    real = replace(recipe, model=config).work(work.length)
    shape = max(
        (batch.shape for batch in batches.largest()), key=attrgetter("tokens"), default=work.shape
    )
    peak = step_of(real, precision, shape=shape).memory
    if ERROR * peak.total > limit:
        raise InputError(_too_large(recipe, shape, peak, limit))
    if not shapes:
        return
    validated = max(shapes, key=attrgetter("tokens"))
    needed = validation_memory(real, precision, validated, lengths)
    if ERROR * needed > limit:
        translated = _translated_shape(real, lengths)
        raise InputError(_validation_too_large(validated, translated, needed, limit))


def _too_large(recipe: RunRecipe, shape: Shape, peak: TrainingMemory, limit: int) -> str:
    states = peak.weights + peak.optimizer
    rest = peak.total - states
    source = f"{shape.src_length:,} and " if shape.src_length else ""
    lengths = source + counted(shape.length, "token")
    begun = (
        f"a batch of {counted(shape.rows, 'row')} of {lengths} needs {format_bytes(peak.total)} at "
        f"its peak ({format_bytes(states)} of weights and moments, {format_bytes(rest)} "
        f"of activations and gradients), and there are {format_bytes(limit)} of memory"
    )
    share = (limit - states) / rest
    if share < LEAST_SHARE:
        return f"{begun}: make model.d_model, model.d_ff or the number of layers smaller"
    spare = ", or train.activation_checkpointing = true, which keeps less and takes longer"
    return (
        f"{begun}: set {recipe.smaller_batch(shape, share)}"
        f"{'' if recipe.train.activation_checkpointing else spare}; "
        "train.accumulate makes up for smaller batches"
    )


def _validation_too_large(
    validated: Shape, translated: Shape | None, needed: int, limit: int
) -> str:
    what, less = "", ""
    if translated is not None:
        sentences = counted(translated.rows, "sentence")
        what = f", and translates {sentences} of up to {translated.src_length:,} tokens at once"
        less = ", train.validate_limit or tokenizer.vocab_size"
    return (
        f"a validation needs {format_bytes(needed)} at its peak (it computes the loss of "
        f"{counted(validated.rows, 'row')} of {counted(validated.length, 'token')} at once{what}), "
        f"and there are {format_bytes(limit)} of memory: lower batch.max_tokens{less}, shorten the "
        "longest validation texts, or make the model smaller"
    )
