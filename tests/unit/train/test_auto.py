"""The recipe that is chosen for two files."""

import json
import lzma
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.models import preset
from dragoman.models.folder import FolderConfig
from dragoman.settings import to_plain
from dragoman.train.auto import SIZES, auto_recipe
from dragoman.train.recipe import DataConfig, Recipe


def recipe_for(folder: Path, num_pairs: int) -> Recipe:
    """The recipe for a corpus of so many pairs."""
    for side in ("src", "tgt"):
        (folder / f"a.{side}").write_text("x\n" * num_pairs, encoding="utf-8")
    data = DataConfig(src=str(folder / "a.src"), tgt=str(folder / "a.tgt"))
    return auto_recipe(data, "out")


def test_a_small_corpus(tmp_path: Path) -> None:
    """Few pairs get the smallest model and vocabulary, the most dropout, and enough steps."""
    recipe = recipe_for(tmp_path, 10)
    assert recipe.model.d_model == 128
    assert recipe.model.dropout == 0.3
    assert recipe.tokenizer.vocab_size == SIZES[0].vocab_size
    assert recipe.train.max_steps == 300
    assert recipe.train.warmup_steps == 30
    assert recipe.out == "out"
    assert "10 pairs: tiny" in recipe.description


def test_sizes_grow_with_the_corpus(tmp_path: Path) -> None:
    """More pairs, a larger model, exactly from one pair over the limit on."""
    border = int(SIZES[0].up_to)
    small, large = recipe_for(tmp_path, border), recipe_for(tmp_path, border + 1)
    assert (small.model.d_model, large.model.d_model) == (128, 256)
    assert small.tokenizer.vocab_size < large.tokenizer.vocab_size
    assert f"{border:,} pairs" in small.description


def test_the_table_of_sizes() -> None:
    """Limits and vocabularies rise, passes fall, and the last row has no limit."""
    for smaller, larger in pairwise(SIZES):
        assert smaller.up_to < larger.up_to
        assert smaller.vocab_size < larger.vocab_size
        assert smaller.epochs > larger.epochs
        assert smaller.dropout >= larger.dropout
    assert SIZES[-1].up_to == float("inf")


def test_it_is_the_same_again(tmp_path: Path) -> None:
    """The same files give the same recipe, so that the same command goes on with its run."""
    assert recipe_for(tmp_path, 50) == recipe_for(tmp_path, 50)


def test_unequal_files(tmp_path: Path) -> None:
    """Files of different lengths are refused before anything is chosen."""
    recipe_for(tmp_path, 3)
    (tmp_path / "a.tgt").write_text("x\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"has 3 lines but .* has 1"):
        auto_recipe(DataConfig(src=str(tmp_path / "a.src"), tgt=str(tmp_path / "a.tgt")), "")


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.zh", "zh"), ("train.en.xz", "en"), ("de.txt", None), ("corpus", None), ("v1.2", None)],
)
def test_the_language_is_read_off_the_ending(
    tmp_path: Path, name: str, language: str | None
) -> None:
    """The ending names the language, since BLEU of Chinese needs its own tokenizer."""
    plain = tmp_path / "a.src"
    plain.write_text("x\n" * 10, encoding="utf-8")
    named = tmp_path / name
    opener = lzma.open if name.endswith(".xz") else open
    with opener(named, "wt", encoding="utf-8") as file:
        file.write("x\n" * 10)
    recipe = auto_recipe(DataConfig(src=str(plain), tgt=str(named)), "out")
    assert recipe.data.tgt_lang == language
    assert recipe.data.src_lang is None


def test_fine_tuning(tmp_path: Path) -> None:
    """From a model folder: its sizes and its languages, a lower rate, at most ten passes."""
    model = replace(preset("tiny"), src_vocab_size=300, tgt_vocab_size=300)
    config = FolderConfig(model=model, src_lang="en", tgt_lang="zh")
    (tmp_path / "config.json").write_text(json.dumps(to_plain(config)), encoding="utf-8")
    few = recipe_for(tmp_path, 20_000)
    tuned = auto_recipe(few.data, "out", str(tmp_path))
    assert tuned.model == model
    assert (tuned.start.model, tuned.out) == (str(tmp_path), "out")
    assert (tuned.data.src_lang, tuned.data.tgt_lang) == ("en", "zh")
    assert tuned.train.learning_rate < few.train.learning_rate
    assert (tuned.train.max_steps or 0) < (few.train.max_steps or 0) / 5
    assert f"20,000 pairs: 10 more passes with {tmp_path}" in tuned.description
