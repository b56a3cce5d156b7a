"""The model card: what a person who finds the folder needs to know."""

import platform
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from dragoman.files.writing import write_durably
from dragoman.models.folder import CARD
from dragoman.train.config import TrainConfig
from dragoman.train.job import CardPart
from dragoman.train.loop import Progress
from dragoman.train.recipe import RunRecipe
from dragoman.version import __version__
from dragoman.wording import counted

UNFINISHED = "**Unfinished:** "
"""Begins the line that goes when the run ends."""


def model_card(
    recipe: RunRecipe,
    part: CardPart,
    model: nn.Module,
    progress: Progress,
    figures: Mapping[str, float],
) -> str:
    """Write the card as Markdown: data, architecture, training, scores, versions, how to use."""
    data = [*part.data]
    data += [f"from: {recipe.data.source}"] if recipe.data.source else []
    data += [f"started from: `{recipe.start.model}`"] if recipe.start.model else []
    size = sum(p.numel() for p in model.parameters())
    blocks = [
        f"# {part.title}",
        recipe.description,
        f"{UNFINISHED}the best model so far of a run that has not ended, at "
        f"{_of_limits(recipe.train, progress)}.",
        "## Data",
        "\n".join(f"- {line}" for line in data),
        "## Model",
        f"{size:,} parameters: {part.architecture}.",
        "## Training",
        f"{counted(progress.step, 'step')}, {counted(progress.tokens, 'token')}, "
        f"{progress.seconds / 60:.1f} minutes, seed {recipe.train.seed}. "
        "The whole recipe: `training/recipe.json`.",
        "## Validation",
        part.judged,
        "\n".join(f"- {name}: {value:.4g}" for name, value in figures.items()),
        "## Use",
        f"    {part.use}",
        f"Made by dragoman {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}.\n",
    ]
    return "\n\n".join(blocks)


def end_card(folder: Path) -> None:
    """Take from the card in a folder that the run is unfinished."""
    card = folder / CARD
    if card.exists():  # else somebody has removed it
        text = card.read_text(encoding="utf-8", errors="surrogateescape")  # who knows who edited it
        kept = (block for block in text.split("\n\n") if not block.startswith(UNFINISHED))
        write_durably(card, "\n\n".join(kept))


def _of_limits(config: TrainConfig, progress: Progress) -> str:
    """How far a run is on the way to each of its limits."""
    steps = f"step {progress.step:,}"
    if config.max_steps is not None:
        steps += f" of {config.max_steps:,}"
    if config.max_minutes is None:
        return steps
    return f"{steps}, minute {progress.seconds / 60:.0f} of {config.max_minutes:g}"
