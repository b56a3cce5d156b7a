"""Comparison of translations with references, and warnings about test sets."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import pytest
from tests.unit.tasks.tiny import save_translator

from dragoman.errors import InputError
from dragoman.evaluate import evaluate
from dragoman.folder.opening import open_folder
from dragoman.plain import to_plain
from dragoman.tasks.evaluation import EvaluationData, Report
from dragoman.tasks.translate.measuring import evaluate_translator
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe

CHINESE = ["我喜欢学习人工智能。", "他在公园里看书。", "OK", "今天天气很好。"]


def write(path: Path, lines: list[str]) -> Path:
    """Write a file of lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def judged(folder: Path, hyp: list[str], ref: list[str], **more: str) -> Report:
    """Return the report of a file of translations."""
    test = EvaluationData(ref=(write(folder / "ref", ref),), **more)  # type: ignore[arg-type]
    return evaluate_translator(write(folder / "hyp", hyp), test)


def measured(folder: Path, references: list[str], **more: str) -> Report:
    """Return the report of a file whose last line is wrong."""
    return judged(folder, [*references[:-1], "x"], references, **more)


@pytest.mark.parametrize(
    ("references", "language"),
    [
        (CHINESE, "zh"),
        (["私は本を読みます。", "東京。", "これは犬です。"], "ja"),
        (["ฉันรักเธอ", "สวัสดี"], "th"),
    ],
)
def test_a_script_without_spaces_chooses_the_tokenizer(
    tmp_path: Path, references: list[str], language: str
) -> None:
    """If no language is named, the script decides, and a message says so."""
    report = measured(tmp_path, references)
    alone = evaluate([*references[:-1], "x"], references, tgt_lang=language)
    assert report.figures["bleu_signature"] == alone.bleu_signature
    assert any(f"look like {language}, so BLEU takes" in each for each in report.warnings)


@pytest.mark.parametrize("others", [0, 3])
def test_another_form_of_unicode_is_told(tmp_path: Path, others: int) -> None:
    """Either side may differ; two sides in the same form, whichever it is, are fine."""
    one, other = ([normalize(form, "ọkọ̀ mẹ́ta")] * 5 + ["x"] * others for form in ("NFC", "NFD"))
    for hyp, ref, count in ((one, other, 1), (other, one, 1), (other, other, 0), (one, one, 0)):
        warnings = judged(tmp_path, hyp, ref).warnings
        assert sum("not in Unicode's form NFC" in each for each in warnings) == count


@pytest.mark.parametrize(
    ("hyp", "ref", "told"),
    [
        (["a", "", " "], ["a", "b", "c"], "hyp has nothing for 2 lines of the references"),
        (["a", "b", "c"], ["a", "", "c"], "1 reference is empty where there is a translation"),
        (["a", "", "c"], ["a", "", "c"], ""),
    ],
)
def test_empty_lines_are_told(tmp_path: Path, hyp: list[str], ref: list[str], told: str) -> None:
    """Empty translations, as after a crash, and references are reported unless both are."""
    warnings = judged(tmp_path, hyp, ref).warnings
    found = [each for each in warnings if "nothing for" in each or "empty" in each]
    assert len(found) == bool(told)
    assert all(told in each for each in found)


def test_what_is_told_is_taken(tmp_path: Path) -> None:
    """An explicit tokenizer, an explicit language or words with spaces need no guess."""
    for report in (
        measured(tmp_path, CHINESE, tokenize="13a"),
        measured(tmp_path, CHINESE, tgt_lang="de"),
        measured(tmp_path, ["a dog", "the cat 猫", "OK"]),
    ):
        assert "tok:13a" in report.figures["bleu_signature"]
        assert not any("look like" in each for each in report.warnings)


def test_translations_may_come_from_a_pipe(tmp_path: Path) -> None:
    """Translations may come from a pipe such as `--against <(...)`."""
    ref = write(tmp_path / "ref", ["a dog"])
    read, end = os.pipe()
    os.write(end, b"a dog\n")
    os.close(end)
    test = EvaluationData(ref=(ref,), against=Path(f"/dev/fd/{read}"))
    report = evaluate_translator(ref, test)
    os.close(read)
    assert report.figures["against"]["bleu"] == report.figures["bleu"]


def test_translations_that_are_like_their_sources_are_told(tmp_path: Path) -> None:
    """For example with swapped sides; in one language, a model may change little."""
    write(tmp_path / "de", ["der Hund schläft", "ein Haus"])
    write(tmp_path / "en", ["the dog sleeps", "a house"])
    hyp = write(tmp_path / "hyp", ["ein Hund schlief", "ein Haus"])
    for src, ref, tgt_lang, told in (
        *(("de", "en", "en", True), ("en", "de", "de", False)),
        ("de", "en", "de", False),
    ):
        files = {"src": tmp_path / src, "ref": (tmp_path / ref,)}
        test = EvaluationData(**files, src_lang=src, tgt_lang=tgt_lang)  # type: ignore[arg-type]
        warnings = evaluate_translator(hyp, test).warnings
        assert any("whether --src" in each for each in warnings) == told


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """A file of translations needs no sources, but COMET does."""
    file = write(tmp_path / "a", ["a"])
    with pytest.raises(InputError, match=r"give --src\."):
        evaluate_translator(file, EvaluationData(ref=(file,), comet=file))


LINES = [f"the dog {verb} the big house behind the tree" for verb in ("sees", "runs", "is", "was")]


def write_recipe(model: Path, src: Path, tgt: Path) -> None:
    """Make a folder look as if its model was trained on two files."""
    recipe = replace(TranslateRecipe(), data=DataConfig(src=str(src), tgt=str(tgt)))
    (model / "training").mkdir()
    text = json.dumps(to_plain(recipe))
    (model / "training" / "recipe.json").write_text(text, encoding="utf-8")


def warnings_of(model: Path, src: Path, ref: Path) -> list[str]:
    """Return the warnings about the files, without that about a random model's score."""
    report = evaluate_translator(open_folder(model), EvaluationData(src=src, ref=(ref,)))
    return [warning for warning in report.warnings if warning.startswith(str(ref))]


def test_a_test_set_is_checked(tmp_path: Path) -> None:
    """Pairs from training, and a source that is its own reference, are reported."""
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


DAMAGE = {
    "gone": lambda _, src: src.unlink(),
    "a device": lambda _, src: (src.unlink(), src.symlink_to("/dev/zero")),
    "other lines": lambda _, src: write(src, ["one line"]),
    "damaged": lambda model, _: (model / "training" / "recipe.json").write_text("{"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_training_texts_need_not_be_there(
    tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """Without them, or with something other than files, nothing is read or reported."""
    model = save_translator(tmp_path / "model")
    src, seen = write(tmp_path / "src", LINES), write(tmp_path / "seen", LINES)
    ref = write(tmp_path / "ref", ["我喜欢学习。"] * 4)
    write_recipe(model, seen, ref)
    damage(model, seen)
    assert warnings_of(model, src, ref) == []
