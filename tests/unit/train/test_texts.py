"""From files to texts, where there is nothing to validate by."""

from pathlib import Path

import pytest

from dragoman.data.batch import BatchConfig
from dragoman.errors import InputError
from dragoman.text.train import TokenizerConfig
from dragoman.train.recipe import DataConfig, TranslateRecipe
from dragoman.train.texts import read_texts


def make_recipe(
    tmp_path: Path, lines: list[str], valid: list[str] | None = None
) -> TranslateRecipe:
    """A recipe for pairs of equal lines."""
    names = {}
    for name, texts in (("train", lines), ("valid", valid)):
        if texts is not None:
            names[name] = str(tmp_path / name)
            (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    data = DataConfig(
        src=names["train"],
        tgt=names["train"],
        valid_src=names.get("valid"),
        valid_tgt=names.get("valid"),
        cache=str(tmp_path / "cache"),
    )
    return TranslateRecipe(
        data=data, tokenizer=TokenizerConfig(vocab_size=300), batch=BatchConfig(max_length=8)
    )


@pytest.mark.parametrize("lines", [["word " * 100], [" ", ""]], ids=["too long", "empty"])
def test_nothing_can_be_held_out(tmp_path: Path, lines: list[str]) -> None:
    """It is not said of a validation corpus that nobody gave; what was left out is told before."""
    said: list[str] = []
    told = r"train has no pair with text on both sides and at most 8 tokens"
    with pytest.raises(InputError, match=told):
        read_texts(make_recipe(tmp_path, lines), tmp_path / "training", said.append)
    assert any(" used." in sentence for sentence in said)


def test_a_validation_corpus_needs_a_pair(tmp_path: Path) -> None:
    """Its own name is told."""
    recipe = make_recipe(tmp_path, ["one", "two", "three"], [" ", ""])
    with pytest.raises(InputError, match=r"validation corpus .*valid holds no pair"):
        read_texts(recipe, tmp_path / "training", print)
