"""A sweep: one recipe that stands for several runs, which differ in a few settings.

A table `sweep` in a recipe's file holds grids. A grid names settings on one or more axes, and each
combination of them is a run in a folder of its own, named after them, inside of `out`:

    [[sweep]]
    size.small = {model.d_model = 32}
    size.large = {model.d_model = 64}
    length.short = {train.max_steps = 1000}
    length.long = {train.max_steps = 2000}

makes `small-short`, `small-long`, `large-short` and `large-long`. Everything else they share. They
run one after the other; the same command goes on with the one that was interrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.settings import Given
from dragoman.train.recipe import build_recipe, read_recipe
from dragoman.train.recipes.base import RunRecipe

__all__ = ["load_sweep"]

Settings = Mapping[str, Any]


def load_sweep(name: str, overrides: Sequence[str] = ()) -> list[RunRecipe]:
    """Load the recipes of a sweep in the order of its grids; none where the file has no sweep.

    `overrides` are laid over what the runs share. Raises InputError for one that the sweep itself
    sets, and as `load_recipe` does.
    """
    given = read_recipe(name, overrides)
    runs = {run: settings for grid in _grids(given, name) for run, settings in _runs(grid)}
    return [_recipe(given, run, settings) for run, settings in runs.items()]


def _grids(given: Given, name: str) -> list[Mapping[str, Mapping[str, Settings]]]:
    grids = given.data.get("sweep", [])
    if not isinstance(grids, list) or not all(_is_grid(grid) for grid in grids):
        raise InputError(
            f"the sweep of {name} is no list of grids; write [[sweep]] and below it lines such as "
            "size.small = {model.d_model = 32}"
        )
    return grids


def _is_grid(grid: object) -> bool:
    return isinstance(grid, Mapping) and all(
        isinstance(axis, Mapping) and all(isinstance(point, Mapping) for point in axis.values())
        for axis in grid.values()
    )


def _runs(grid: Mapping[str, Mapping[str, Settings]]) -> Iterator[tuple[str, Settings]]:
    """Name and settings of each combination."""
    for points in product(*(axis.items() for axis in grid.values())):
        settings: Settings = {}
        for _, laid_over in points:
            settings = _merged(settings, laid_over)
        yield "-".join(name for name, _ in points), settings


def _recipe(given: Given, run: str, settings: Settings) -> RunRecipe:
    set_by_sweep = set(_keys(settings))
    for override in given.source.overrides:
        key = ".".join(map(str, override.path))
        if key in set_by_sweep:
            raise InputError(
                f"override {override.text} contradicts the sweep, whose run {run} sets {key}; copy "
                "the recipe to a file of your own and change its sweep"
            )
    recipe = build_recipe(replace(given, data=_merged(given.data, settings)))
    return replace(recipe, out=str(Path(recipe.out) / run)) if recipe.out else recipe


def _merged(below: Settings, above: Settings) -> dict[str, Any]:
    """Lay settings over others, section by section."""
    both = dict(below)
    for key, value in above.items():
        under = both.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            both[key] = _merged(under, value)
        else:
            both[key] = value
    return both


def _keys(settings: Settings, prefix: str = "") -> Iterator[str]:
    """The dotted keys, sections and what is in them."""
    for key, value in settings.items():
        yield prefix + key
        if isinstance(value, Mapping):
            yield from _keys(value, f"{prefix}{key}.")
