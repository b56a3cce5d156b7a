"""What `dragoman train` prints before it begins, and rejects."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dragoman.cli.cost_show import format_bytes, format_energy, format_money, format_time
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.train.job import Check
    from dragoman.train.recipe import RunRecipe

RecipeT = TypeVar("RecipeT", bound="RunRecipe")

LONG = 45 * 60.0
"""Seconds of a run above which a limit of its time is suggested."""


def print_estimate(recipe: "RunRecipe", console: "Console") -> "Check":
    """Print what a run, or the rest of one, will take; return what rejects batches that do not fit.

    Raises InputError for a model that cannot fit at all. Takes half a second. The recipe and its
    folder have been checked.
    """
    from dragoman.cost.check import check_batches, check_states, peak_memory
    from dragoman.cost.devices import device_table
    from dragoman.cost.estimate import estimate_training
    from dragoman.cost.machine import memory_limit, rates_here
    from dragoman.cost.recipes import work_of
    from dragoman.train.device import choose_device

    limit = memory_limit(choose_device(recipe.train.device))
    check_states(recipe, limit)
    done, rest = rest_of(recipe)
    work = work_of(rest)
    rates = rates_here(device_table(), recipe.train.precision, recipe.train.device)
    run = estimate_training(work, rates)
    bill = run.bill
    what = f"rest of the run (after step {done:,})" if done else "whole run"
    figures = [f"until {run.limited_by}"]
    if bill is not None:
        figures = [f"about {format_time(bill.seconds)} for {counted(run.steps or 0, 'step')}"]
        figures += [] if bill.kwh is None else [format_energy(bill.kwh)]
        figures += [] if bill.money is None else [format_money(bill.money, bill.currency)]
    console.print(
        f"Estimate for the {what} on this machine: {', '.join(figures)}. Memory: "
        f"{format_bytes(peak_memory(work, rates.precision))} for weights, gradients, optimizer and "
        "activations; Python and PyTorch need about 0.5 GB more. For a closer estimate run "
        "dragoman cost with --measure.",
        markup=False,
    )
    if bill is not None and bill.seconds > LONG and recipe.train.max_minutes is None:
        console.print("Add train.max_minutes=30 to end after half an hour.", markup=False)
    return partial(check_batches, work, limit)


def rest_of(recipe: RecipeT) -> tuple[int, RecipeT]:
    """The step of the newest checkpoint in the run's folder, and the recipe with what is left."""
    from dragoman.train.checkpoint import checkpoints, read_state
    from dragoman.train.loop import Progress
    from dragoman.train.runfolder import RunFolder

    train, progress = recipe.train, Progress()
    with suppress(IndexError, InputError):  # a damaged one is reported when it is loaded
        progress = read_state(checkpoints(RunFolder(Path(recipe.out)).checkpoints)[-1]).progress
    steps, minutes = train.max_steps, train.max_minutes
    left = replace(
        train,
        max_steps=None if steps is None else max(1, steps - progress.step),
        max_minutes=None if minutes is None else max(0.1, minutes - progress.seconds / 60),
    )
    return progress.step, replace(recipe, train=left)
