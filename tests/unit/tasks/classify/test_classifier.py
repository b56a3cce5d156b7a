"""Text classification, and training for it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.tasks.readers import LABELS, READING, TOKENIZER, make_classifier
from tests.unit.train.encoder_recipes import classify_recipe
from tests.unit.train.made import make_job

from dragoman.errors import InputError
from dragoman.models.heads import ClassificationHead
from dragoman.tasks.classify.task import ONE_LABEL, ClassifyRecipe
from dragoman.tasks.lines import to_chunks


@pytest.fixture
def recipe(tmp_path: Path) -> ClassifyRecipe:
    """A recipe that classifies texts as good or bad."""
    return classify_recipe(tmp_path)


def test_one_label_for_all_is_a_warning(recipe: ClassifyRecipe) -> None:
    """A model that ignores its input predicts one label, which is right for some texts."""
    job, _ = make_job(recipe)
    output = job.model.get_submodule("head.output")
    assert isinstance(output, torch.nn.Linear)
    with torch.no_grad():
        output.weight.zero_()
        output.bias[1] = 5.0
    found = job.measure()
    assert found.warnings == (ONE_LABEL,)
    share = sum(int(batch.labels_B.sum()) for batch in job.validation) / len(job.held)
    assert 0 < share < 1
    assert found.scores == {"accuracy": pytest.approx(100 * share)}


def test_labels_can_be_given_in_an_order(recipe: ClassifyRecipe) -> None:
    """A label that is not in the given order is an error with its line."""
    ordered = replace(recipe.model, head=ClassificationHead(labels=("1", "0")))
    job, _ = make_job(replace(recipe, model=ordered))
    assert job.config.model.head.labels == ("1", "0")
    wrong = replace(ordered, head=ClassificationHead(labels=("1", "2")))
    with pytest.raises(InputError, match="line 1 has the label '0'"):
        make_job(replace(recipe, model=wrong))


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
