"""Scores of labels: counted by hand, and scikit-learn's."""

import random

import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dragoman.errors import InputError
from dragoman.evaluate import label_scores


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


@pytest.mark.parametrize(
    ("right", "predicted", "words"),
    [(["x"], [], "1 texts and answers for 0"), ([], [], "nothing to evaluate")],
)
def test_what_cannot_be_compared(right: list[str], predicted: list[str], words: str) -> None:
    """Two lengths, or nothing: one sentence."""
    with pytest.raises(InputError, match=words):
        label_scores(right, predicted)
