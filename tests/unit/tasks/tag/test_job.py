"""Training a tagger."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.encoder_recipes import tag_recipe
from tests.unit.train.made import make_job, trained

from dragoman.data.tagged import read_tagged
from dragoman.errors import InputError
from dragoman.evaluate import tag_scores
from dragoman.folder.opening import open_folder
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.tag.task import TagRecipe
from dragoman.train.start import start_from


@pytest.fixture
def recipe(tmp_path: Path) -> TagRecipe:
    """A recipe that tags names."""
    return tag_recipe(tmp_path)


def test_what_was_learned_is_told(recipe: TagRecipe) -> None:
    """The messages have the validation set, the kind of words and the command to use."""
    job, said = make_job(recipe)
    assert any("8 sentences of" in each for each in said)
    assert job.config.reading.words == "spaced"
    assert "dragoman tag" in job.card(job.measure()).use


def test_use_reads_what_training_read(recipe: TagRecipe) -> None:
    """A tagger reads pieces and word features as validation does, and gives the same tags.

    Masking a piece masks the features of its word.
    """
    data = replace(recipe.data, valid=recipe.data.train)
    recipe = replace(recipe, data=data, model=replace(recipe.model, word_features=40))
    job = make_job(recipe)[0]
    assert job.model.words is not None
    with torch.no_grad():
        job.model.words.weight.mul_(5.0)
    tagger = Tagger(job.model, job.tokenizer, job.held.labels, job.config.reading)
    words = [each.words for each in read_tagged(data.training, data.layout)]
    found = [[word.tag for word in result.words] for result in tagger.tag_words(words)]
    right = job.held.by_sentence(job.held.tags)
    assert job.measure().scores == tag_scores(right, found).figures
    batch, blind = job.validation[0], list[torch.Tensor]()
    job.model.words.register_forward_hook(lambda _, given, __: blind.append(given[0]))
    noisy = replace(job, recipe=replace(recipe, batch=replace(recipe.batch, token_dropout=0.5)))
    noisy.loss(batch)
    assert batch.words_BLF is not None
    kept = (blind[0] == batch.words_BLF).all(-1)
    first = batch.tags_BL >= 0
    assert 0.2 < kept[first].float().mean() < 0.8
    assert not blind[0][~kept].any()


def test_a_tagger_without_looks_gets_them(recipe: TagRecipe) -> None:
    """Word features are added even to a model with the same head; an existing table is kept."""
    trained(recipe)
    other = replace(recipe, out=f"{recipe.out}-2", model=replace(recipe.model, word_features=40))
    begun = start_from(other, open_folder(recipe.out))
    assert begun.model.word_features == 40
    _, said = trained(begun)
    assert "words.weight (zeros)" in said
    wider = replace(other, model=replace(other.model, word_features=90))
    assert start_from(wider, open_folder(begun.out)).model.word_features == 40


def test_characters_are_known_by_their_length(recipe: TagRecipe, tmp_path: Path) -> None:
    """If every word in training is one character, the folder says so."""
    path = tmp_path / "characters.conll"
    path.write_text("张 B-PER\n三 E-PER\n来 O\n\n" * 20, encoding="utf-8")
    job = make_job(replace(recipe, data=replace(recipe.data, train=str(path))))[0]
    assert job.config.reading is not None
    assert job.config.reading.words == "characters"


def test_tags_that_form_no_spans_need_another_metric(recipe: TagRecipe, tmp_path: Path) -> None:
    """Part-of-speech tags have an accuracy but no F1."""
    path = tmp_path / "speech.conll"
    path.write_text("the DET\ncat NOUN\nruns VERB\n\n" * 20, encoding="utf-8")
    plain = replace(recipe, data=replace(recipe.data, train=str(path)))
    with pytest.raises(InputError, match=r'set train.metric = "accuracy"'):
        make_job(plain)
    job = make_job(replace(plain, train=replace(plain.train, metric="accuracy")))[0]
    assert set(job.measure().scores) == {"accuracy"}
