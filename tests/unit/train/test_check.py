"""A check refuses a run while there are no weights yet."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.train.encoder_recipes import TRAIN, classify_recipe, masked_recipe, tag_recipe
from tests.unit.train.made import make_console
from torch import nn

from dragoman.data.batches import Stream
from dragoman.errors import InputError
from dragoman.models import DecoderOnlyConfig, ModelConfig
from dragoman.nn import Rotary
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.tasks.task import train
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.train import TokenizerConfig
from dragoman.train.recipe import RunRecipe


def generate_recipe(folder: Path) -> GenerateRecipe:
    """A refrain."""
    (folder / "song.txt").write_text("row row row your boat\n" * 80, encoding="utf-8")
    return GenerateRecipe(
        out=str(folder / "run"),
        data=TextFiles(train=(str(folder / "song.txt"),), cache=str(folder / "cache")),
        tokenizer=TokenizerConfig(model="characters", vocab_size=300),
        batch=PackConfig(length=24, rows=4),
        model=DecoderOnlyConfig(
            d_model=16,
            num_heads=2,
            d_ff=24,
            num_layers=1,
            norm_position="pre",
            positions=Rotary(),
            dropout=0.0,
        ),
        train=replace(TRAIN, max_steps=1),
    )


@pytest.fixture(params=["translate", "generate", "pretrain", "classify", "tag"])
def any_recipe(
    request: pytest.FixtureRequest, recipe: TranslateRecipe, tmp_path: Path
) -> RunRecipe:
    """One of each task."""
    makers = {
        "generate": generate_recipe,
        "pretrain": masked_recipe,
        "classify": classify_recipe,
        "tag": tag_recipe,
    }
    make = makers.get(request.param)
    return recipe if make is None else make(tmp_path)


def test_a_check_comes_before_the_weights(
    any_recipe: RunRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once about the model's real vocabulary and all batches; nothing is drawn yet.

    Drawing the weights of a model that fills the memory takes longer than anybody waits for a no.
    """
    asked: list[tuple[ModelConfig, Stream[Any], int]] = []

    def refuse(config: ModelConfig, batches: Stream[Any], validation: Iterable[Any]) -> None:
        asked.append((config, batches, sum(batch.num_targets for batch in validation)))
        raise InputError("no")

    def too_early(self: nn.Module) -> None:
        pytest.fail(f"{type(self).__name__} was made")

    monkeypatch.setattr(nn.Linear, "reset_parameters", too_early)
    monkeypatch.setattr(nn.Embedding, "reset_parameters", too_early)
    console, _ = make_console(terminal=False)
    with pytest.raises(InputError, match="no"):
        train(any_recipe, console=console, estimate=lambda: refuse)
    [(config, batches, validated)] = asked
    assert config.kind == any_recipe.model.kind
    assert getattr(config, "vocab_size", 1) > 0
    assert batches.num_batches > 0
    assert validated > 0
