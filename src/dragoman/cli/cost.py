"""`dragoman cost`: what a model takes before it is trained: arithmetic, memory, time, money."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.cost_fit import check_fit_options, fit_runs
from dragoman.cli.pipes import say, to_stdout
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.cost.machine import Rates
    from dragoman.cost.report import Cost
    from dragoman.tasks.work import Work


def _option(text: str) -> Any:  # noqa: ANN401 -- as typer's own
    return typer.Option(help=text)


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
    device: Annotated[str | None, _option("Device from the table; default: this machine.")] = None,
    devices: Annotated[Path | None, _option("TOML file with devices of your own.")] = None,
    length: Annotated[int | None, _option("Tokens per sentence and side; default: 30.")] = None,
    tokens_per_month: Annotated[float | None, _option("Monthly traffic to estimate.")] = None,
    price: Annotated[float | None, _option("Price per hour; default: the table's, in USD.")] = None,
    kwh_price: Annotated[float | None, _option("Price per kilowatt-hour.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time real steps on this machine (a minute).")
    ] = False,
    fit: Annotated[bool, typer.Option("--fit", help="Fit a scaling law to finished runs.")] = False,
    predict: Annotated[list[Path] | None, _option("With --fit: run to predict.")] = None,
    flops: Annotated[float | None, _option("With --fit: budget in training FLOPs.")] = None,
    minutes: Annotated[float | None, _option("With --fit: budget in minutes of training.")] = None,
    money: Annotated[float | None, _option("With --fit: budget, at --price per hour.")] = None,
    png: Annotated[Path | None, _option("With --fit: draw the law to this PNG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate what training and using a model takes; no weights are made.

    dragoman cost multi30k-en-de

    dragoman cost multi30k-en-de train.max_steps=20000 --measure

    dragoman cost base batch.max_tokens=25000 --device h100 --tokens-per-month 500e6

    dragoman cost runs/en-zh --kwh-price 0.30 --json

    With --fit: a scaling law from runs, and the best size for a budget.

    dragoman cost --fit runs/sweep --predict runs/sweep/d64-4980 --minutes 60
    """
    budget = {"flops": flops, "minutes": minutes, "money": money}
    check_fit_options(
        fit=fit,
        with_fit={"predict": predict or None, "png": png, **budget},
        without={
            "device": device,
            "devices": devices,
            "length": length,
            "tokens_per_month": tokens_per_month,
            "kwh_price": kwh_price,
            "measure": measure or None,
        },
    )
    if fit:
        fit_runs(
            [Path(argument) for argument in arguments],
            predict=predict or (),
            budget=budget | {"price_per_hour": price},
            png=png,
            as_json=as_json,
        )
        return
    asked = _Question(
        device=device,
        devices=devices,
        length=length,
        tokens_per_month=tokens_per_month,
        price=price,
        kwh_price=kwh_price,
        measure=measure,
    )
    _print(_ask(arguments, asked), as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """The options that are not about a fit."""

    device: str | None
    devices: Path | None
    length: int | None
    tokens_per_month: float | None
    price: float | None
    kwh_price: float | None
    measure: bool

    def __post_init__(self) -> None:
        for name in ("length", "tokens_per_month", "price", "kwh_price"):
            value: float | None = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"--{name.replace('_', '-')} is {value:g}; it must be above 0")
        if self.measure and self.device is not None:
            raise InputError("--measure times this machine, and --device names another; give one")


def _print(found: "Cost", *, as_json: bool) -> None:
    if as_json:
        with to_stdout() as write:
            write(json.dumps(found.to_dict(), ensure_ascii=False))
        return
    from dragoman.cli.cost_show import show_cost

    show_cost(found)


def _ask(arguments: Sequence[str], asked: _Question) -> "Cost":
    """Find the recipe and the device, and estimate."""
    from dragoman.cost.estimate import Prices
    from dragoman.cost.recipes import work_of
    from dragoman.cost.report import cost_of

    name, recipe = _recipe_of(arguments)
    work = work_of(recipe, asked.length)
    rates = _rates(work, asked.device, asked.devices)
    return cost_of(
        name,
        work,
        rates,
        prices=Prices(per_hour=asked.price, per_kwh=asked.kwh_price),
        per_month=asked.tokens_per_month,
        measured=_measure(work) if asked.measure else None,
    )


def _recipe_of(arguments: Sequence[str]) -> tuple[str, Any]:
    from dragoman.cost.recipes import find_recipe

    names = [word for word in arguments if "=" not in word]
    overrides = [word for word in arguments if "=" in word]
    if len(names) != 1:
        raise InputError(
            f"one recipe, preset or model folder at a time, not {', '.join(names) or 'none'}; "
            "settings are written KEY=VALUE"
        )
    recipe = find_recipe(names[0], overrides)
    _say_sweep(names[0])
    return names[0], recipe


def _say_sweep(name: str) -> None:
    """Say of a recipe with a sweep that one run is asked about, the one without its grids."""
    from dragoman.tasks.recipes import load_sweep

    with suppress(InputError):  # a preset or a model folder, which has no sweep
        if runs := load_sweep(name):
            say(
                f"{name} stands for {counted(len(runs), 'run')}; this is about one, the recipe "
                "without its grids. dragoman train says of each run what it takes."
            )


def _rates(work: "Work", device: str | None, devices: Path | None) -> "Rates":
    from dragoman.cost.devices import device_named, device_table
    from dragoman.cost.machine import rates_here, rates_of

    table = device_table(devices)
    train = work.recipe.train
    if device is None:
        return rates_here(table, train.precision, train.device)
    return rates_of(device_named(device, table), table, train.precision)


def _measure(work: "Work") -> Any:  # noqa: ANN401 (imported when needed)
    from dragoman.cli.pipes import talk
    from dragoman.cost.measure import measure

    console = talk()
    console.print("Timing real steps here; nothing is kept ...")
    return measure(work, console)
