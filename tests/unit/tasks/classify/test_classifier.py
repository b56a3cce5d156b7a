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

from dragoman.tasks.lines import to_chunks


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
    classifier, text = make_classifier(), f"{'the cat sees a big tree. ' * 4}a dog runs!"
    (chunks,) = to_chunks([text], TOKENIZER, READING.max_tokens)
    sizes = [len(chunk.ids) for chunk in chunks or ()]
    assert len({*sizes}) > 1
    parts = classifier.classify(chunk.text for chunk in chunks or ())
    assert {part.flags for part in parts} == {()}
    expected = {
        label: sum(n * part.probabilities[label] for n, part in zip(sizes, parts, strict=True))
        / sum(sizes)
        for label in LABELS
    }
    result = classifier.classify(text)
    assert result.probabilities == pytest.approx(expected, abs=1e-6)
    assert result.flags == ("split",)
