"""Hidden words, and what the tasks of an encoder have in common."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tests.unit.tasks.tiny import make_tokenizer, random_lines

from dragoman.data.batches import BatchConfig
from dragoman.errors import InputError
from dragoman.models import EncoderDecoderConfig, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, TaggingHead
from dragoman.nn import Learned
from dragoman.tasks.classify.task import ClassifyRecipe
from dragoman.tasks.hiding import NoisyBatchConfig, hide_tokens
from dragoman.tasks.pretrain.task import MaskedRecipe
from dragoman.tasks.tag.task import TagRecipe
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.tokenizer import MASK
from dragoman.text.train import TokenizerConfig, train_tokenizer
from dragoman.train.recipe import RunRecipe

NOISY = (ClassifyRecipe, TagRecipe)

PLAIN = make_tokenizer()
MASKING = train_tokenizer(
    random_lines(100, seed=9), TokenizerConfig(vocab_size=320, specials=(MASK,))
)


def test_nothing_is_hidden_unless_asked_for() -> None:
    """And no random number is drawn."""
    ids_BL = torch.randint(PLAIN.vocab_size, (4, 5))
    before = torch.get_rng_state()
    assert hide_tokens(ids_BL, 0.0, PLAIN) is ids_BL
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("recipe", "model", "more"),
    [
        (ClassifyRecipe, EncoderOnlyConfig(head=ClassificationHead()), 2),
        (TagRecipe, EncoderOnlyConfig(head=TaggingHead()), 2),
        (MaskedRecipe, EncoderOnlyConfig(head=MaskedLanguageHead()), 2),
        (TranslateRecipe, EncoderDecoderConfig(), 1),
    ],
)
def test_batches_fit_into_learned_positions(
    recipe: Callable[..., RunRecipe], model: EncoderOnlyConfig | EncoderDecoderConfig, more: int
) -> None:
    """A text as long as batches allow, with what frames it, has positions, or nothing begins."""
    batch = NoisyBatchConfig(max_length=40) if recipe in NOISY else BatchConfig(max_length=40)
    recipe(batch=batch, model=replace(model, positions=Learned(max_length=40 + more)))
    with pytest.raises(InputError, match=r"batch.max_length = 40.*positions.max_length = "):
        recipe(batch=batch, model=replace(model, positions=Learned(max_length=39 + more)))


@pytest.mark.parametrize(
    ("recipe", "head"),
    [
        (ClassifyRecipe, TaggingHead()),
        (TagRecipe, ClassificationHead()),
        (MaskedRecipe, ClassificationHead()),
    ],
)
def test_another_head_is_refused(recipe: Callable[..., RunRecipe], head: Head) -> None:
    """Naming both settings."""
    with pytest.raises(InputError, match=f'contradicts model.head.kind = "{head.kind}"'):
        recipe(model=EncoderOnlyConfig(head=head))
