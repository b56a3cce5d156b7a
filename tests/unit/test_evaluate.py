"""Scores: sacreBLEU's own, to the last digit; those of labels and spans, scikit-learn's."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_letters

import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dragoman.data.tagged import find_spans
from dragoman.errors import InputError
from dragoman.evaluate import (
    bleu_tokenizer,
    compare,
    evaluate,
    label_scores,
    tag_scores,
)

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


def sacrebleu(*arguments: str | Path) -> str:
    """What sacreBLEU's own command prints."""
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "-w", "12"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def write(path: Path, lines: Sequence[str]) -> Path:
    """The lines in a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


SECOND = [
    "The cat was sitting on the mat.",
    "Two dogs run.",
    "我喜欢学习。",
    "nothing",
    "Ein Mann.",
]


@pytest.mark.parametrize(
    ("tokenize", "more"), [("13a", []), ("zh", []), ("intl", []), ("13a", [SECOND])]
)
def test_the_scores_are_those_of_sacrebleus_command(
    tmp_path: Path, tokenize: str, more: list[list[str]]
) -> None:
    """Same files, same tokenizer: the same figures in 12 decimals and the same signatures."""
    references = [REFERENCES, *more]
    files = [write(tmp_path / str(n), lines) for n, lines in enumerate(references)]
    hyp = write(tmp_path / "hyp", HYPOTHESES)
    options = ("-m", "bleu", "chrf", "-tok", tokenize, "-f", "json")
    bleu, chrf = json.loads(sacrebleu(*files, "-i", hyp, *options))
    scores = evaluate(HYPOTHESES, *references, tokenize=tokenize)
    assert f"{scores.bleu:.12f}" == f"{bleu['score']:.12f}"
    assert f"{scores.chrf:.12f}" == f"{chrf['score']:.12f}"
    assert scores.bleu_signature == bleu["signature"]
    assert scores.chrf_signature == chrf["signature"]


def test_exact_is_what_equals_any_reference() -> None:
    """One of five equals its second reference, and none its first."""
    assert evaluate(HYPOTHESES, REFERENCES, SECOND).exact == 20.0
    assert evaluate(HYPOTHESES, REFERENCES).exact == 0.0


@pytest.mark.parametrize(
    ("bleu", "reading"),
    [
        (9.99, "not usable yet"),
        (10.0, "the gist is hard to get"),
        (60.0, "nearly the references themselves"),
    ],
)
def test_a_bleu_is_put_into_words(bleu: float, reading: str) -> None:
    """A bound belongs to the words above it."""
    assert replace(evaluate(["a"], ["a"]), bleu=bleu).reading == reading


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("ZH_tw", "zh"),
        ("ja", "char"),
        ("bo", "char"),
        ("de", "13a"),
        (None, "13a"),
    ],
)
def test_the_language_chooses_the_tokenizer(language: str | None, tokenizer: str) -> None:
    """Unless one is named."""
    assert bleu_tokenizer(language) == tokenizer
    assert f"tok:{tokenizer}|" in evaluate(["a"], ["a"], tgt_lang=language).bleu_signature
    assert "tok:char|" in evaluate(["a"], ["a"], tgt_lang=language, tokenize="char").bleu_signature


def test_two_systems_are_compared_as_by_sacrebleus_command(tmp_path: Path) -> None:
    """Differences and both p are its own, to the last digit, with its signatures."""
    references = [f"the {word} sat on the {word} mat by the sea" for word in ascii_letters]
    one = [line.replace("mat by", "mat at") for line in references]
    two = [line if n % 2 else line.replace("sat on the", "sits") for n, line in enumerate(one)]
    ref, base = write(tmp_path / "ref", references), write(tmp_path / "two", two)
    command = (ref, "-i", base, write(tmp_path / "one", one), "-m", "bleu", "chrf")
    found = compare(one, two, references)
    assert found.bleu.significant
    old, new = json.loads(sacrebleu(*command, "--paired-ar", "-f", "json"))
    resampled = re.findall(r"p = ([\d.]+)", sacrebleu(*command, "--paired-bs", "-f", "text"))
    for name, ours, p in zip(("BLEU", "chrF2"), (found.bleu, found.chrf), resampled, strict=True):
        assert ours.difference == pytest.approx(new[name]["score"] - old[name]["score"], abs=1e-9)
        assert ours.p_randomisation == pytest.approx(new[name]["p_value"], abs=1e-9)
        assert f"{ours.p_bootstrap:.4f}" == p
    assert {each.line for each in found.lines} == set(range(1, 52, 2))
    assert {(each.chrf > each.other_chrf, each.text in one) for each in found.lines} == {
        (True, True)
    }


def test_a_system_does_not_differ_from_itself() -> None:
    """No line differs, and no difference is significant."""
    found = compare(HYPOTHESES, [f"{line} " for line in HYPOTHESES], REFERENCES)
    assert (found.bleu.difference, found.bleu.p_bootstrap, found.lines) == (0.0, 1.0, ())
    assert not found.chrf.significant


@pytest.mark.parametrize("differing", [1, 3, 5])
def test_few_lines_tell_nothing(differing: int) -> None:
    """Of all 2^k swaps of k lines two give the whole difference, so p is 2^(1 - k) or more."""
    references = [f"the {word} sat on the {word} mat by the sea" for word in ascii_letters]
    found = compare(references, ["nothing"] * differing + references[differing:], references)
    assert found.bleu.p_randomisation == found.chrf.p_randomisation == 2 ** (1 - differing)
    assert not found.bleu.significant


def test_lines_that_differ_most_come_first() -> None:
    """By the chrF2 of the line alone; equal lines are none."""
    references = ["a small dog", "a small cat", "a small fox"]
    found = compare(references, ["a small dot", "nothing", "a small fox"], references)
    assert [each.line for each in found.lines] == [2, 1]
    assert [each.chrf for each in found.lines] == [100.0, 100.0]


def test_an_unknown_tokenizer_is_told_with_the_nearest() -> None:
    """A misspelt name is no other tokenizer."""
    with pytest.raises(InputError, match=r"no tokenizer '13b'.*did you mean 13a\?"):
        evaluate(["a"], ["a"], tokenize="13b")


TAGS = ("O", "O", "B-A", "I-A", "B-B", "I-B")


def test_the_figures_are_those_of_scikit_learn() -> None:
    """Accuracy, precision, recall, F1 and count of each label, on made answers."""
    right = random.choices("abc", (5, 3, 1), k=200)
    predicted = [label if random.random() < 0.6 else random.choice("abd") for label in right]
    scores = label_scores(right, predicted)
    assert scores.accuracy == pytest.approx(100 * accuracy_score(right, predicted))
    labels = sorted({*right, *predicted})
    theirs = precision_recall_fscore_support(right, predicted, labels=labels, zero_division=0.0)
    for label, precision, recall, f1, count in zip(labels, *theirs, strict=True):
        ours = scores.labels[label]
        assert ours.precision == pytest.approx(100 * precision)
        assert ours.recall == pytest.approx(100 * recall)
        assert ours.f1 == pytest.approx(100 * f1)
        assert ours.count == count
    assert scores.macro_f1 == pytest.approx(100 * sum(theirs[2]) / len(labels))


def test_the_most_frequent_label_alone() -> None:
    """What there is to beat: three of four texts."""
    scores = label_scores(["x", "x", "x", "y"], ["y", "y", "y", "y"])
    assert (scores.majority, scores.accuracy) == (75.0, 25.0)


def test_the_figures_are_those_of_counting() -> None:
    """Sets of spans, intersected: the same precision, recall and F1, malformed answers too."""
    right = [random.choices(TAGS, k=random.randint(1, 9)) for _ in range(60)]
    predicted = [
        [tag if random.random() < 0.8 else random.choice(TAGS) for tag in tags] for tags in right
    ]
    spans = [
        {(i, s) for i, tags in enumerate(all_) for s in find_spans(tags)[0]}
        for all_ in (right, predicted)
    ]
    scores = tag_scores(right, predicted)
    for name, measures in {
        "A": scores.types["A"],
        "B": scores.types["B"],
        "": scores.spans,
    }.items():
        there, found = ({(i, s) for i, s in each if s.type.startswith(name)} for each in spans)
        correct = len(there & found)
        assert measures is not None
        assert measures.precision == pytest.approx(100 * correct / len(found))
        assert measures.recall == pytest.approx(100 * correct / len(there))
        assert measures.f1 == pytest.approx(200 * correct / (len(found) + len(there)))
        assert measures.count == len(there)
    assert set(scores.figures) == {"accuracy", "f1", "precision", "recall"}


def test_tags_of_single_words_have_an_accuracy_alone() -> None:
    """Parts of speech form no spans."""
    scores = tag_scores([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    assert scores.spans is None
    assert scores.figures == {"accuracy": pytest.approx(200 / 3)}


@pytest.mark.parametrize(
    ("compare", "right", "predicted", "words"),
    [
        (evaluate, ["a"], ["a", "b"], "1 answers for 2 references"),
        (evaluate, [], [], "nothing to evaluate"),
        (label_scores, ["x"], [], "0 answers for 1 text;"),
        (label_scores, [], [], "nothing to evaluate"),
        (tag_scores, [["O"]], [], "0 answers for 1 sentence;"),
        (tag_scores, [["O"], ["O", "O"]], [["O"], ["O"]], "Sentence 2 has 2 tags and gets 1"),
        (tag_scores, [], [], "nothing to evaluate"),
        (tag_scores, [[]], [[]], "nothing to evaluate"),
    ],
)
def test_what_cannot_be_compared(
    compare: Callable[[Sequence[object], Sequence[object]], object],
    right: Sequence[object],
    predicted: Sequence[object],
    words: str,
) -> None:
    """Two lengths, or nothing: one sentence."""
    with pytest.raises(InputError, match=words):
        compare(right, predicted)
