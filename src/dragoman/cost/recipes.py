"""The subject of an estimate: a recipe, a preset or a model folder.

Everything becomes a recipe: a preset becomes one with the recipe's own defaults, a model folder the
one that trained it or, if that is unknown, one that starts from it. No weights are created.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dragoman.errors import InputError, did_you_mean
from dragoman.files.reading import read_object
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import open_folder
from dragoman.models import DECODER_PRESETS, ENCODER_PRESETS, PRESETS, ModelConfig
from dragoman.models.heads import MaskedLanguageHead
from dragoman.settings import override_settings, parse_settings
from dragoman.tasks.recipes import load_recipe, load_sweep, only_name, shipped_recipes
from dragoman.tasks.task import find_task, task_of
from dragoman.tasks.translate.auto import recipe_for_files
from dragoman.train.recipe import RunRecipe
from dragoman.train.start import start_from

MODELS: Mapping[str, ModelConfig] = {
    **PRESETS,
    **DECODER_PRESETS,
    **{name: replace(each, head=MaskedLanguageHead()) for name, each in ENCODER_PRESETS.items()},
}
"""The presets; encoders have the head that they are pretrained with."""


def find_recipe(name: str, overrides: Sequence[str] = ()) -> RunRecipe:
    """Return the recipe of a shipped name, a TOML file, a preset or a model folder.

    Raises InputError with the nearest name if it is none of them, and for wrong overrides.
    """
    path = Path(name)
    if name in shipped_recipes() or path.suffix == ".toml" or path.is_file():
        return load_recipe(name, overrides)
    if path.is_dir():
        return override_settings(_recipe_of_folder(path), overrides)
    if model := MODELS.get(name):
        return override_settings(_recipe_for(model)(model=model), overrides)
    known = (*shipped_recipes(), *MODELS)
    raise InputError(
        f"there is no recipe, preset or model folder {name!r}: recipes are "
        f"{', '.join(shipped_recipes())}; presets are {', '.join(MODELS)}"
        f"{did_you_mean(name, known)}"
    )


def find_one(names: Sequence[str], overrides: Sequence[str] = ()) -> tuple[str, RunRecipe, int]:
    """Return the only name, its recipe, and the number of runs in its sweep: 0 without one.

    Without a name, it is the recipe chosen for files of texts, if settings name some.
    """
    if not names and any(word.startswith("data.") for word in overrides):
        recipe = recipe_for_files(overrides, check=lambda _: None)
        return recipe.data.named[0].label, recipe, 0
    name = only_name(names, "recipe, preset or model folder")
    found = find_recipe(name, overrides)
    with suppress(InputError):  # a preset or a model folder, which has no sweep
        return name, found, len(load_sweep(name))
    return name, found, 0


def _recipe_of_folder(folder: Path) -> RunRecipe:
    """Return the recipe that trained a model folder, with its final architecture."""
    opened = open_folder(folder)
    model = opened.config.model
    path = folder / "training" / "recipe.json"
    if opened.adapters is not None:
        raise InputError(f"{folder} holds adapters alone; give the folder of a model")
    if not path.is_file():
        return start_from(_recipe_for(model)(), opened)
    data = read_object(path)
    recipe = parse_settings(find_task(data.get("task", "translate")).recipe, data, str(path))
    return replace(recipe, model=model)


def _recipe_for(model: ModelConfig) -> Callable[..., RunRecipe]:
    """Return the recipe of the task that trains such models; for a bare encoder, pretraining."""
    return (task_of(FolderConfig(model=model)) or find_task("pretrain")).recipe
