"""Training to predict masked tokens."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.encoder_recipes import masked_recipe
from tests.unit.train.made import make_job

from dragoman.data.padding import NO_TARGET
from dragoman.errors import InputError
from dragoman.models.heads import MaskedLanguageOutput
from dragoman.tasks.pretrain.task import MaskedRecipe, UnlabelledFiles
from dragoman.train.objective import masked_loss


@pytest.fixture
def recipe(tmp_path: Path) -> MaskedRecipe:
    """A recipe that predicts masked tokens."""
    return masked_recipe(tmp_path)


def test_texts_of_every_kind_are_read(recipe: MaskedRecipe) -> None:
    """There are 60 lines, 80 labelled and 80 tagged texts, of which at most a tenth is held out."""
    job, said = make_job(recipe)
    assert any(words.startswith("220 texts") for words in said)
    assert any("22 texts" in words and "held out" in words for words in said)
    assert sum(len(batch.indices) for batch in job.validation) == 22
    assert next(recipe.data.read()) == "the film was bad"  # each line of the file is a text


def test_the_accuracy_is_that_of_hidden_tokens(recipe: MaskedRecipe) -> None:
    """A model that always predicts one word is right wherever that was masked."""
    job, _ = make_job(recipe)
    head, hidden = (
        job.model.head,
        torch.cat([batch.targets_BL.flatten() for batch in job.validation]),
    )
    hidden = hidden[hidden != NO_TARGET]
    assert isinstance(head, MaskedLanguageOutput)
    assert head.output.weight is job.model.embedding.weight
    with torch.no_grad():
        head.output.bias[hidden[0]] += 1000
    right = (hidden == hidden[0]).float().mean().item()
    assert 0 < right < 1
    assert job.measure().scores == {"accuracy": pytest.approx(100 * right)}


def test_what_cannot_be(recipe: MaskedRecipe) -> None:
    """A missing mask or missing texts are reported in one sentence each."""
    with pytest.raises(InputError, match=r"needs tokenizer.specials"):
        replace(recipe, tokenizer=replace(recipe.tokenizer, specials=()))
    with pytest.raises(InputError, match=r"set data.texts, data.labelled or data.tagged"):
        UnlabelledFiles().check()


def test_a_head_of_labels_gives_no_words(recipe: MaskedRecipe) -> None:
    """Misuse by a programmer is reported as such."""
    job, _ = make_job(recipe)
    job.model.head = torch.nn.Identity()
    batch = next(job.batches)
    with pytest.raises(TypeError, match="Identity, which gives no words"):
        masked_loss(job.model, batch.ids_BL, batch.targets_BL, 0.0)
