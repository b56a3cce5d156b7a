"""What ``dragoman train`` says before it begins, and refuses."""

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.train.job import Check
    from dragoman.train.recipes.base import RunRecipe


def tell_estimate(recipe: "RunRecipe", console: "Console") -> "Check":
    """Say what a run will take, in two lines; gives what refuses its batches if they do not fit.

    Raises InputError for a model that cannot fit at all. Takes some tenths of a second.
    """
    from dragoman.cli.cost_show import bytes_said, energy_said, money_said, time_said
    from dragoman.cost.devices import device_table
    from dragoman.cost.estimate import Prices, estimate_training
    from dragoman.cost.estimate_machine import memory_limit, rates_here
    from dragoman.cost.estimate_recipe import work_of
    from dragoman.cost.estimate_train import check_batches, check_states, rough_peak
    from dragoman.train.device import choose_device
    from dragoman.train.runfolder import check_out
    from dragoman.train.start import check_start
    from dragoman.wording import counted

    limit = memory_limit(choose_device(recipe.train.device))
    check_states(recipe, limit)
    check_out(recipe)  # nothing is foretold of a run that cannot begin
    recipe.data.check()
    check_start(recipe)
    work = work_of(recipe)
    rates = rates_here(device_table(), recipe.train.precision, recipe.train.device)
    run = estimate_training(work, rates, Prices())
    if run.bill is None:
        took = f"it ends by {run.limited_by}"
    else:
        took = f"about {time_said(run.bill.seconds)} for {counted(run.steps or 0, 'step')}"
    said = [took, f"{bytes_said(rough_peak(work, rates.precision))} of memory at its peak"]
    if run.bill is not None and run.bill.kwh is not None:
        said.append(energy_said(run.bill.kwh))
    if run.bill is not None and run.bill.money is not None:
        said.append(money_said(run.bill.money, run.bill.currency))
    console.print(
        f"Estimate, the whole run here: {', '.join(said)}. dragoman cost says how, and with "
        "--measure more exactly.",
        markup=False,
    )
    return partial(check_batches, work, limit)
