"""Texts to labels."""

import pytest
import torch
from tests.unit.tasks.readers import (
    CLASSIFY,
    LABELS,
    READING,
    TOKENIZER,
    make_classifier,
    make_model,
)
from tests.unit.tasks.tiny import random_lines

from dragoman.tasks.lines import Chunk


def test_the_probabilities_are_the_models() -> None:
    """Softmax of the logits of bos, pieces, eos; the best label first."""
    text = random_lines(1, seed=1, longest=12)[0]
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
    result = classifier._result([Chunk("a b c", [5] * 3), Chunk("d", [5])], found)
    assert result.probabilities == pytest.approx({"bad": 0.6, "good": 0.2, "none of both": 0.2})
