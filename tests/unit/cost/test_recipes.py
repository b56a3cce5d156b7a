"""The work of a recipe: each task, shipped or external, and the requested sentence length."""

from dataclasses import replace
from typing import Any

import pytest

from dragoman.cost.recipes import find_recipe
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.folder.format import GenerationDefaults
from dragoman.train.recipe import LENGTH

ROOM = [
    ("tinyshakespeare", "batch.length"),
    ("multi30k-en-de", "batch.max_length"),
    ("sst2", "batch.max_length"),
    ("conll2003", "batch.max_length"),
    ("pretrain-en", "batch.max_length"),
]


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_sentence_is_as_long_as_asked_for_or_refused(name: str, key: str) -> None:
    """Every task uses the requested length, or refuses one beyond the recipe's limit."""
    recipe = find_recipe(name, [f"{key}=50"])
    for length in (1, 49, 50):
        assert recipe.work(length).length == length
    said = rf"length = 51 is over the recipe's {key} = 50: ask for 50 or less, or add {key}=51"
    with pytest.raises(InputError, match=said):
        recipe.work(51)


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_length_that_nobody_asked_for_fits(name: str, key: str) -> None:
    """The default length is thirty tokens, or the recipe's limit if that is smaller."""
    assert find_recipe(name).work().length == LENGTH
    assert find_recipe(name, [f"{key}=16"]).work().length == 16


@pytest.mark.parametrize(
    ("name", "unset"),
    [
        ("tinyshakespeare", {"generation": GenerationDefaults()}),
        ("multi30k-en-de", {"decoding": Decoding()}),
    ],
)
def test_options_that_nobody_set_are_those_of_the_task(name: str, unset: dict[str, Any]) -> None:
    """Recipes that are built in Python or inherit from a folder use the task's defaults."""
    recipe = find_recipe(name)
    work = replace(recipe, **unset).work()
    assert (work.answer, work.beam_size) == (recipe.work().answer, recipe.work().beam_size)
