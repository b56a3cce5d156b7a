"""The recipe that is chosen for two files."""

import lzma
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from tests.unit.tasks.tiny import make_config, make_tokenizer, save_translator

from dragoman.cost.counting import training_step
from dragoman.data.batches import Stream
from dragoman.data.shape import Shape
from dragoman.models import preset
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate import auto
from dragoman.tasks.translate.auto import SIZES, auto_recipe, choose_sizes, recipe_for_files
from dragoman.tasks.translate.batches import PairBatches
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.tasks.translate.texts import read_texts
from dragoman.text.train import TokenizerConfig, train_tokenizer
from dragoman.train.config import TrainConfig
from dragoman.train.runfolder import RunFolder


def write(folder: Path, line: Callable[[], str], num_pairs: int) -> dict[str, Any]:
    """Write this number of lines for each side and return the paths."""
    files = {side: str(folder / f"a.{side}") for side in ("src", "tgt")}
    for path in files.values():
        text = "".join(f"{line()}\n" for _ in range(num_pairs))
        Path(path).write_text(text, encoding="utf-8")
    return files


def recipe_for(folder: Path, num_pairs: int) -> TranslateRecipe:
    """Return the recipe for a corpus of this number of pairs."""
    return auto_recipe(DataConfig(**write(folder, lambda: "x", num_pairs)), "out")


def test_a_small_corpus(tmp_path: Path) -> None:
    """Few pairs get the smallest model and vocabulary, the most dropout, and enough steps.

    The choice is reproducible, so the same command resumes its run.
    """
    recipe = recipe_for(tmp_path, 10)
    assert recipe_for(tmp_path, 10) == recipe
    assert recipe.model.d_model == 128
    assert recipe.model.dropout == 0.3
    assert recipe.tokenizer.vocab_size == SIZES[0].vocab_size
    assert recipe.train.max_steps == 300
    assert recipe.train.warmup_steps == 30
    assert recipe.train.validate_every == recipe.train.save_every == 100
    assert recipe.out == "out"
    assert "10 pairs: tiny" in recipe.description
    assert ", 300 passes" in recipe.description  # of one batch each


def test_sizes_grow_with_the_corpus(tmp_path: Path) -> None:
    """More pairs give a larger model, starting at one pair over the limit."""
    border = int(SIZES[0].up_to)
    small, large = recipe_for(tmp_path, border), recipe_for(tmp_path, border + 1)
    assert (small.model.d_model, large.model.d_model) == (128, 256)
    assert small.tokenizer.vocab_size < large.tokenizer.vocab_size
    assert f"{border:,} pairs" in small.description


def test_a_head_learns_alignments_where_nothing_forbids_it(tmp_path: Path) -> None:
    """It does, unless the command line or a recipe without sizes has conflicting settings."""
    data = recipe_for(tmp_path, 10).data
    assert data.guided_alignment == 0.05
    files = [f"data.src={data.src}", f"data.tgt={data.tgt}", f"out={tmp_path / 'run'}"]
    for other in ("batch.subword_sampling=0.1", "train.r_drop=5", "data.guided_alignment=0"):
        assert recipe_for_files([*files, other]).data.guided_alignment == 0
    unguided = replace(data, guided_alignment=0.0)
    noisy = TranslateRecipe(data=unguided, batch=NoisyBatchConfig(subword_sampling=0.1))
    assert choose_sizes(noisy, replace).data.guided_alignment == 0
    assert recipe_for(tmp_path, int(SIZES[1].up_to) + 1).data.guided_alignment == 0


def passes_of(recipe: TranslateRecipe) -> int:
    """Return the number of passes in the description."""
    (found,) = re.findall(r", (\d+) passes", recipe.description)
    return int(found)


def test_what_is_described_is_what_is_trained(tmp_path: Path) -> None:
    """The description and its passes reflect the settings that override the chosen ones."""
    rng = np.random.default_rng(0)
    written = write(tmp_path, lambda: words(rng, 9), 900)
    files = [*(f"data.{side}={path}" for side, path in written.items()), f"out={tmp_path / 'run'}"]
    usual = recipe_for_files(files)
    assert "900 pairs: tiny (3+2 layers, d_model 128), dropout 0.3, 4,000 pieces, " in (
        usual.description
    )
    assert passes_of(usual) == 60
    sizes = ("d_model=32", "num_heads=2", "num_encoder_layers=1", "dropout=0.2")
    given = [*files, *(f"model.{size}" for size in sizes)]
    recipe = recipe_for_files([*given, "train.max_steps=100", "tokenizer.vocab_size=3999"])
    assert recipe.model.d_model == 32
    assert "900 pairs: 1+2 layers, d_model 32, dropout 0.2, 3,999 pieces, " in recipe.description
    assert passes_of(recipe) == pytest.approx(6000 / (usual.train.max_steps or 0), rel=0.1)
    assert "less than a pass; " in recipe_for_files([*files, "train.max_steps=1"]).description
    smaller = recipe_for_files([*files, "batch.max_tokens=2048"])
    assert smaller.train == usual.train
    assert passes_of(smaller) == pytest.approx(30, rel=0.1)
    split = recipe_for_files([*files, "batch.max_tokens=2048", "train.accumulate=2"])
    assert split.train == replace(usual.train, accumulate=2)
    assert passes_of(split) == pytest.approx(60, rel=0.1)


def test_a_given_tokenizer_counts(tmp_path: Path) -> None:
    """The passes and the number of pieces are those of `tokenizer.path`; a run keeps a copy."""
    rng = np.random.default_rng(0)
    written = write(tmp_path, lambda: words(rng, 9), 900)
    files = [*(f"data.{side}={path}" for side, path in written.items()), f"out={tmp_path / 'run'}"]
    characters = [*files, "tokenizer.model=characters"]
    texts = [line for path in written.values() for line in Path(path).read_text().splitlines()]
    tokenizer = train_tokenizer(texts, TokenizerConfig(model="characters"))
    tokenizer.save(tmp_path / "tokenizer.json")
    recipe = recipe_for_files([*files, f"tokenizer.path={tmp_path / 'tokenizer.json'}"])
    assert f" {tokenizer.vocab_size} pieces, " in recipe.description
    assert passes_of(recipe) == passes_of(recipe_for_files(characters))
    assert passes_of(recipe) < passes_of(recipe_for_files(files))
    kept = tmp_path / "run" / "training"
    kept.mkdir(parents=True)
    (kept / "recipe.json").touch()  # as a run has it
    given = (tmp_path / "tokenizer.json").rename(kept / "tokenizer.json")
    resumed = recipe_for_files([*files, f"tokenizer.path={tmp_path / given.name}"])
    assert resumed.train == recipe.train


def test_a_warm_up_leaves_steps_to_learn(tmp_path: Path) -> None:
    """Fewer steps have a shorter warm-up, which a resumed run keeps."""
    written = write(tmp_path, lambda: "x", 50)
    files = [*(f"data.{side}={path}" for side, path in written.items()), f"out={tmp_path / 'run'}"]

    def warm_up(*given: str) -> int:
        return recipe_for_files([*files, *given]).train.warmup_steps

    assert [warm_up(), warm_up("train.max_steps=100")] == [30, 20]
    assert warm_up("train.max_steps=49") == 30  # a smoke run
    assert warm_up("train.max_steps=100", "train.warmup_steps=99") == 99
    begun = recipe_for_files([*files, "train.max_steps=100"])
    with RunFolder(Path(begun.out)).open(begun) as folder:
        (folder.checkpoints / "step-00000001").mkdir(parents=True)
    assert warm_up("train.max_steps=5000") == 20


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        (10, "10 pairs cannot teach a language: captions of images, English to German, reached"),
        (600, "reached BLEU 6.8 with 1,000 pairs; texts"),
        (1_500, "BLEU 6.8 with 1,000 pairs and BLEU 19.1 with 3,000 pairs; texts"),
        (30_000, "reached BLEU 38.8 with 29,000 pairs; texts"),
    ],
)
def test_what_is_to_be_expected_was_measured(tmp_path: Path, pairs: int, told: str) -> None:
    """The expected score is that of the nearest measured numbers of pairs."""
    assert told in recipe_for(tmp_path, pairs).expect


def test_a_published_model_is_named_where_one_is_known(tmp_path: Path) -> None:
    """General advice is given for any language."""
    data = recipe_for(tmp_path, 10).data
    for src, tgt in ((None, None), ("en", "zh"), ("zh", "de")):
        told = auto_recipe(replace(data, src_lang=src, tgt_lang=tgt), "out").expect
        assert "dragoman data check" in told
        assert ("--from opus-mt-en-zh." in told) == ("Helsinki" in told) == (tgt == "zh")


def test_the_table_of_sizes() -> None:
    """Limits and vocabularies increase, passes decrease, and the last row has no limit."""
    for smaller, larger in pairwise(SIZES):
        assert smaller.up_to < larger.up_to
        assert smaller.vocab_size < larger.vocab_size
        assert smaller.epochs > larger.epochs
        assert smaller.dropout >= larger.dropout
    assert SIZES[-1].up_to == float("inf")


def test_no_corpus_takes_far_longer_than_one_of_a_pair_less() -> None:
    """At each size limit, the training time changes by at most half."""
    seconds = []
    for size in SIZES:
        pieces = size.vocab_size
        model = replace(preset(size.preset), src_vocab_size=pieces, tgt_vocab_size=pieces)
        batch = Shape(rows=100, src_length=20, length=20)
        step = training_step(TranslateRecipe, model, batch, TrainConfig(max_steps=1))
        seconds.append(size.epochs * step.flops)
    for smaller, larger in pairwise(seconds):
        assert 1 / 1.5 < larger / smaller < 1.5


def words(rng: np.random.Generator, count: int) -> str:
    """Return a sentence of this number of made-up words."""
    return " ".join(f"w{number}" for number in rng.integers(3000, size=count))


@pytest.mark.parametrize(
    ("num_pairs", "longest"), [(12_000, 2), (500, 60), (5_000, 8)], ids=["short", "long", "many"]
)
def test_the_passes_are_those_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_pairs: int, longest: int
) -> None:
    """The stated passes are right within a tenth for any line lengths, from a sample of them."""
    monkeypatch.setattr(auto, "SAMPLE", num_pairs * 3 // 4)
    rng = np.random.default_rng(0)
    written = write(
        tmp_path, lambda: words(rng, int(rng.integers(longest // 2 + 1, longest + 1))), num_pairs
    )
    data = DataConfig(**written, cache=str(tmp_path))
    recipe = auto_recipe(data, "", guided=False)
    texts = read_texts(recipe, RunFolder(tmp_path), lambda _: None)
    num_batches = Stream(PairBatches(texts.training, recipe.batch), seed=1).num_batches
    size = next(size for size in SIZES if num_pairs <= size.up_to)
    assert recipe.train.max_steps == pytest.approx(size.epochs * num_batches, rel=0.1)
    assert f", {size.epochs} passes" in recipe.description


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.zh", "zh"),
        ("train.en.xz", "en"),
        ("train.en.zst", "en"),
        ("de.txt", None),
        ("corpus", None),
        ("v1.2", None),
    ],
)
def test_the_language_is_read_off_the_ending(
    tmp_path: Path, name: str, language: str | None
) -> None:
    """The extension names the language, since BLEU for Chinese needs its own tokenizer."""
    src = write(tmp_path, lambda: "x", 10)["src"]
    named = tmp_path / name
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    named.write_bytes(packers.get(named.suffix, bytes)(b"x\n" * 10))
    recipe = auto_recipe(DataConfig(src=src, tgt=str(named)), "out")
    assert recipe.data.tgt_lang == language
    assert recipe.data.src_lang is None


def test_fine_tuning(tmp_path: Path) -> None:
    """The folder gives sizes, languages and tokenizers; the rate is lower, with few passes."""
    folder = str(save_translator(tmp_path / "model"))
    few = recipe_for(tmp_path, 20_000)
    tuned = auto_recipe(few.data, "out", folder)
    assert tuned.model == make_config(make_tokenizer())
    assert (tuned.start.model, tuned.out) == (folder, "out")
    assert (tuned.data.src_lang, tuned.data.tgt_lang) == ("en", "zh")
    assert tuned.train.learning_rate < few.train.learning_rate
    assert (tuned.train.max_steps, tuned.train.warmup_steps) == (300, 30)  # 27 batches per pass
    assert f"20,000 pairs: 11 more passes with {folder}" in tuned.description
