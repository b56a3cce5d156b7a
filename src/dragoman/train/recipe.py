"""A recipe: everything that decides a training run, in one TOML file.

Its key `task` chooses the dataclass; each task has one in `train/recipes/`.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from dragoman.errors import InputError, nearest
from dragoman.settings import Given, read_settings
from dragoman.train.jobs import TASKS
from dragoman.train.recipes.base import RunRecipe, StartConfig
from dragoman.train.recipes.translate import DataConfig, TranslateRecipe
from dragoman.train.start import start_from

__all__ = [
    "DataConfig",
    "Recipe",
    "RunRecipe",
    "StartConfig",
    "TranslateRecipe",
    "build_recipe",
    "load_recipe",
    "read_recipe",
    "shipped_recipes",
]

Recipe = TranslateRecipe
"""The recipe that is meant where nothing else is said."""

TELLING = frozenset({"description", "expect", "out"})
"""Keys that tell of a run and decide nothing in it."""


def shipped_recipes() -> dict[str, Path]:
    """Return the recipes that come with the package, by name."""
    folder = Path(str(resources.files("dragoman") / "recipes"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_recipe(name: str, overrides: Sequence[str] = ()) -> RunRecipe:
    """Load a recipe by its shipped name or from a TOML file, with `key=value` overrides.

    Where it starts from a model folder, what it does not say of the model is as it is there. Of a
    sweep it is what all runs share: `train.sweep` loads the runs.
    """
    return build_recipe(read_recipe(name, overrides))


def read_recipe(name: str, overrides: Sequence[str] = ()) -> Given:
    """Read a recipe as `load_recipe` does, without building it.

    Raises InputError where neither the file nor an override decides anything.
    """
    shipped = shipped_recipes()
    if name in shipped:
        return read_settings(shipped[name], overrides)
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        given = read_settings(path, overrides)
        if given.data.keys() <= TELLING:
            raise InputError(
                f"{path} holds no setting of data, model or training: a recipe says at least what "
                'to learn from, such as data.src = "a.en" and data.tgt = "a.zh"'
            )
        return given
    close = nearest(name, shipped)
    hint = f"did you mean {close}? " if close else ""
    raise InputError(
        f"there is no recipe {name!r}: {hint}shipped are {', '.join(shipped)}; or give the path of "
        "a TOML file"
    )


def build_recipe(given: Given) -> RunRecipe:
    """Build what was read; a table of runs, `sweep`, is none of its settings."""
    given = replace(given, data={key: given.data[key] for key in given.data if key != "sweep"})
    recipe = given.choose("task", TASKS, default=next(iter(TASKS))).recipe
    start = given.get("start.model")
    base = start_from(_defaults(recipe), start) if isinstance(start, str) else None
    return given.build(recipe, base)


def _defaults(recipe: type[RunRecipe]) -> RunRecipe:
    return recipe()  # type: ignore[call-arg]  # the classes of the tasks have a default for each
