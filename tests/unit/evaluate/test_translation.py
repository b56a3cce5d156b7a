"""Scores: sacreBLEU's own, to the last digit."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.evaluate import bleu_tokenizer, evaluate

REFERENCES = [
    "The cat sat on the mat, didn't it?",
    "Two dogs are running (fast) through 3.14 fields.  ",
    "我喜欢学习人工智能。",
    "",
    "Ein Mann & eine Frau – \u201egut\u201c!",
]
HYPOTHESES = [
    "The cat sat on a mat , didn't it ?",
    "Two dogs run fast through 3.14 fields.",
    "我喜欢 学习智能。 ",
    "nothing",
    "Ein Mann und eine Frau – \u201egut\u201c.",
]


@pytest.mark.parametrize("tokenize", ["13a", "zh", "char", "intl", "none"])
def test_the_scores_are_those_of_sacrebleus_command(tmp_path: Path, tokenize: str) -> None:
    """Same files, same tokenizer: the same figures in 12 decimals and the same signatures."""
    for name, lines in (("ref", REFERENCES), ("hyp", HYPOTHESES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(tmp_path / "ref"),
        "-i",
        str(tmp_path / "hyp"),
    ]
    options = ["-m", "bleu", "chrf", "-tok", tokenize, "-w", "12", "-f", "json"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=True, timeout=120
    )
    bleu, chrf = json.loads(done.stdout)
    scores = evaluate(HYPOTHESES, REFERENCES, tokenize=tokenize)
    assert f"{scores.bleu:.12f}" == f"{bleu['score']:.12f}"
    assert f"{scores.chrf:.12f}" == f"{chrf['score']:.12f}"
    assert scores.bleu_signature == bleu["signature"]
    assert scores.chrf_signature == chrf["signature"]


@pytest.mark.parametrize(
    ("bleu", "reading"),
    [
        (0.0, "not usable yet"),
        (9.99, "not usable yet"),
        (10.0, "the gist is hard to get"),
        (33.9, "understandable to good"),
        (60.0, "nearly the references themselves"),
        (100.0, "nearly the references themselves"),
    ],
)
def test_a_bleu_is_put_into_words(bleu: float, reading: str) -> None:
    """A bound belongs to the words above it."""
    assert replace(evaluate(["a"], ["a"]), bleu=bleu).reading == reading


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("zh", "zh"), ("zh-CN", "zh"), ("ZH_tw", "zh"), ("ja", "char"), ("de", "13a"), (None, "13a")],
)
def test_the_language_chooses_the_tokenizer(language: str | None, tokenizer: str) -> None:
    """Unless one is named."""
    assert bleu_tokenizer(language) == tokenizer
    assert f"tok:{tokenizer}|" in evaluate(["a"], ["a"], tgt_lang=language).bleu_signature
    assert "tok:char|" in evaluate(["a"], ["a"], tgt_lang=language, tokenize="char").bleu_signature


def test_unequal_counts_are_told() -> None:
    """With both counts."""
    with pytest.raises(InputError, match="1 translation and 2 references"):
        evaluate(["a"], ["a", "b"])


def test_nothing_to_compare_is_told() -> None:
    """No score of nothing."""
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate([], [])


def test_an_unknown_tokenizer_is_told_with_the_nearest() -> None:
    """A misspelt name is no other tokenizer."""
    with pytest.raises(InputError, match=r"no tokenizer '13b'.*did you mean 13a\?"):
        evaluate(["a"], ["a"], tokenize="13b")
