"""Learning to tag words."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.encoder_recipes import tag_recipe
from tests.unit.train.made import make_console

from dragoman.errors import InputError
from dragoman.evaluate import tag_scores
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.tag.task import TagJob, TagRecipe, assemble
from dragoman.tasks.task import train
from dragoman.train.runfolder import RunFolder


@pytest.fixture
def recipe(tmp_path: Path) -> TagRecipe:
    """Who is named."""
    return tag_recipe(tmp_path)


def make_job(recipe: TagRecipe) -> TagJob:
    """The job of a recipe, whose folder stays empty."""
    with RunFolder.of(recipe).open(recipe) as folder:
        return assemble(recipe, folder, lambda _: None)


def test_names_are_found(recipe: TagRecipe) -> None:
    """Of one word and of two, in unseen sentences; the folder tags, and its card says how well."""
    console, file = make_console(terminal=False)
    result = train(recipe, console=console)
    assert result.progress.best is not None
    assert result.progress.best["f1"] > 95
    assert "8 sentences of" in file.getvalue()
    tagger = Tagger.load(recipe.out)
    (tagged,) = tagger.tag_words([["the", "so", "Ann", "Bo", "film"]])
    assert [(span.label, span.text) for span in tagged.spans] == [("PER", "Ann Bo")]
    assert tagger.reading.words == "spaced"
    card = (Path(recipe.out) / "README.md").read_text(encoding="utf-8")
    assert "- f1: " in card
    assert "dragoman tag" in card


def test_what_is_measured_forms_spans(recipe: TagRecipe) -> None:
    """A head that would say I-PER for every word says B-PER first: tags are chosen together."""
    job = make_job(recipe)
    output = job.model.get_submodule("head.output")
    assert isinstance(output, torch.nn.Linear)
    with torch.no_grad():
        output.weight.zero_()
        output.bias.copy_(torch.tensor([0.0, 0.5, 5.0]))
    right = job.held.by_sentence(job.held.tags)
    together = [["B-PER", *["I-PER"] * (len(tags) - 1)] for tags in right]
    assert job.measure().scores == tag_scores(right, together).figures
    alone = [["I-PER"] * len(tags) for tags in right]
    assert job.measure().scores != tag_scores(right, alone).figures


def test_characters_are_known_by_their_length(recipe: TagRecipe, tmp_path: Path) -> None:
    """Where every word of the training data is one character, the folder says so."""
    path = tmp_path / "characters.conll"
    path.write_text("张 B-PER\n三 E-PER\n来 O\n\n" * 20, encoding="utf-8")
    job = make_job(replace(recipe, data=replace(recipe.data, train=str(path))))
    assert job.config.reading is not None
    assert job.config.reading.words == "characters"


def test_tags_that_form_no_spans_need_another_metric(recipe: TagRecipe, tmp_path: Path) -> None:
    """Parts of speech have an accuracy and no F1."""
    path = tmp_path / "speech.conll"
    path.write_text("the DET\ncat NOUN\nruns VERB\n\n" * 20, encoding="utf-8")
    plain = replace(recipe, data=replace(recipe.data, train=str(path)))
    with pytest.raises(InputError, match=r'set train.metric = "accuracy"'):
        make_job(plain)
    job = make_job(replace(plain, train=replace(plain.train, metric="accuracy")))
    assert set(job.measure().scores) == {"accuracy"}
