"""`dragoman cost`: what a model takes before it is trained: arithmetic, memory, time, money."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.cost_show import show_cost
from dragoman.cli.data import with_corpus
from dragoman.cli.options import names_and_settings, with_options
from dragoman.cli.output import option, print_found
from dragoman.cli.pipes import say, talk
from dragoman.cli.train import of_files, with_settings
from dragoman.corpus.config import PairFiles
from dragoman.cost.options import CostOptions
from dragoman.errors import InputError
from dragoman.wording import counted


@with_corpus
@with_options("asked", CostOptions())
def cost(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE|PRESET|MODEL] [KEY=VALUE ...]",
            help="A shipped recipe, a TOML file, a preset or a model folder, and settings that "
            "override its own; with --fit, the folders of runs.",
        ),
    ] = None,
    *,
    files: PairFiles,
    asked: CostOptions,
    as_json: Annotated[bool, option("Print one JSON object.", "--json")] = False,
) -> None:
    """Estimate what training and using a model takes; no weights are created.

    dragoman cost multi30k-en-de

    dragoman cost multi30k-en-de train.max_steps=20000 --measure

    dragoman cost base batch.max_tokens=25000 --device h100 --tokens-per-month 500e6

    dragoman cost big --device h100 --nproc 8 --nproc 64 --link-gb 50

    dragoman cost --src a.en --tgt a.zh

    dragoman cost runs/en-zh --kwh-price 0.30 --json

    With --fit: a scaling law from runs, and the best size for a budget.

    dragoman cost --fit runs/sweep --predict runs/sweep/d64-4980 --minutes 60
    """
    names, overrides = names_and_settings(arguments)
    options = of_files(files)
    if asked.fit:
        words = [*overrides, *(name for name, (_, value) in options.items() if value is not None)]
        if words:
            raise InputError(f"{words[0]} has no meaning with --fit")
        from dragoman.cli.cost_fit import plot_scaling, show_scaling
        from dragoman.cost.scaling_report import report_scaling

        say("Fitting the law to the runs, and many times to resampled ones ...")
        report = report_scaling([*map(Path, names)], asked)
        if asked.png is not None:
            plot_scaling(report, asked.png)
        print_found(report, show_scaling(report), as_json=as_json)
        return
    overrides = with_settings(overrides, options)
    from dragoman.cost.machine import find_rates
    from dragoman.cost.recipes import find_one
    from dragoman.cost.report import cost_of

    name, recipe, runs = find_one(names, overrides)
    if not names:
        say(recipe.description)
    if runs:
        say(
            f"{name} describes {counted(runs, 'run')}; this is about one, the recipe "
            "without its grids. dragoman train says of each run what it takes."
        )
    work, measured = recipe.work(asked.length), None
    rates = find_rates(recipe.train, asked.device, asked.devices)
    if asked.measure:
        from dragoman.cost.measure import measure

        say("Timing real steps here; nothing is kept ...")
        measured = measure(work, talk())
    found = cost_of(name, work, rates, asked, measured)
    print_found(found, show_cost(found, work), as_json=as_json)
