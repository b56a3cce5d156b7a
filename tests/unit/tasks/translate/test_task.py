"""Measuring a translator: what is said of its test set."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.tasks.tiny import save_translator

from dragoman.folder.opening import open_folder
from dragoman.plain import to_plain
from dragoman.tasks.task import EvaluationData
from dragoman.tasks.translate.measuring import evaluate_translator
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe

LINES = [f"the dog {verb} the big house behind the tree" for verb in ("sees", "runs", "is", "was")]


def write(path: Path, lines: list[str]) -> Path:
    """A file of lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_recipe(model: Path, src: Path, tgt: Path) -> None:
    """Let a model have been trained on two files."""
    recipe = replace(TranslateRecipe(), data=DataConfig(src=str(src), tgt=str(tgt)))
    (model / "training").mkdir()
    text = json.dumps(to_plain(recipe))
    (model / "training" / "recipe.json").write_text(text, encoding="utf-8")


def warnings_of(model: Path, src: Path, ref: Path) -> list[str]:
    """What is said of the files, the poor score of a random model aside."""
    report = evaluate_translator(open_folder(model), EvaluationData(src=src, ref=(ref,)))
    return [warning for warning in report.warnings if warning.startswith(str(ref))]


def test_a_test_set_is_checked(tmp_path: Path) -> None:
    """Pairs that training has seen, and a source that is its own reference, are told."""
    model = save_translator(tmp_path / "model")
    src = write(tmp_path / "src", LINES)
    ref = write(tmp_path / "ref", ["我喜欢学习。"] * 4)
    assert warnings_of(model, src, ref) == []
    write_recipe(model, src, ref)
    (told,) = warnings_of(model, src, ref)
    assert f"{ref}: 4 of the 4 pairs of at least 40 characters are in the training texts" in told
    told = "".join(warnings_of(model, src, src))
    assert f"{src}: source and target are the same text in 100% of the pairs" in told
    assert "in zh have no CJK letters but mostly LATIN ones" in told


def _gone(_model: Path, src: Path) -> None:
    src.unlink()


def _device(_model: Path, src: Path) -> None:
    src.unlink()
    src.symlink_to("/dev/zero")


def _other_lines(_model: Path, src: Path) -> None:
    write(src, ["one line"])


def _damaged(model: Path, _src: Path) -> None:
    (model / "training" / "recipe.json").write_text("{", encoding="utf-8")


@pytest.mark.parametrize("damage", [_gone, _device, _other_lines, _damaged])
def test_training_texts_need_not_be_there(
    tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """Nothing is said, and nothing but a file is read, where a folder does not have its texts."""
    model = save_translator(tmp_path / "model")
    src, seen = write(tmp_path / "src", LINES), write(tmp_path / "seen", LINES)
    ref = write(tmp_path / "ref", ["我喜欢学习。"] * 4)
    write_recipe(model, seen, ref)
    damage(model, seen)
    assert warnings_of(model, src, ref) == []
