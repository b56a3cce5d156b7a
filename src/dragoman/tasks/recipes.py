"""A recipe: everything that decides a training run, in one TOML file.

Its key `task` chooses the task, and with it the dataclass of the settings.

A sweep is one recipe for several runs that differ in a few settings. A table `sweep` in a recipe's
file contains grids. A grid names settings on one or more axes; each combination of them is a run in
its own folder, named after them, inside `out`:

    [[sweep]]
    size.small = {model.d_model = 32}
    size.large = {model.d_model = 64}
    length.short = {train.max_steps = 1000}
    length.long = {train.max_steps = 2000}

makes `small-short`, `small-long`, `large-short` and `large-long`. They share everything else. They
run one after the other; the same command resumes an interrupted one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from dragoman.errors import InputError, did_you_mean
from dragoman.folder.opening import open_folder
from dragoman.models import ModelConfig
from dragoman.settings import Given, flatten, override_settings, read_settings
from dragoman.settings.fields import keys_of
from dragoman.settings.source import lay_over
from dragoman.tasks.task import TASKS, find_task, is_imported, train
from dragoman.tasks.translate.auto import recipe_for_files
from dragoman.train.recipe import RunRecipe
from dragoman.train.runfolder import RECIPE, RunFolder
from dragoman.train.start import MAY_DIFFER, begun_recipe, start_from
from dragoman.train.trainer import TrainResult

DESCRIPTIVE = frozenset({"description", "expect", "out"})
"""Keys that describe a run without changing it."""
SIZES = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers")
"""Keys of `model` that set its size."""


def shipped_recipes() -> dict[str, Path]:
    """Return the recipes that come with the package, by name."""
    folder = Path(str(resources.files("dragoman") / "recipes"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_recipe(name: str, overrides: Sequence[str] = ()) -> RunRecipe:
    """Load a recipe by its shipped name or from a TOML file, with `key=value` overrides.

    If it starts from a model folder, model settings that it leaves out come from there. For a
    sweep, it is what all runs share: `load_sweep` loads the runs.
    """
    return build_recipe(read_recipe(name, overrides))


def train_model(
    recipe: RunRecipe | str | Path, overrides: Sequence[str] = (), *, console: Console | None = None
) -> TrainResult:
    """Train a model, or resume the unfinished run in its folder: `dragoman train` without estimate.

        dragoman.train_model("multi30k-en-de", ["out=runs/en-de", "train.max_minutes=9"]).folder

    `recipe` is a shipped name, the path of a TOML file or a recipe; `overrides` are `KEY=VALUE`.
    Messages go to `console`, by default to standard error. Raises what `load_recipe` and
    `dragoman.train.run.run_recipe` raise.
    """
    if isinstance(overrides, str):
        raise TypeError(
            f"The overrides are {overrides!r:.40}; give a list, as [{overrides!r:.40}]."
        )
    if not isinstance(recipe, RunRecipe | str | Path):
        raise TypeError(f"The recipe is {recipe!r:.40}; give its name, its path or a RunRecipe.")
    if not isinstance(recipe, RunRecipe):
        recipe = load_recipe(str(recipe), overrides)
    elif overrides:
        recipe = override_settings(recipe, overrides)
    return train(
        recipe, console=console or Console(stderr=True, highlight=False, markup=False, emoji=False)
    )


def read_recipe(name: str, overrides: Sequence[str] = ()) -> Given:
    """Read a recipe as `load_recipe` does, without building it.

    Raises InputError if neither the file nor an override sets anything.
    """
    shipped = shipped_recipes()
    if name in shipped:
        return read_settings(shipped[name], overrides)
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        given = read_settings(path, overrides)
        if given.data.keys() <= DESCRIPTIVE:
            raise InputError(
                f"{path} holds no setting of data, model or training: a recipe says at least what "
                'to learn from, such as data.src = "a.en" and data.tgt = "a.zh"'
            )
        return given
    raise InputError(
        f"there is no recipe {name!r}: shipped are {', '.join(shipped)}; or give the path of a "
        f"TOML file{did_you_mean(name, shipped)}"
    )


def build_recipe(given: Given) -> RunRecipe:
    """Build the recipe that was read, without the runs of its table `sweep`.

    If it gives neither a model size nor a model folder, the task chooses what is left out from the
    texts, if it can; a run with a checkpoint keeps what was chosen.
    """
    is_swept = "sweep" in given.data
    given = replace(given, data={key: given.data[key] for key in given.data if key != "sweep"})
    task = given.data.get("task")
    if not (isinstance(task, str) and ("." in task or is_imported(task))):
        names = {name: name for name in TASKS}
        task = given.choose("task", names, default=next(iter(TASKS)))
    found = find_task(task)
    recipe, start, out = found.recipe, given.get("start.model"), str(given.get("out") or "")
    if isinstance(start, str):
        defaults = recipe()  # type: ignore[call-arg]  # all have a default in the tasks' classes
        begun = None if Path(start).exists() else begun_recipe(defaults, out)
        base = begun or start_from(defaults, open_folder(start))
        return (given if is_swept else _giving_way(given, base.model)).build(recipe, base)
    built = given.build(recipe)
    if found.choose is None or any(given.get(f"model.{size}") for size in SIZES):
        return built
    override = partial(given.build, recipe)
    chosen = begun_recipe(built, out) or found.choose(built, override)
    return replace(override(chosen), description=chosen.description)


def _giving_way(given: Given, model: ModelConfig) -> Given:
    """Leave out a file's model settings if an override alone names the starting model.

    Model settings from overrides stay, and so do those that weights do not depend on.
    """
    section, typed = given.data.get("model"), {each.path[:2] for each in given.origin.overrides}
    named = given.origin.child("start", "model").override() and ("model",) not in typed
    if not (named and isinstance(section, Mapping)):
        return given
    fixed = keys_of(type(model)).keys() - {*MAY_DIFFER}
    if not getattr(model, "word_features", 0):
        fixed -= {"word_features"}  # which are then new
    left = {key: section[key] for key in section if key not in fixed or ("model", key) in typed}
    return replace(given, data={**given.data, "model": left})


def find_runs(
    names: Sequence[str], overrides: Sequence[str]
) -> tuple[RunRecipe, Sequence[RunRecipe]]:
    """Return the recipe of a name with the runs of its sweep, if any; or the one for two files.

    If neither is given, a run that has begun in the folder `out` has its own. Raises InputError for
    several names, and for a name of a text file.
    """
    files = [name for name in names if Path(name).is_file()]
    texts = [name for name in files if not name.endswith((".toml", RECIPE))]
    if texts:
        one, other = texts if len(texts) == 2 else ("FILE", "FILE")
        raise InputError(
            f"{' and '.join(texts)}: not a recipe (its name must end in .toml, or be {RECIPE}); to "
            f"learn from text files give --src {one} --tgt {other} --out DIR"
        )
    if not (names := names or _begun_in(overrides)):
        return recipe_for_files(overrides), ()
    read = read_recipe(only_name(names, "recipe"), overrides)
    return build_recipe(read), build_sweep(read)


def _begun_in(overrides: Sequence[str]) -> list[str]:
    """Return the recipe of the run in `out`, unless texts or a starting model are given."""
    given: dict[str, Any] = {}
    for override in overrides:
        lay_over(given, override)
    recipe = RunFolder(Path(str(given.get("out", "")))).training / RECIPE
    named = given.keys() & {"data", "start"} or "out" not in given
    return [] if named or not recipe.is_file() else [str(recipe)]


def only_name(names: Sequence[str], what: str) -> str:
    """Return the one name that a command takes. Raises InputError for none or several."""
    if len(names) == 1:
        return names[0]
    raise InputError(
        f"one {what} at a time, not {', '.join(names) or 'none'}; settings are written KEY=VALUE"
    )


Settings = Mapping[str, Any]


def load_sweep(name: str, overrides: Sequence[str] = ()) -> list[RunRecipe]:
    """Load the recipes of a sweep in the order of its grids; none if the file has no sweep.

    `overrides` are applied to what the runs share. Raises InputError for one that the sweep itself
    sets, and as `load_recipe` does.
    """
    return build_sweep(read_recipe(name, overrides))


def build_sweep(given: Given) -> list[RunRecipe]:
    """Build the runs of a sweep from a recipe that was read."""
    runs = {run: settings for grid in _grids(given) for run, settings in _runs(grid)}
    return [_recipe(given, run, settings) for run, settings in runs.items()]


def _grids(given: Given) -> Sequence[Mapping[str, Mapping[str, Settings]]]:
    try:
        return msgspec.convert(
            given.data.get("sweep", []), list[dict[str, dict[str, dict[str, Any]]]]
        )
    except msgspec.ValidationError as error:
        raise InputError(
            f"the sweep of {given.origin.name} is not a list of grids; write [[sweep]] and below "
            "it lines such as size.small = {model.d_model = 32}"
        ) from error


def _runs(grid: Mapping[str, Mapping[str, Settings]]) -> Iterator[tuple[str, Settings]]:
    for points in product(*(axis.items() for axis in grid.values())):
        settings: Settings = {}
        for _, laid_over in points:
            settings = _merged(settings, laid_over)
        yield "-".join(name for name, _ in points), settings


def _recipe(given: Given, run: str, settings: Settings) -> RunRecipe:
    keys = flatten(settings)
    for override in given.origin.overrides:
        key = ".".join(map(str, override.path))
        if any(f"{one}.".startswith(f"{key}.") for one in keys):
            raise InputError(
                f"override {override.text} contradicts the sweep, whose run {run} sets {key}; copy "
                "the recipe to a file of your own and change its sweep"
            )
    recipe = build_recipe(replace(given, data=_merged(given.data, settings)))
    return replace(recipe, out=str(Path(recipe.out) / run)) if recipe.out else recipe


def _merged(below: Settings, above: Settings) -> dict[str, Any]:
    """Lay settings over others, section by section."""
    both = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            both[key] = _merged(below[key], above[key])
    return both
