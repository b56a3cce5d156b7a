"""`dragoman train`: from texts to a model folder."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dragoman.cli.output import SrcLang, TgtLang
from dragoman.errors import InputError
from dragoman.wording import counted, format_bytes, format_energy, format_money, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.train.job import Check
    from dragoman.train.recipe import RunRecipe
    from dragoman.train.trainer import TrainResult

RecipeT = TypeVar("RecipeT", bound="RunRecipe")

LONG = 45 * 60.0
"""Seconds of a run above which a limit of its time is suggested."""
INTERRUPTED = 130


def train(  # noqa: PLR0913 -- the options of the verb
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE] [KEY=VALUE ...]",
            help="A shipped recipe or a TOML file, and settings that override its own.",
        ),
    ] = None,
    *,
    src: Annotated[Path | None, typer.Option(help="Source sentences, one per line.")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target sentences, one per line.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run, which becomes the model folder.")
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="Model folder to fine-tune.")] = None,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    nproc: Annotated[int, typer.Option(help="Number of processes that train, one per GPU.")] = 1,
    max_restarts: Annotated[
        int, typer.Option(help="Number of restarts after a process is killed.")
    ] = 0,
) -> None:
    """Train a model, or resume the unfinished run in its folder.

    dragoman train multi30k-en-de out=runs/en-de train.max_minutes=45

    dragoman train sst2 --out runs/sst2

    dragoman train --src a.en --tgt a.zh --out runs/en-zh

    dragoman train --from runs/en-zh --src b.en --tgt b.zh --out runs/en-zh-news

    dragoman train scaling-sweep --out runs/sweep

    dragoman train multi30k-en-de --out runs/en-de --nproc 8 --max-restarts 3
    """
    from dragoman.cli.pipes import talk
    from dragoman.train.parallel import launched

    words = arguments or []
    names = [word for word in words if "=" not in word]
    overrides = [word for word in words if "=" in word]
    console = talk()
    options = {
        "--out": ("out", out),
        "--from": ("start.model", start),
        "--src": ("data.src", src),
        "--tgt": ("data.tgt", tgt),
        "--src-lang": ("data.src_lang", src_lang),
        "--tgt-lang": ("data.tgt_lang", tgt_lang),
    }
    _lay_over(overrides, options)
    recipe, runs = _choose(names, overrides)
    if nproc != 1 or max_restarts:
        from dragoman.train.launch import launch

        quiet = ["--quiet"] if sys.stderr is None else []
        command = [*quiet, "train", "--", *names, *overrides]
        raise typer.Exit(launch(nproc, command, max_restarts=max_restarts, say=console.print))
    console.quiet = launched()[0] > 0  # rank 0 speaks for all
    if recipe.description:
        console.print(recipe.description)
    if recipe.expect:
        console.print(f"To expect: {recipe.expect}")
    if runs:
        _run_sweep(runs, console)
        return
    result = _run(recipe, console)
    use = _use(recipe, result.folder)
    console.print(
        f"The model is in {result.folder}. Next:\n{use}\ndragoman inspect {result.folder}"
    )


def _use(recipe: "RunRecipe", folder: Path) -> str:
    """Return the command that the trained model is for."""
    from dragoman.tasks.task import find_task

    return (recipe.use or find_task(recipe.task).use).format(folder=folder)


def _lay_over(overrides: list[str], options: Mapping[str, tuple[str, Path | str | None]]) -> None:
    """Add the options to the overrides. Raises InputError for a setting given by both."""
    given = {word.partition("=")[0].strip(): word for word in overrides}
    for option, (key, value) in options.items():
        if value is not None:
            if word := given.get(key):
                raise InputError(f"{option} {value} and {word} set the same key; give one of them")
            overrides.append(f"{key}={value}")


def _run(recipe: "RunRecipe", console: "Console") -> "TrainResult":
    """Run a recipe, its estimate first; ends the command where the run was interrupted."""
    from dragoman.tasks.task import train as train_task

    estimate = partial(print_estimate, recipe, console)
    result = train_task(recipe, console=console, estimate=estimate)
    if result.interrupted:
        console.print(
            f"Saved at step {result.progress.step:,}. The same command resumes from there."
        )
        if (result.folder / "config.json").exists():
            use = _use(recipe, result.folder)
            console.print(f"The best model so far can be used already:\n{use}")
        raise typer.Exit(INTERRUPTED)
    if more := result.progress.minutes_needed(recipe):
        console.print(
            f"The time was up after {result.progress.step:,} of {recipe.train.max_steps:,} steps. "
            f"To continue, run the same command with train.max_minutes={more}.",
            markup=False,
        )
    return result


def _run_sweep(runs: Sequence["RunRecipe"], console: "Console") -> None:
    """Run one after the other those that are not finished yet."""
    from dragoman.train.runfolder import RunFolder

    for number, run in enumerate(runs, start=1):
        console.print(f"\nRun {number} of {len(runs)}: {run.out}")
        if RunFolder(Path(run.out)).is_finished(run):
            console.print("It is finished.")
        else:
            _run(run, console)
    folder = Path(runs[0].out).parent
    console.print(f"\nThe runs are in {folder}. Next:\ndragoman cost --fit {folder}")


def _choose(
    names: Sequence[str], overrides: Sequence[str]
) -> tuple["RunRecipe", Sequence["RunRecipe"]]:
    """Find the recipe with the runs of its sweep, if it has one, or choose one from two files."""
    from dragoman.settings import override_settings
    from dragoman.tasks.recipes import build_recipe, build_sweep, read_recipe
    from dragoman.tasks.translate.auto import auto_recipe
    from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
    from dragoman.train.start import begun_recipe

    texts = [name for name in names if Path(name).is_file() and not name.endswith(".toml")]
    if texts:
        one, other = texts if len(texts) == 2 else ("FILE", "FILE")
        raise InputError(
            f"{' and '.join(texts)}: not a recipe (its name must end in .toml); to learn from text "
            f"files give --src {one} --tgt {other} --out DIR"
        )
    if len(names) > 1:
        raise InputError(
            f"one recipe at a time, not {', '.join(names)}; settings are written KEY=VALUE"
        )
    if names:
        read = read_recipe(names[0], overrides)
        return build_recipe(read), build_sweep(read)
    defaults = TranslateRecipe(data=DataConfig())
    keys = ("data.", "start.", "out")  # the others lie over what is chosen
    given = override_settings(defaults, [word for word in overrides if word.startswith(keys)])
    data, start = given.data, given.start.model
    if (data.src is None) != (data.tgt is None):
        side = "--tgt" if data.tgt is None else "--src"
        raise InputError(
            f"{side} is missing: give the file with the translations of {data.src or data.tgt}"
        )
    if not data.named:
        override_settings(defaults, overrides)  # rejects unknown keys
        raise InputError(
            "there is nothing to train: give a recipe (dragoman train multi30k-en-de), or --src "
            "and --tgt with --out"
        )
    if start and not Path(start).exists() and (begun := begun_recipe(defaults, given.out)):
        return override_settings(begun, overrides), ()
    recipe = auto_recipe(data, "", start, adapters=given.start.lora.rank is not None)
    return override_settings(recipe, overrides), ()


# ---------------------------------------------------------------- before a run begins


def print_estimate(recipe: "RunRecipe", console: "Console") -> "Check":
    """Print what a run, or the rest of one, will take; return what rejects batches that do not fit.

    Raises InputError for a model that cannot fit at all. Takes half a second. The recipe and its
    folder have been checked.
    """
    from dragoman.cost.check import check_batches, check_states, peak_memory
    from dragoman.cost.estimate import estimate_training
    from dragoman.cost.machine import find_rates, memory_limit
    from dragoman.train.device import choose_device

    limit = memory_limit(choose_device(recipe.train.device))
    check_states(recipe, limit)
    done, rest = rest_of(recipe)
    work = rest.work()
    rates = find_rates(recipe.train)
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
    steps, planned = run.steps, rest.train.max_steps
    if recipe.planned_steps and bill and steps and planned and steps < planned:
        console.print(
            f"train.max_minutes allows about {steps:,} of {planned:,} steps; all of them take "
            f"about {format_time(bill.seconds * planned / steps)}.",
            markup=False,
        )
    return partial(check_batches, work, limit)


def rest_of(recipe: RecipeT) -> tuple[int, RecipeT]:
    """The step of the newest checkpoint in the run's folder, and the recipe with what is left."""
    from dragoman.train.checkpoint import checkpoints, read_state
    from dragoman.train.progress import Progress
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
