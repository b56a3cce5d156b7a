"""Texts to labels."""

import random
from pathlib import Path

import pytest
import torch
from tests.processors import needs_independent_rows
from tests.unit.tasks.readers import (
    CLASSIFY,
    LABELS,
    MASKED,
    READING,
    TAG,
    TOKENIZER,
    make_classifier,
    make_model,
    save_reader,
)
from tests.unit.tasks.tiny import random_lines, save_translator

import dragoman
from dragoman.errors import InputError
from dragoman.tasks.classify.classifier import Classifier

LINES = [*random_lines(12, seed=1, longest=12), "", "   ", "😀", *random_lines(3, 2, longest=60)]


def test_the_probabilities_are_the_models() -> None:
    """Softmax of the logits of bos, pieces, eos; the best label first."""
    text = LINES[0]
    result = make_classifier().classify(text)
    ids = [TOKENIZER.bos_id, *TOKENIZER.encode(text), TOKENIZER.eos_id]
    with torch.inference_mode():
        expected_C = make_model(CLASSIFY).eval()(torch.tensor([ids]))[0].softmax(-1)
    assert result.probabilities == pytest.approx(
        dict(zip(LABELS, expected_C.tolist(), strict=True)), abs=1e-5
    )
    assert result.label == LABELS[int(expected_C.argmax())] == next(iter(result.probabilities))
    assert result.probability == max(result.probabilities.values())
    assert str(result) == result.label


@needs_independent_rows
def test_as_many_results_as_texts_in_order() -> None:
    """A list gives a list, a text one result, a stream the same as the list."""
    classifier = make_classifier()
    results = classifier.classify(LINES)
    assert len(results) == len(LINES)
    assert [classifier.classify(line) for line in LINES] == results
    assert list(classifier.stream(iter(LINES), window=4)) == results
    assert len({result.label for result in results}) > 1
    assert classifier.classify([]) == []


def test_an_empty_text_has_no_label() -> None:
    """And says so."""
    result = make_classifier().classify(" \t")
    assert (result.label, result.probabilities, result.flags) == ("", {}, ("empty",))


def test_a_long_text_is_read_in_parts() -> None:
    """Its probabilities are the mean of those of its parts, by their tokens, and it is flagged."""
    classifier = make_classifier()
    parts = ["the cat sees a big tree. ", "a dog runs! "]
    text = "".join(4 * parts).strip()
    assert len(TOKENIZER.encode(text)) > READING.max_tokens
    result = classifier.classify(text)
    assert result.flags == ("split",)
    assert sum(result.probabilities.values()) == pytest.approx(1.0)
    short = classifier.classify("a dog runs")
    assert short.flags == ()


def test_the_mean_weighs_by_tokens() -> None:
    """A part of three times the tokens weighs three times as much."""
    classifier = make_classifier()
    found = [torch.tensor([0.8, 0.1, 0.1]), torch.tensor([0.0, 0.5, 0.5])]
    result = classifier._result([[5] * 3, [5]], found)
    assert result.probabilities == pytest.approx({"bad": 0.6, "good": 0.2, "none of both": 0.2})


def test_a_model_in_training_stays_there() -> None:
    """It answers without dropout, and its mode never changes."""
    model = make_model(CLASSIFY).train()
    classifier = Classifier(model, TOKENIZER, LABELS, READING)
    assert classifier.classify(LINES[0]) == make_classifier().classify(LINES[0])
    assert model.training


@needs_independent_rows
def test_neighbours_change_no_bit() -> None:
    """Any order and any budget of tokens give every probability to the last bit."""
    classifier = make_classifier()
    expected = dict(zip(LINES, classifier.classify(LINES), strict=True))
    for budget in (1, 60, 200, 10_000):
        lines = random.sample(LINES, k=len(LINES))
        found = classifier.classify(lines, max_batch_tokens=budget)
        assert found == [expected[line] for line in lines]


def test_a_folder_is_loaded_by_its_kind(tmp_path: Path) -> None:
    """`dragoman.load` gives a Classifier that answers as the one in memory."""
    classifier = dragoman.load(save_reader(tmp_path / "model", CLASSIFY), device="cpu")
    assert isinstance(classifier, dragoman.Classifier)
    assert classifier.reading == READING
    assert classifier.classify(LINES) == make_classifier().classify(LINES)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    """One sentence that says what the model does instead."""
    tagger, masked = save_reader(tmp_path / "tags", TAG), save_reader(tmp_path / "mlm", MASKED)
    with pytest.raises(InputError, match="tags words \\(dragoman tag\\)"):
        Classifier.load(tagger)
    with pytest.raises(InputError, match="is there to start from \\(dragoman train --from\\)"):
        dragoman.load(masked)
    with pytest.raises(InputError, match="translates"):
        Classifier.load(save_translator(tmp_path / "en-zh"))
