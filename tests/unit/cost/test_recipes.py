"""The work of a recipe: sentences of the length that is asked for, if the recipe has room."""

from pathlib import Path

import pytest

from dragoman.cost.recipes import find_recipe, work_of
from dragoman.errors import InputError
from dragoman.tasks.work import LENGTH

ROOM = [
    ("tinyshakespeare", "batch.length"),
    ("multi30k-en-de", "batch.max_length"),
    ("sst2", "batch.max_length"),
    ("conll2003", "batch.max_length"),
    ("pretrain-en", "batch.max_length"),
]


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_sentence_is_as_long_as_asked_for_or_refused(name: str, key: str) -> None:
    """In every task: up to the recipe's own limit, never silently shorter."""
    recipe = find_recipe(name, [f"{key}=50"])
    for length in (1, 49, 50):
        assert work_of(recipe, length).length == length
    said = rf"length = 51 is over the recipe's {key} = 50: ask for 50 or less, or add {key}=51"
    with pytest.raises(InputError, match=said):
        work_of(recipe, 51)


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_length_that_nobody_asked_for_fits(name: str, key: str) -> None:
    """Thirty tokens, or all that the recipe has room for."""
    assert work_of(find_recipe(name)).length == LENGTH
    assert work_of(find_recipe(name, [f"{key}=16"])).length == 16


@pytest.mark.parametrize("text", ["", 'out = "x"\n'])
def test_nothing_has_no_cost(tmp_path: Path, text: str) -> None:
    """A file that decides nothing is refused as training refuses it, not taken for the default."""
    file = tmp_path / "my.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="holds no setting"):
        find_recipe(str(file))
