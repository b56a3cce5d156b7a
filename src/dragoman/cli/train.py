"""`dragoman train`: from texts to a model folder."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.main import INTERRUPTED
from dragoman.cli.options import names_and_settings, with_options
from dragoman.cli.pipes import talk
from dragoman.corpus.config import PairFiles
from dragoman.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.train.job import Check
    from dragoman.train.recipe import RunRecipe

DATA = ("src", "tgt", "tm", "src_lang", "tgt_lang")
"""Settings of `data` that have an option."""


@with_options("files", PairFiles(), only=DATA)
def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE] [KEY=VALUE ...]",
            help="A shipped recipe or a TOML file, and settings that override its own.",
        ),
    ] = None,
    *,
    files: PairFiles,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run, which becomes the model folder.")
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="Model folder to fine-tune.")] = None,
    nproc: Annotated[int, typer.Option(help="Number of processes that train, one per GPU.")] = 1,
    max_restarts: Annotated[
        int, typer.Option(help="Number of restarts after a process is killed.")
    ] = 0,
) -> None:
    """Train a model, or resume the unfinished run in its folder.

    dragoman train multi30k-en-de out=runs/en-de train.max_minutes=45

    dragoman train sst2 --out runs/sst2

    dragoman train --src a.en --tgt a.zh --out runs/en-zh

    dragoman train --tm memory.tmx --src-lang en --tgt-lang de --out runs/en-de

    dragoman train --from runs/en-zh --src b.en --tgt b.zh --out runs/en-zh-news

    dragoman train scaling-sweep --out runs/sweep

    dragoman train multi30k-en-de --out runs/en-de --nproc 8 --max-restarts 3
    """
    from dragoman.tasks.recipes import find_runs
    from dragoman.train.parallel import launched

    names, overrides = names_and_settings(arguments)
    given = {word.partition("=")[0].strip(): word for word in overrides}
    options = {"out": ("out", out), "from": ("start.model", start)}
    options |= {name: (f"data.{name}", getattr(files, name)) for name in DATA}
    for name, (key, value) in options.items():
        if value is not None and (word := given.get(key)):
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} {value} and {word} set the same key; give one of them")
        overrides += [] if value is None else [f"{key}={value}"]
    recipe, sweep = find_runs(names, overrides)
    console = talk()
    if nproc != 1 or max_restarts:
        from dragoman.train.launch import launch

        quiet = ["--quiet"] if sys.stderr is None else []
        command = [*quiet, "train", "--", *names, *overrides]
        raise typer.Exit(launch(nproc, command, max_restarts=max_restarts, say=console.print))
    console.quiet = launched()[0] > 0  # rank 0 speaks for all
    if sweep:
        _run_sweep(sweep, console)
    else:
        use = _run(recipe, console)
        folder = Path(recipe.out)
        console.print(f"The model is in {folder}. Next:\n{use}\ndragoman inspect {folder}")


def _run(recipe: "RunRecipe", console: "Console", *, first: bool = True) -> str:
    """Run a recipe; return the command that the trained model is for.

    Once it can begin it says what the recipe is, in a sweep before the `first` run alone, and what
    it will take. Ends the command where the run was interrupted.
    """
    from dragoman.tasks.task import find_task
    from dragoman.tasks.task import train as train_task

    def estimate() -> "Check":
        from dragoman.cost.forecast import forecast

        lines, check = forecast(recipe)
        expect = f"To expect: {recipe.expect}" if recipe.expect else ""
        about = [recipe.description, expect] if first else []
        for line in filter(None, (*about, *lines)):
            console.print(line)
        return check

    result = train_task(recipe, console=console, estimate=estimate)
    use = (recipe.use or find_task(recipe.task).use).format(folder=result.folder)
    step = result.progress.step
    if result.interrupted:
        console.print(f"Saved at step {step:,}. The same command resumes from there.")
        if (result.folder / "config.json").exists():
            console.print(f"The best model so far can be used already:\n{use}")
        raise typer.Exit(INTERRUPTED)
    if more := result.progress.minutes_needed(recipe):
        console.print(
            f"The time was up after {step:,} of {recipe.train.max_steps:,} steps. To take all of "
            f"them at the speed so far, run the same command with train.max_minutes={more}."
        )
    return use


def _run_sweep(runs: Sequence["RunRecipe"], console: "Console") -> None:
    """Run one after the other those that are not finished yet."""
    from dragoman.train.runfolder import RunFolder

    for number, run in enumerate(runs, start=1):
        console.print(f"\nRun {number} of {len(runs)}: {run.out}")
        if RunFolder(Path(run.out)).is_finished(run):
            console.print("It is finished.")
        else:
            _run(run, console, first=number == 1)
    folder = Path(runs[0].out).parent
    console.print(f"\nThe runs are in {folder}. Next:\ndragoman cost --fit {folder}")
