"""Learning to classify."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.encoder_recipes import classify_recipe
from tests.unit.train.made import make_job, trained

from dragoman.data.labelled import LabelledLayout
from dragoman.errors import InputError
from dragoman.models.heads import ClassificationHead
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.classify.task import ONE_LABEL, ClassifyRecipe


@pytest.fixture
def recipe(tmp_path: Path) -> ClassifyRecipe:
    """Whether a text is good."""
    return classify_recipe(tmp_path)


def named(recipe: ClassifyRecipe) -> ClassifyRecipe:
    """The labels with names."""
    layout = LabelledLayout(rename={"0": "negative", "1": "positive"})
    return replace(recipe, data=replace(recipe.data, layout=layout))


def test_the_word_that_decides_is_found(recipe: ClassifyRecipe) -> None:
    """In unseen texts too; the folder classifies, and its card says how well."""
    best, said = trained(named(recipe))
    assert best["accuracy"] == 100.0
    assert "8 texts of" in said
    classifier = Classifier.load(recipe.out)
    found = classifier.classify(["the good and the so", "bad very was"])
    assert [one.label for one in found] == ["positive", "negative"]
    assert classifier.reading.max_tokens == recipe.batch.max_length
    card = (Path(recipe.out) / "README.md").read_text(encoding="utf-8")
    assert "- accuracy: 100" in card
    assert "dragoman classify" in card


def test_one_label_for_all_is_a_warning(recipe: ClassifyRecipe) -> None:
    """A head that has an opinion and no eyes, which is right where that is the label."""
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
    """And one that is not among them is an error with its line."""
    ordered = replace(recipe.model, head=ClassificationHead(labels=("1", "0")))
    job, _ = make_job(replace(recipe, model=ordered))
    assert job.config.model.head.labels == ("1", "0")
    wrong = replace(ordered, head=ClassificationHead(labels=("1", "2")))
    with pytest.raises(InputError, match="line 1 has the label '0'"):
        make_job(replace(recipe, model=wrong))
