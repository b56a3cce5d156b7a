"""Hidden words, and what the tasks of an encoder have in common."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.tiny import make_tokenizer, random_lines
from tests.unit.train.encoder_recipes import classify_recipe, tag_recipe
from tests.unit.train.made import make_job

from dragoman.data.batches import BatchConfig
from dragoman.errors import InputError
from dragoman.models import EncoderDecoderConfig, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, TaggingHead
from dragoman.nn import Learned
from dragoman.tasks.classify.task import ClassifyRecipe
from dragoman.tasks.encoders import LabelRecipe
from dragoman.tasks.hiding import NoisyBatchConfig, hide_tokens
from dragoman.tasks.pretrain.task import MaskedRecipe
from dragoman.tasks.tag.task import TagRecipe
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.tokenizer import MASK, Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer
from dragoman.train.recipe import RunRecipe

NOISY = (ClassifyRecipe, TagRecipe)

PLAIN = make_tokenizer()
MASKING = train_tokenizer(
    random_lines(100, seed=9), TokenizerConfig(vocab_size=320, specials=(MASK,))
)


@given(st.integers(0, 2**32), st.floats(0.05, 0.95), st.sampled_from([MASKING, PLAIN]))
def test_the_wanted_share_of_pieces_is_hidden(
    seed: int, share: float, tokenizer: Tokenizer
) -> None:
    """By the mask where the tokenizer has one; special tokens never are, and nothing else moves."""
    hidden_id = tokenizer.special_id(MASK) if tokenizer is MASKING else tokenizer.unk_id
    rng = torch.Generator().manual_seed(seed)
    ids_BL = torch.randint(tokenizer.vocab_size, (40, 60), generator=rng)
    special_BL = torch.isin(ids_BL, torch.tensor(list(tokenizer.specials.values())))
    torch.manual_seed(seed)
    found_BL = hide_tokens(ids_BL, share, tokenizer)
    changed_BL = found_BL != ids_BL
    assert bool((found_BL[changed_BL] == hidden_id).all())
    assert not bool((changed_BL & special_BL).any())
    assert changed_BL[~special_BL].float().mean().item() == pytest.approx(share, abs=0.06)


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


@pytest.mark.parametrize("make", [classify_recipe, tag_recipe])
def test_hidden_words_are_part_of_the_loss(
    make: Callable[[Path], LabelRecipe], tmp_path: Path
) -> None:
    """With every word hidden the loss is that of hidden words, and validation sees them all."""
    recipe = make(tmp_path)
    noisy = replace(recipe, batch=replace(recipe.batch, token_dropout=0.999))
    (plain, _), (hiding, _) = map(make_job, (recipe, noisy))
    batch, tokenizer = next(plain.batches), hiding.tokenizer
    assert hiding.measure() == plain.measure()
    pieces_BL = batch.ids_BL >= tokenizer.first_piece
    hidden_BL = batch.ids_BL.masked_fill(pieces_BL, tokenizer.special_id(MASK))
    plain.model.eval()
    hiding.model.eval()
    blind = plain.loss(replace(batch, ids_BL=hidden_BL))
    assert hiding.loss(batch).item() == pytest.approx(blind.item(), rel=1e-5)


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
