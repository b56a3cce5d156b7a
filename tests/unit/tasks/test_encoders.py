"""Token dropout, and what recipes with batches of texts refuse."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.unit.tasks.tiny import make_tokenizer

from dragoman.errors import InputError
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, TaggingHead
from dragoman.nn import Learned
from dragoman.tasks.hiding import hide_tokens
from dragoman.tasks.task import find_task


def test_nothing_is_hidden_unless_asked_for() -> None:
    """No random number is drawn either."""
    ids_BL = torch.randint(300, (4, 5))
    before = torch.get_rng_state()
    assert hide_tokens(ids_BL, 0.0, make_tokenizer()) is ids_BL
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("task", "more"), [("classify", 2), ("tag", 2), ("pretrain", 2), ("translate", 1)]
)
def test_batches_fit_into_learned_positions(task: str, more: int) -> None:
    """The longest text plus its special tokens must have positions; otherwise it is refused."""
    recipe: Any = find_task(task).recipe()  # type: ignore[call-arg]  # all have defaults
    recipe = replace(recipe, batch=replace(recipe.batch, max_length=40))
    replace(recipe, model=replace(recipe.model, positions=Learned(max_length=40 + more)))
    with pytest.raises(InputError, match=r"batch.max_length = 40.*positions.max_length = "):
        replace(recipe, model=replace(recipe.model, positions=Learned(max_length=39 + more)))


@pytest.mark.parametrize(
    ("task", "head"),
    [
        ("classify", TaggingHead()),
        ("tag", ClassificationHead()),
        ("pretrain", ClassificationHead()),
    ],
)
def test_another_head_is_refused(task: str, head: Head) -> None:
    """The error names both settings."""
    recipe: Any = find_task(task).recipe
    with pytest.raises(InputError, match=f'contradicts model.head.kind = "{head.kind}"'):
        recipe(model=EncoderOnlyConfig(head=head))
