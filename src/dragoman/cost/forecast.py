"""What a run will take, and whether it fits the memory, reported before it begins.

No random numbers are drawn here, so a run ends with the same bits with or without a forecast. A
GPU is not checked: its kernels keep less than a CPU's, and it reports an excess at once.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from dragoman.cost.counting import (
    FLOAT,
    TrainingMemory,
    peak_memory,
    step_of,
    translated_shape,
    validation_memory,
)
from dragoman.cost.estimate import estimate_training
from dragoman.cost.machine import counted_as, find_rates, memory_limit
from dragoman.data.batches import Stream
from dragoman.data.shape import Shape
from dragoman.errors import InputError
from dragoman.models import ModelConfig, count_parameters
from dragoman.train.device import STATE_BYTES, choose_device, choose_precision
from dragoman.train.job import Check
from dragoman.train.recipe import RunRecipe, Work
from dragoman.train.runfolder import RunFolder
from dragoman.wording import counted, format_bytes, format_energy, format_money, format_time

LONG = 45 * 60.0
"""Seconds of a run above which a time limit is suggested."""
ERROR = 0.9
"""A predicted peak may be a tenth too high: a smaller excess over the memory is not rejected."""
SAFE_MARGIN = 3
"""If this many times the expected peak fits, the batches of an epoch are not checked."""
LOOKED_AT = 2000
"""Number of validation batches whose size is checked."""
LEAST_SHARE = 0.01
"""If less than this share of a batch fits, no smaller batch is suggested."""

RecipeT = TypeVar("RecipeT", bound=RunRecipe)


def forecast(recipe: RunRecipe) -> tuple[list[str], Check]:
    """Return what a run will take, in sentences, and a check that rejects batches that do not fit.

    Raises InputError for a model that cannot fit at all.
    """
    limit = memory_limit(choose_device(recipe.train.device))
    check_states(recipe, limit)
    done, rest = rest_of(recipe)
    work = rest.work()
    rates = find_rates(recipe.train)
    run, train = estimate_training(work, rates), rest.train
    bill, steps = run.bill, run.steps or 0
    figures = [f"until {run.limited_by}"]
    if bill is not None:
        within = min(bill.seconds, 60 * (train.max_minutes or math.inf))
        figures = [f"about {format_time(within)} for {counted(steps, 'step')}"]
        if beyond := round(bill.seconds - within):
            figures.append(f"then {format_time(beyond)} to validate and save")
        figures += [] if bill.kwh is None else [format_energy(bill.kwh)]
        figures += [] if bill.money is None else [format_money(bill.money, bill.currency)]
    what = f"rest of the run (after step {done:,})" if done else "whole run"
    lines = [
        f"Estimate for the {what} on this machine: {', '.join(figures)}. Memory: "
        f"{format_bytes(peak_memory(work, rates.precision))} for weights, gradients, optimizer and "
        "activations; Python and PyTorch need about 0.5 GB more. Starting, reading the texts and "
        "the long answers of a model that has learnt little come on top; for a closer estimate run "
        "dragoman cost with --measure."
    ]
    if bill and bill.seconds > LONG and train.max_minutes is None:
        lines.append("Add train.max_minutes=30 to end after half an hour.")
    planned = train.max_steps if recipe.planned_steps else None
    if planned and steps < planned:
        free = replace(rest, train=replace(train, max_minutes=None)).work()
        every = estimate_training(free, rates).bill
        lines.append(
            f"train.max_minutes allows about {steps:,} of {planned:,} steps; all of them take "
            f"about {format_time(every.seconds if every else 0)}."
        )
    return lines, partial(check_batches, work, limit)


def rest_of(recipe: RecipeT) -> tuple[int, RecipeT]:
    """Return the step of a run's newest checkpoint, and the recipe for the rest."""
    train, progress = recipe.train, RunFolder(Path(recipe.out)).progress
    steps, minutes = train.max_steps, train.max_minutes
    left = replace(
        train,
        max_steps=None if steps is None else max(1, steps - progress.step),
        max_minutes=None if minutes is None else max(0.1, minutes - progress.seconds / 60),
    )
    return progress.step, replace(recipe, train=left)


# ---------------------------------------------------------------- what does not fit


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
        translated = translated_shape(lengths)
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
