"""`dragoman cost`: what a model takes before it is trained: arithmetic, memory, time, money."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.cost_show import show_cost
from dragoman.cli.output import option, print_items, to_json
from dragoman.cli.pipes import say, talk
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.cost.estimate import Timings
    from dragoman.train.recipe import RunRecipe, Work


def _check_positive(option: typer.CallbackParam, value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise InputError(f"{option.opts[0]} is {value:g}; it must be above 0")
    return value


def _positive(text: str) -> Any:  # noqa: ANN401 -- as typer's own
    """An option with this help whose value is a finite number above 0."""
    return typer.Option(help=text, callback=_check_positive)


def cost(  # noqa: PLR0913 -- the options of the verb
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE|PRESET|MODEL [KEY=VALUE ...]",
            help="A shipped recipe, a TOML file, a preset or a model folder, and settings that "
            "override its own; with --fit, the folders of runs.",
        ),
    ],
    *,
    device: Annotated[str | None, option("Device from the table; default: this machine.")] = None,
    devices: Annotated[Path | None, option("TOML file with devices of your own.")] = None,
    length: Annotated[int | None, _positive("Tokens per sentence and side; default: 30.")] = None,
    tokens_per_month: Annotated[float | None, _positive("Monthly traffic to estimate.")] = None,
    price: Annotated[
        float | None, _positive("Price per hour; default: the table's, in USD.")
    ] = None,
    kwh_price: Annotated[float | None, _positive("Price per kilowatt-hour.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time real steps on this machine (a minute).")
    ] = False,
    nproc: Annotated[
        list[int] | None, option("Number of devices that train together; may be repeated.")
    ] = None,
    link_gb: Annotated[
        float | None, _positive("With --nproc: 1e9 bytes a second from device to device.")
    ] = None,
    fit: Annotated[bool, typer.Option("--fit", help="Fit a scaling law to finished runs.")] = False,
    predict: Annotated[list[Path] | None, option("With --fit: run to predict.")] = None,
    flops: Annotated[float | None, _positive("With --fit: budget in training FLOPs.")] = None,
    minutes: Annotated[
        float | None, _positive("With --fit: budget in minutes of training.")
    ] = None,
    money: Annotated[float | None, _positive("With --fit: budget, at --price per hour.")] = None,
    png: Annotated[Path | None, option("With --fit: draw the law to this PNG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate what training and using a model takes; no weights are created.

    dragoman cost multi30k-en-de

    dragoman cost multi30k-en-de train.max_steps=20000 --measure

    dragoman cost base batch.max_tokens=25000 --device h100 --tokens-per-month 500e6

    dragoman cost big --device h100 --nproc 8 --nproc 64 --link-gb 50

    dragoman cost runs/en-zh --kwh-price 0.30 --json

    With --fit: a scaling law from runs, and the best size for a budget.

    dragoman cost --fit runs/sweep --predict runs/sweep/d64-4980 --minutes 60
    """
    budget = {"flops": flops, "minutes": minutes, "money": money}
    with_fit: dict[str, object] = {"predict": predict or None, "png": png, **budget}
    without_fit: dict[str, object] = {"device": device, "devices": devices, "nproc": nproc}
    without_fit |= {"length": length, "tokens_per_month": tokens_per_month, "kwh_price": kwh_price}
    without_fit |= {"measure": measure or None, "link_gb": link_gb}
    _check_options(without_fit if fit else with_fit, fit=fit)
    if fit:
        _fit(arguments, predict or (), {**budget, "price_per_hour": price}, png, as_json=as_json)
        return
    if measure and device is not None:
        raise InputError("--measure times this machine, and --device names another; give one")
    _check_several(nproc, link_gb)
    from dragoman.cost.machine import find_rates
    from dragoman.cost.report import among, cost_of

    name, recipe = _recipe_of(arguments)
    work = recipe.work(length)
    rates = find_rates(recipe.train, device, devices)
    paid = rates.priced(per_hour=price, per_kwh=kwh_price)
    measured = _measure(work) if measure else None
    found = cost_of(name, work, rates, paid=paid, per_month=tokens_per_month, measured=measured)
    found = among(found, work, nproc or (), 1e9 * (link_gb or 0.0))
    print_items([to_json(found)] if as_json else show_cost(found, work))


def _measure(work: "Work") -> "Timings":
    from dragoman.cost.measure import measure

    say("Timing real steps here; nothing is kept ...")
    return measure(work, talk())


def _fit(
    arguments: Sequence[str],
    predict: Sequence[Path],
    budget: Mapping[str, float | None],
    png: Path | None,
    *,
    as_json: bool,
) -> None:
    """Fit a law to the runs in these folders, print it, and draw it to `png` if given."""
    from dragoman.cli.cost_fit import plot_scaling, show_scaling
    from dragoman.cost.scaling_report import Budget, report_scaling

    spend = Budget(**budget)
    say("Fitting the law to the runs, and many times to resampled ones ...")
    report = report_scaling(list(map(Path, arguments)), predict=predict, budget=spend)
    if png is not None:
        plot_scaling(report, png)
    print_items([to_json(report.to_dict())] if as_json else show_scaling(report))


def _check_options(wrong: Mapping[str, object], *, fit: bool) -> None:
    """Raise InputError for the first of these options that is given."""
    for name, value in wrong.items():
        if value is not None:
            why = "has no meaning with --fit" if fit else "needs --fit and the folders of runs"
            raise InputError(f"--{name.replace('_', '-')} {why}")


def _check_several(nproc: Sequence[int] | None, link_gb: float | None) -> None:
    """Raise InputError where one of the options is missing or makes no sense."""
    if bool(nproc) != (link_gb is not None):
        raise InputError("--nproc and --link-gb belong together: give both, or neither")
    for count in nproc or ():
        if count < 1:
            raise InputError(f"--nproc is {count}; it must be 1 or more")


def _recipe_of(arguments: Sequence[str]) -> tuple[str, "RunRecipe"]:
    """Return the name and the recipe; say of one with a sweep that a single run is meant."""
    from dragoman.cost.recipes import find_recipe
    from dragoman.tasks.recipes import load_sweep

    names = [word for word in arguments if "=" not in word]
    overrides = [word for word in arguments if "=" in word]
    if len(names) != 1:
        raise InputError(
            f"one recipe, preset or model folder at a time, not {', '.join(names) or 'none'}; "
            "settings are written KEY=VALUE"
        )
    recipe = find_recipe(names[0], overrides)
    with suppress(InputError):  # a preset or a model folder, which has no sweep
        if runs := load_sweep(names[0]):
            say(
                f"{names[0]} describes {counted(len(runs), 'run')}; this is about one, the recipe "
                "without its grids. dragoman train says of each run what it takes."
            )
    return names[0], recipe
