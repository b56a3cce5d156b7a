"""Scores of labels and of tagged spans: counted by hand, and scikit-learn's."""

import random
from collections.abc import Callable, Sequence

import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dragoman.data.tagged import find_spans
from dragoman.errors import InputError
from dragoman.evaluate import label_scores, tag_scores

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


def test_a_span_is_right_when_both_ends_and_the_type_are() -> None:
    """One of three spans is found, one is too short, one has another type."""
    right = [["B-A", "I-A", "O", "B-B"], ["B-A", "I-A"]]
    predicted = [["B-A", "I-A", "O", "B-A"], ["B-A", "O"]]
    scores = tag_scores(right, predicted)
    assert scores.spans is not None
    assert scores.spans.f1 == pytest.approx(100 / 3)
    assert scores.types["A"].precision == pytest.approx(100 / 3)
    assert scores.types["A"].recall == pytest.approx(50)
    assert (scores.types["B"].f1, scores.types["B"].count) == (0.0, 1)
    assert scores.accuracy == pytest.approx(100 * 4 / 6)
    assert set(scores.figures) == {"accuracy", "f1", "precision", "recall"}


def test_the_figures_are_those_of_counting() -> None:
    """Sets of spans, intersected: the same precision, recall and F1, malformed answers too."""
    right = [random.choices(TAGS, k=random.randint(1, 9)) for _ in range(60)]
    predicted = [
        [tag if random.random() < 0.8 else random.choice(TAGS) for tag in tags] for tags in right
    ]
    correct = found = there = 0
    for one, two in zip(right, predicted, strict=True):
        ours, theirs = set(find_spans(one)[0]), set(find_spans(two)[0])
        correct, found, there = correct + len(ours & theirs), found + len(theirs), there + len(ours)
    scores = tag_scores(right, predicted).spans
    assert scores is not None
    assert scores.precision == pytest.approx(100 * correct / found)
    assert scores.recall == pytest.approx(100 * correct / there)
    assert scores.f1 == pytest.approx(200 * correct / (found + there))
    assert scores.count == there


def test_tags_of_single_words_have_an_accuracy_alone() -> None:
    """Parts of speech form no spans."""
    scores = tag_scores([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    assert scores.spans is None
    assert scores.figures == {"accuracy": pytest.approx(200 / 3)}


def test_nothing_is_found() -> None:
    """Zero, and no division by it."""
    scores = tag_scores([["B-A"]], [["O"]])
    assert scores.spans is not None
    assert (scores.spans.precision, scores.spans.recall, scores.spans.f1) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("compare", "right", "predicted", "words"),
    [
        (label_scores, ["x"], [], "1 texts and answers for 0"),
        (label_scores, [], [], "nothing to evaluate"),
        (tag_scores, [["O"]], [], "1 sentences and answers for 0"),
        (tag_scores, [["O"], ["O", "O"]], [["O"], ["O"]], "Sentence 2 has 2 tags and gets 1"),
        (tag_scores, [], [], "nothing to evaluate"),
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
