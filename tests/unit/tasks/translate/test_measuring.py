"""Finished translations are compared as they should be, without being told how."""

import os
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.evaluate import evaluate
from dragoman.tasks.evaluation import EvaluationData, Report
from dragoman.tasks.translate.measuring import evaluate_translator

CHINESE = ["我喜欢学习人工智能。", "他在公园里看书。", "OK", "今天天气很好。"]


def measured(
    folder: Path, references: list[str], tokenize: str | None = None, tgt_lang: str | None = None
) -> Report:
    """The report of a file that misses the last reference."""
    ref, hyp = folder / "ref", folder / "hyp"
    ref.write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
    hyp.write_text("".join(f"{line}\n" for line in [*references[:-1], "x"]), encoding="utf-8")
    return evaluate_translator(
        hyp, EvaluationData(ref=(ref,), tokenize=tokenize, tgt_lang=tgt_lang)
    )


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
    """Where no language is named; and that is said."""
    report = measured(tmp_path, references)
    alone = evaluate([*references[:-1], "x"], references, tgt_lang=language)
    assert report.figures["bleu_signature"] == alone.bleu_signature
    assert any(f"look like {language}, so BLEU takes" in each for each in report.warnings)


def test_what_is_told_is_taken(tmp_path: Path) -> None:
    """A tokenizer or a language that is named, and words with spaces, need no guess."""
    for report in (
        measured(tmp_path, CHINESE, tokenize="13a"),
        measured(tmp_path, CHINESE, tgt_lang="de"),
        measured(tmp_path, ["a dog", "the cat 猫", "OK"]),
    ):
        assert "tok:13a" in report.figures["bleu_signature"]
        assert not any("look like" in each for each in report.warnings)


def test_translations_may_come_from_a_pipe(tmp_path: Path) -> None:
    """As the shell makes of `--against <(...)`."""
    ref = tmp_path / "ref"
    ref.write_text("a dog\n", encoding="utf-8")
    read, write = os.pipe()
    os.write(write, b"a dog\n")
    os.close(write)
    test = EvaluationData(ref=(ref,), against=Path(f"/dev/fd/{read}"))
    report = evaluate_translator(ref, test)
    os.close(read)
    assert report.figures["against"]["bleu"] == report.figures["bleu"]


def test_translations_that_are_like_their_sources_are_told(tmp_path: Path) -> None:
    """As where the sides are swapped; not in one language, where a model may change little."""
    files = {"de": "der Hund schläft\nein Haus\n", "en": "the dog sleeps\na house\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    hyp = tmp_path / "hyp"
    hyp.write_text("ein Hund schlief\nein Haus\n", encoding="utf-8")

    def are_told(src: str, ref: str, tgt_lang: str) -> bool:
        test = EvaluationData(
            src=tmp_path / src, ref=(tmp_path / ref,), src_lang=src, tgt_lang=tgt_lang
        )
        return any("whether --src" in each for each in evaluate_translator(hyp, test).warnings)

    assert are_told("de", "en", "en")
    assert not are_told("en", "de", "de")
    assert not are_told("de", "en", "de")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Alone; a file of translations needs no sources."""
    file = tmp_path / "a"
    file.write_text("a\n")
    with pytest.raises(InputError, match=r"give --ref\."):
        evaluate_translator(file, EvaluationData(src=file))
    with pytest.raises(InputError, match=r"give --src\."):
        evaluate_translator(file, EvaluationData(ref=(file,), comet=file))
    with pytest.raises(InputError, match=r"give --src and --ref\."):
        evaluate_translator(file, EvaluationData(comet=file))
