"""Text classification."""

import pytest
from tests.unit.tasks.readers import (
    LABELS,
    READING,
    TOKENIZER,
    make_classifier,
)

from dragoman.tasks.lines import to_chunks


def test_a_long_text_is_read_in_parts() -> None:
    """Its probabilities are the mean over its parts, weighted by tokens, and it is flagged."""
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
    assert [*result.probabilities.values()] == sorted(result.probabilities.values(), reverse=True)
    best = next(iter(result.probabilities.items()))
    assert (str(result), result.probability) == (result.label, result.probability) == best
