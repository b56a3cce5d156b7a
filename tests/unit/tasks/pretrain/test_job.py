"""Learning what was hidden."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.encoder_recipes import masked_recipe
from tests.unit.train.made import make_job, trained

from dragoman.data.padding import NO_TARGET
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderOnly
from dragoman.models.heads import MaskedLanguageOutput
from dragoman.tasks.pretrain.task import MaskedJob, MaskedRecipe, UnlabelledFiles
from dragoman.train.objective import masked_loss, reference_loss


@pytest.fixture
def recipe(tmp_path: Path) -> MaskedRecipe:
    """What stands in the gaps."""
    return masked_recipe(tmp_path)


def test_gaps_are_filled_better_than_by_chance(recipe: MaskedRecipe) -> None:
    """The loss falls far below that of a guess at random, and the folder is an encoder's."""
    best, _ = trained(recipe)
    assert best["loss"] < 3.5 < math.log(300)
    model = open_folder(Path(recipe.out)).model
    assert isinstance(model, EncoderOnly)
    assert isinstance(model.head, MaskedLanguageOutput)
    assert model.head.output.weight is model.embedding.weight


def test_texts_of_every_kind_are_read(recipe: MaskedRecipe) -> None:
    """60 lines, 80 labelled and 80 tagged texts; a tenth is held out at most."""
    job, said = make_job(recipe)
    assert any(words.startswith("220 texts") for words in said)
    assert any("22 texts" in words and "held out" in words for words in said)
    assert sum(len(batch.indices) for batch in job.validation) == 22
    assert next(recipe.data.read()) == "the film was bad"  # a text is a line of its file


@torch.no_grad()
def favour_a_target(job: MaskedJob) -> None:
    """Let the untrained model guess one word everywhere, which is right somewhere."""
    head, targets_BL = job.model.head, job.validation[0].targets_BL
    assert isinstance(head, MaskedLanguageOutput)
    head.output.bias[targets_BL[targets_BL != NO_TARGET][0]] += 10


def test_the_measure_is_the_mean_over_hidden_tokens(recipe: MaskedRecipe) -> None:
    """Loss and accuracy, always of the same hidden tokens; the model goes on in training mode."""
    job, _ = make_job(recipe)
    favour_a_target(job)
    job.model.train()
    found = job.measure()
    assert job.model.training
    assert job.measure() == found
    loss, right, total = 0.0, 0, 0
    job.model.eval()
    with torch.inference_mode():
        for batch in job.validation:
            chosen_BL = batch.targets_BL != NO_TARGET
            logits_MV, targets_M = job.model(batch.ids_BL)[chosen_BL], batch.targets_BL[chosen_BL]
            loss += reference_loss(logits_MV, targets_M, 0.0).item()
            right += int((logits_MV.argmax(-1) == targets_M).sum())
            total += len(targets_M)
    assert 0 < right < total
    assert found.loss == pytest.approx(loss / total, rel=1e-5)
    assert found.scores["accuracy"] == pytest.approx(100 * right / total)


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
