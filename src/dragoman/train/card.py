"""The model card: what a person who finds the folder needs to know."""

import platform
from collections.abc import Mapping

import torch
from torch import nn

from dragoman.train.job import CardPart
from dragoman.train.loop import Progress
from dragoman.train.recipes.base import RunRecipe
from dragoman.version import __version__
from dragoman.wording import counted


def model_card(
    recipe: RunRecipe,
    part: CardPart,
    model: nn.Module,
    progress: Progress,
    figures: Mapping[str, float],
) -> str:
    """Write the card as Markdown: data, architecture, training, scores, versions, how to use."""
    lines = [
        f"# {part.title}",
        "",
        recipe.description,
        "",
        "## Data",
        "",
        *(f"- {line}" for line in part.data),
        *([f"- from: {recipe.data.source}"] if recipe.data.source else []),
        *([f"- started from: `{recipe.start.model}`"] if recipe.start.model else []),
        "",
        "## Model",
        "",
        f"{sum(p.numel() for p in model.parameters()):,} parameters: {part.architecture}.",
        "",
        "## Training",
        "",
        f"{counted(progress.step, 'step')}, {counted(progress.tokens, 'token')}, "
        f"{progress.seconds / 60:.1f} minutes, seed {recipe.train.seed}. "
        "The whole recipe: `training/recipe.json`.",
        "",
        "## Validation",
        "",
        part.judged,
        "",
        *(f"- {name}: {value:.4g}" for name, value in figures.items()),
        "",
        "## Use",
        "",
        f"    {part.use}",
        "",
        f"Made by dragoman {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}.",
        "",
    ]
    return "\n".join(lines)
