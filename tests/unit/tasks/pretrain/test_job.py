"""Learning what was hidden."""

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
    """What stands in the gaps."""
    return masked_recipe(tmp_path)


def test_texts_of_every_kind_are_read(recipe: MaskedRecipe) -> None:
    """60 lines, 80 labelled and 80 tagged texts; a tenth is held out at most."""
    job, said = make_job(recipe)
    assert any(words.startswith("220 texts") for words in said)
    assert any("22 texts" in words and "held out" in words for words in said)
    assert sum(len(batch.indices) for batch in job.validation) == 22
    assert next(recipe.data.read()) == "the film was bad"  # a text is a line of its file


def test_the_accuracy_is_that_of_hidden_tokens(recipe: MaskedRecipe) -> None:
    """A model that guesses one word everywhere is right where that was hidden."""
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
    """No mask, no texts: one sentence each."""
    with pytest.raises(InputError, match=r"needs tokenizer.specials"):
        replace(recipe, tokenizer=replace(recipe.tokenizer, specials=()))
    with pytest.raises(InputError, match=r"set data.texts, data.labelled or data.tagged"):
        UnlabelledFiles().check()


def test_a_head_of_labels_gives_no_words(recipe: MaskedRecipe) -> None:
    """A programmer's mistake is told as one."""
    job, _ = make_job(recipe)
    job.model.head = torch.nn.Identity()
    batch = next(job.batches)
    with pytest.raises(TypeError, match="Identity, which gives no words"):
        masked_loss(job.model, batch.ids_BL, batch.targets_BL, 0.0)
