"""Recipes for the tests of training."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.train.made import TINY

from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig


@pytest.fixture
def recipe(tmp_path: Path) -> TranslateRecipe:
    """Six steps on forty pairs of numbers, with validation and a checkpoint every two steps."""
    lines = [f"{i} {i + 1} {i + 2}" for i in range(40)]
    (tmp_path / "a.src").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "a.tgt").write_text("\n".join(x[::-1] for x in lines) + "\n", encoding="utf-8")
    return TranslateRecipe(
        out=str(tmp_path / "run"),
        data=DataConfig(
            src=str(tmp_path / "a.src"), tgt=str(tmp_path / "a.tgt"), cache=str(tmp_path / "cache")
        ),
        tokenizer=TokenizerConfig(vocab_size=300),
        batch=NoisyBatchConfig(max_tokens=100),
        model=replace(TINY, src_vocab_size=0, tgt_vocab_size=0, dropout=0.2),
        train=TrainConfig(
            max_steps=6,
            warmup_steps=1,
            validate_every=2,
            save_every=2,
            average_last=3,
            log_every=1,
            device="cpu",
            precision="fp32",
        ),
    )
