"""Guided alignment: one head learns to attend to the word that is translated."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.made import TINY, make_batch, make_model
from tests.unit.train.runs import change, exported, run, same

from dragoman.errors import InputError
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate.heads import guided_head, link_loss
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.config import TrainConfig


def test_link_loss_by_hand() -> None:
    """The loss sums -log of the weights at the next step; tokens without a link are ignored."""
    rows = [[0.3, 0.7], [0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]
    weights_BTS = torch.tensor([rows], requires_grad=True)
    links_BT = torch.tensor([[0, 1, -1, -1]])
    loss = link_loss(weights_BTS, links_BT)
    assert loss.item() == pytest.approx(-math.log(0.5) - math.log(0.9))
    loss.backward()
    assert weights_BTS.grad is not None
    assert weights_BTS.grad[0, ::3].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert link_loss(weights_BTS, torch.full((1, 4), -1)).item() == 0.0


@pytest.mark.parametrize(("layers", "guided"), [(1, 0), (2, 0), (3, 1)])
def test_a_head_of_the_last_layer_but_one_is_guided(layers: int, guided: int) -> None:
    """Its projections get gradients from the links; the patterns are restored afterwards."""
    model = make_model(replace(TINY, num_decoder_layers=layers))
    layers_of = model.decoder.each_layer()
    attentions = [each.cross_attn for each in layers_of if each.cross_attn is not None]
    patterns = [each.pattern for each in attentions]
    batch = make_batch([([5, 6, 7], [8, 9]), ([6], [9, 9])])
    with guided_head(model) as seen:
        model(batch.src_BS, batch.tgt_in_BT)
    (weights_B1TS,) = seen
    assert weights_B1TS.shape == (2, 1, *batch.tgt_out_BT.shape[1:], batch.src_BS.shape[1])
    link_loss(weights_B1TS[:, 0], torch.zeros_like(batch.tgt_out_BT)).backward()
    gradients = [each.q_proj.weight.grad for each in attentions]
    learning = [n for n, gradient in enumerate(gradients) if gradient is not None]
    assert learning == [*range(guided + 1)]
    gradient_XD = gradients[guided]
    assert gradient_XD is not None
    half = len(gradient_XD) // 2
    assert bool(gradient_XD[:half].any())
    assert not bool(gradient_XD[half:].any())
    assert [each.pattern for each in attentions] == patterns


def guided(recipe: TranslateRecipe) -> TranslateRecipe:
    """Return the recipe with guided alignment."""
    return replace(recipe, data=replace(recipe.data, guided_alignment=0.5))


def test_a_guided_run_learns_something_else(recipe: TranslateRecipe) -> None:
    """The links are cached, and the weights differ from those of an unguided run."""
    steered = replace(guided(recipe), out=recipe.out + "-guided")
    for each in (recipe, steered):
        run(change(each, max_steps=2), 10)
    assert [*Path(str(recipe.data.cache)).glob("*/links.ids")]
    assert not same(exported(recipe), exported(steered))


def test_what_would_lose_the_links_is_refused(recipe: TranslateRecipe) -> None:
    """Subword sampling moves tokens, checkpointing drops weights; each conflict is named."""
    recipe = guided(recipe)
    with pytest.raises(InputError, match=r"contradicts batch\.subword_sampling"):
        replace(recipe, batch=NoisyBatchConfig(subword_sampling=0.1))
    saving = TrainConfig(max_steps=1, activation_checkpointing=True)
    with pytest.raises(InputError, match=r"contradicts train\.activation_checkpointing"):
        replace(recipe, train=saving)
    with pytest.raises(InputError, match=r"contradicts train\.r_drop"):
        replace(recipe, train=TrainConfig(max_steps=1, r_drop=5.0))
