"""Runs that start from a model folder."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.train.made import make_console
from tests.unit.train.runs import (
    Scorer,
    assert_same_runs,
    change,
    exported,
    figures,
    interrupt,
    run,
    same,
    train_scored,
)

from dragoman.errors import InputError
from dragoman.folder.format import save_model
from dragoman.folder.opening import open_folder
from dragoman.models import build
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.start import start_from


@pytest.fixture
def tuning(recipe: TranslateRecipe) -> TranslateRecipe:
    """Fine-tune for six steps a model that was trained for six steps."""
    run(recipe, 1, 2, 3, 0)
    return start_from(replace(recipe, out=recipe.out + "-tuned"), open_folder(recipe.out))


def test_the_tokenizers_are_those_of_the_folder(tuning: TranslateRecipe) -> None:
    """The tokenizer files are copied, none is trained, and the output says so."""
    _, said = run(tuning, 1, 2, 3, 4, 0)
    assert "none is trained, so the settings in [tokenizer] are not used." in said
    assert "Training a tokenizer" not in said
    start = Path(tuning.start.model or "")
    assert open_folder(Path(tuning.out)).config.tokenizers == open_folder(start).config.tokenizers
    card = (Path(tuning.out) / "README.md").read_text(encoding="utf-8")
    assert f"- started from: `{start}`" in card


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("zh en", "are swapped"),
        ("en fr", "translates en to zh, and these texts go from en to fr; training on these"),
        ("en zh", None),
        ("en-GB zh-Hans", None),
    ],
)
def test_texts_in_other_languages_are_told(
    tuning: TranslateRecipe, between: str, told: str | None
) -> None:
    """Texts in other languages, such as swapped ones, cause a warning and no error."""
    start = open_folder(tuning.start.model or "")
    there = replace(start.config, src_lang="en", tgt_lang="zh")
    save_model(start.path, start.model, there, tokenizers=start.tokenizers)
    src_lang, tgt_lang = between.split()
    data = replace(tuning.data, src_lang=src_lang, tgt_lang=tgt_lang)
    _, said = run(replace(tuning, data=data), *range(5))
    assert ("the model to start from translates" in said) == bool(told)
    assert (told or "") in said


def test_a_model_to_start_from_is_read_once(tuning: TranslateRecipe) -> None:
    """A folder of format 1, whose weights have no hash, causes only one warning."""
    path = Path(tuning.start.model or "") / "config.json"
    config = json.loads(path.read_text())
    hashes = {"weights_sha256": None, "model_sha256": None}
    path.write_text(json.dumps(config | hashes | {"format": 1}))
    with pytest.warns(UserWarning, match="without a hash") as caught:
        run(tuning, 1, 2, 3, 4, 0)
    assert len(caught) == 1


def test_two_tokenizers(recipe: TranslateRecipe) -> None:
    """They are kept, loaded again on resuming, and used by a run that starts from the model."""
    recipe = replace(
        recipe,
        tokenizer=replace(recipe.tokenizer, joint=False),
        model=replace(recipe.model, tie_embeddings="target-output"),
    )
    assert "Training a tokenizer" in run(change(recipe, max_steps=2), 1)[1]
    assert "Training a tokenizer" not in run(recipe, 2, 3, 0)[1]
    names = {path.name for path in Path(recipe.out).iterdir()}
    assert {"tokenizer.src.json", "tokenizer.tgt.json"} <= names
    tuned = start_from(replace(recipe, out=recipe.out + "-tuned"), open_folder(recipe.out))
    run(tuned, 1, 2, 3, 4, 0)
    assert len(open_folder(Path(tuned.out)).config.tokenizers) == 2


@pytest.mark.parametrize(("eight_bits", "number"), [(False, 2), (True, 3)])
def test_a_run_that_makes_it_no_better_keeps_it(
    tuning: TranslateRecipe, *, eight_bits: bool, number: int
) -> None:
    """The initial model is validated first, and stays the best if no step improves on it.

    From weights in 8 bits, the output is fp32 again.
    """
    start = open_folder(tuning.start.model or "")
    model, config, pieces = start.model, start.config, start.tokenizers
    save_model(start.path, model, config, tokenizers=pieces, eight_bits=eight_bits)
    result, said = run(tuning, 50, 10, 20, 30, 40)
    assert result.progress.best_step == 0
    begun, ended = open_folder(start.path), open_folder(tuning.out)
    assert (begun.config.format, ended.config.format) == (number, 2)
    assert same(dict(begun.model.named_parameters()), dict(ended.model.named_parameters()))
    assert "step 0: validation" in said
    assert figures(tuning)[0][0] == 0


def test_interrupted_fine_tuning_ends_the_same(tuning: TranslateRecipe) -> None:
    """Fine-tuning with frozen parts ends with the same bits after an interruption."""
    tuning = replace(tuning, start=replace(tuning.start, freeze=("encoder", "src_embedding")))
    whole = replace(tuning, out=tuning.out + "-whole")
    bleu = [5, 10, 30, 20, 31]
    run(whole, *bleu)
    assert interrupt(tuning, 3, bleu).interrupted
    (Path(tuning.start.model or "") / "model.safetensors").unlink()  # the checkpoint has them all
    run(tuning, *bleu[2:])
    assert_same_runs(tuning, whole)


def test_a_damaged_start_leaves_no_folder(tuning: TranslateRecipe) -> None:
    """A truncated model is refused before texts are read or anything is written."""
    console, file = make_console(terminal=False)
    weights = Path(tuning.start.model or "") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(InputError, match="damaged"):
        train_scored(tuning, Scorer(iter([])), console)
    assert file.getvalue() == ""
    assert not Path(tuning.out).exists()


def test_rows_without_a_piece_stay(tuning: TranslateRecipe, tmp_path: Path) -> None:
    """Embedding rows beyond the tokenizer's pieces, as in published models, are kept."""
    start = open_folder(tuning.start.model or "")
    size = start.tokenizers[0].vocab_size + 5
    model = replace(tuning.model, src_vocab_size=size, tgt_vocab_size=size)
    wide = replace(start.config, model=model)
    save_model(tmp_path / "wide", build(model), wide, tokenizers=start.tokenizers)
    tuned = start_from(replace(tuning, out=str(tmp_path / "tuned")), open_folder(tmp_path / "wide"))
    run(tuned, 1, 2, 3, 4, 0)
    assert len(exported(tuned)["src_embedding.weight"]) == size
