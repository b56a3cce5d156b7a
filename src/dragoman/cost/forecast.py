"""What `dragoman train` says before it begins: what a run, or the rest of one, will take."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.cost.check import check_batches, check_states, peak_memory
from dragoman.cost.estimate import estimate_training
from dragoman.cost.machine import find_rates, memory_limit
from dragoman.train.device import choose_device
from dragoman.train.job import Check
from dragoman.train.recipe import RunRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.wording import counted, format_bytes, format_energy, format_money, format_time

RecipeT = TypeVar("RecipeT", bound=RunRecipe)

LONG = 45 * 60.0
"""Seconds of a run above which a limit of its time is suggested."""


def forecast(recipe: RunRecipe) -> tuple[list[str], Check]:
    """Return what a run will take, in sentences, and what rejects batches that do not fit.

    Raises InputError for a model that cannot fit at all. Takes half a second. The recipe and its
    folder have been checked.
    """
    limit = memory_limit(choose_device(recipe.train.device))
    check_states(recipe, limit)
    done, rest = rest_of(recipe)
    work = rest.work()
    rates = find_rates(recipe.train)
    run = estimate_training(work, rates)
    bill, steps, planned = run.bill, run.steps, rest.train.max_steps
    figures = [f"until {run.limited_by}"]
    if bill is not None:
        figures = [f"about {format_time(bill.seconds)} for {counted(steps or 0, 'step')}"]
        figures += [] if bill.kwh is None else [format_energy(bill.kwh)]
        figures += [] if bill.money is None else [format_money(bill.money, bill.currency)]
    what = f"rest of the run (after step {done:,})" if done else "whole run"
    lines = [
        f"Estimate for the {what} on this machine: {', '.join(figures)}. Memory: "
        f"{format_bytes(peak_memory(work, rates.precision))} for weights, gradients, optimizer and "
        "activations; Python and PyTorch need about 0.5 GB more. For a closer estimate run "
        "dragoman cost with --measure."
    ]
    if bill is not None and bill.seconds > LONG and recipe.train.max_minutes is None:
        lines.append("Add train.max_minutes=30 to end after half an hour.")
    if recipe.planned_steps and bill and steps and planned and steps < planned:
        lines.append(
            f"train.max_minutes allows about {steps:,} of {planned:,} steps; all of them take "
            f"about {format_time(bill.seconds * planned / steps)}."
        )
    return lines, partial(check_batches, work, limit)


def rest_of(recipe: RecipeT) -> tuple[int, RecipeT]:
    """Return the step of the newest checkpoint of a run, and the recipe with what is left."""
    train, progress = recipe.train, RunFolder(Path(recipe.out)).progress
    steps, minutes = train.max_steps, train.max_minutes
    left = replace(
        train,
        max_steps=None if steps is None else max(1, steps - progress.step),
        max_minutes=None if minutes is None else max(0.1, minutes - progress.seconds / 60),
    )
    return progress.step, replace(recipe, train=left)
