"""What a run will take, and whether it fits the memory, reported before it begins.

No random numbers are drawn here, so a run ends with the same bits with or without a forecast.
"""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.cost.estimate import estimate_training
from dragoman.cost.machine import find_rates, memory_limit
from dragoman.cost.memory import check_batches, check_states, peak_memory
from dragoman.train.device import choose_device
from dragoman.train.job import Check
from dragoman.train.recipe import RunRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.wording import counted, format_bytes, format_energy, format_money, format_time

LONG = 45 * 60.0
"""Seconds of a run above which a time limit is suggested."""

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
