"""`dragoman train`: from texts to a model folder."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.data import with_corpus
from dragoman.cli.options import names_and_settings
from dragoman.cli.pipes import talk, telling_interrupt
from dragoman.corpus.config import PairFiles
from dragoman.data.corpus import KEYS
from dragoman.errors import InputError
from dragoman.process import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.train.job import Check
    from dragoman.train.recipe import RunRecipe


@with_corpus
@telling_interrupt()
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
    nproc: Annotated[int, typer.Option(help="Number of training processes, one per GPU.")] = 1,
    max_restarts: Annotated[
        int, typer.Option(help="Maximum number of restarts after a process is killed.")
    ] = 0,
) -> None:
    """Train a model, or resume the unfinished run in its folder.

    dragoman train multi30k-en-de out=runs/en-de train.max_minutes=45

    dragoman train sst2 --out runs/sst2

    dragoman train --src a.en --tgt a.zh --out runs/en-zh

    dragoman train --tm memory.tmx --src-lang en --tgt-lang de --out runs/en-de

    dragoman train --tsv table.csv --src-key English --tgt-key German --out runs/en-de

    dragoman train --from runs/en-zh --src b.en --tgt b.zh --out runs/en-zh-news

    dragoman train scaling-sweep --out runs/sweep

    dragoman train multi30k-en-de --out runs/en-de --nproc 8 --max-restarts 3
    """
    from dragoman.tasks.recipes import find_runs
    from dragoman.train.parallel import launched

    names, overrides = names_and_settings(arguments)
    options = {"--out": ("out", out), "--from": ("start.model", start)}
    overrides = with_settings(overrides, options | of_files(files))
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


def of_files(files: PairFiles) -> dict[str, tuple[str, object]]:
    """Return the settings that the options about files stand for, with their values.

    Raises InputError for two corpora, and for a key without its table.
    """
    keys = files.src_key, files.tgt_key
    tables = {"--tsv": files.tsv, "--jsonl": files.jsonl}
    layouts = {"--src and --tgt": files.src or files.tgt, "--tm": files.tm} | tables
    if len(several := [option for option, path in layouts.items() if path is not None]) > 1:
        raise InputError(f"{several[0]} and {several[1]} name two corpora; give one of them")
    found: dict[str, tuple[str, object]] = {
        f"--{name.replace('_', '-')}": (f"data.{name}", getattr(files, name))
        for name in ("src", "tgt", "tm", "src_lang", "tgt_lang")
    }
    if keys != KEYS and not any(tables.values()):
        raise InputError("--src-key and --tgt-key are of a table; give it as --tsv or --jsonl")
    for option, path in tables.items():
        values = {option.lstrip("-"): str(path), "src_key": keys[0], "tgt_key": keys[1]}
        toml = (f"{key} = {json.dumps(text, ensure_ascii=False)}" for key, text in values.items())
        found[option] = "data.corpora", None if path is None else f"[{{{', '.join(toml)}}}]"
    return found


def with_settings(overrides: Sequence[str], options: Mapping[str, tuple[str, object]]) -> list[str]:
    """Add the settings that options stand for to those that are written out.

    Raises InputError for a setting that is given twice.
    """
    given, added = {word.partition("=")[0].strip(): word for word in overrides}, list[str]()
    for option, (key, value) in options.items():
        if value is None:
            continue
        if word := given.get(key):
            shown = option if key == "data.corpora" else f"{option} {value}"
            raise InputError(f"{shown} and {word} set the same key; give one of them")
        given[key] = f"{key}={value}"
        added.append(given[key])
    return [*overrides, *added]


def _run(recipe: "RunRecipe", console: "Console", *, first: bool = True) -> str:
    """Run a recipe; return the command that the trained model is for.

    Before it begins, it says what the recipe is (in a sweep, only for the `first` run) and what it
    will take. Ends the command if the run was interrupted.
    """
    from dragoman.folder.opening import open_folder
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
    use, step = "", result.progress.step
    if (result.folder / "config.json").exists():
        config = open_folder(result.folder).config
        use = recipe.use(config.directions) or find_task(recipe.task).use
        use = use.format(folder=result.folder)
        if own := sorted(_own(config.model)):
            console.print(
                f"The model has parts of your own ({', '.join(own)}): in place of dragoman, run a "
                "script that imports them (docs/attention.md)."
            )
    if result.interrupted:
        console.print(f"Saved at step {step:,}. The same command resumes from there.")
        if use:
            console.print(f"The best model so far can be used already:\n{use}")
        raise typer.Exit(INTERRUPTED)
    if more := result.progress.minutes_needed(recipe):
        console.print(
            f"The time was up after {step:,} of {recipe.train.max_steps:,} steps. To take all of "
            f"them at the speed so far, run the same command with train.max_minutes={more}."
        )
    return use


def _own(part: object) -> set[str]:
    """Return the names of the classes from outside the package that a part of a config contains."""
    if isinstance(part, tuple):
        return set().union(*map(_own, part))
    if not is_dataclass(part):
        return set()
    own = set() if type(part).__module__.startswith("dragoman.") else {type(part).__name__}
    return own.union(*(_own(getattr(part, field.name)) for field in fields(part)))


def _run_sweep(runs: Sequence["RunRecipe"], console: "Console") -> None:
    from dragoman.cost.scaling import FEWEST_LEVELS, FEWEST_RUNS
    from dragoman.models import count_parameters
    from dragoman.train.runfolder import RunFolder

    for number, run in enumerate(runs, start=1):
        console.print(f"\nRun {number} of {len(runs)}: {run.out}")
        if RunFolder(Path(run.out)).is_finished(run):
            console.print("It is finished.")
        else:
            _run(run, console, first=number == 1)
    folder = Path(runs[0].out).parent
    console.print(f"\nThe runs are in {folder}. Next:\ndragoman runs {folder}")
    sizes = {sum(count_parameters(run.work().config).values()) for run in runs}
    lengths = {run.train.max_steps for run in runs}
    if len(runs) >= FEWEST_RUNS and min(len(sizes), len(lengths)) >= FEWEST_LEVELS:
        console.print(f"dragoman cost --fit {folder}")
