"""What the softmax makes of scores of different sizes (paper, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn.patterns import Weighting, reference_attention

TEMPERATURES = (0.25, 1.0, 4.0)
SCORES = (2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
KEYS = 32
QUERIES = 256
SEED = 1


def softmax_of(scores: Sequence[float], temperature: float) -> list[float]:
    """Compute `softmax(scores / temperature)` by attention itself.

    One query, the number 1, meets keys that are the scores; its scale is `1 / temperature`.
    """
    q_BHTd = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    k_BHSd = torch.tensor(scores, dtype=torch.float64)[None, None, :, None]
    weights_BHTS = reference_attention(
        q_BHTd, k_BHSd, k_BHSd, None, Weighting(scale=1 / temperature)
    )[1]
    return [float(weight) for weight in weights_BHTS.flatten()]


def plot_softmax_temperature(path: Path | str) -> Path:
    """Draw the weights that eight scores get at three temperatures.

    The scores are the same in each picture, 2 to -1.5 in steps of a half, and are divided by the
    temperature. Cold, nearly all the weight is on the largest; hot, all keys get about the same.
    Multiplying scores by a number is the same as dividing the temperature by it.
    """
    figure = blank(9.6, 3.2)
    for axes, temperature in zip(
        figure.subplots(1, len(TEMPERATURES), sharey=True), TEMPERATURES, strict=True
    ):
        axes.bar(range(len(SCORES)), softmax_of(SCORES, temperature), color="tab:blue")
        axes.set(title=f"temperature {temperature:g}", xlabel="score", ylim=(0, 1))
        axes.set_xticks(range(len(SCORES)), labels=[f"{score:g}" for score in SCORES])
    figure.supylabel("weight", fontsize=10)
    return save(figure, path)


class Saturation(NamedTuple):
    """What happened to random queries and keys of one width; each figure is a mean over queries."""

    spread: float
    """Standard deviation of the scores."""
    largest: float
    """Largest weight of a query."""
    gradient: float
    """Norm of the largest weight's gradient in the scores: how much learning can move it."""


def saturation(head_dim: int, scale: float, *, seed: int = SEED) -> Saturation:
    """Attend with random queries and keys, drawn from N(0, 1), 32 keys for each of 256 queries.

    A score before scaling is a sum of `d` products of variance 1, so its standard deviation is
    `sqrt(d)`. The gradient is measured by going back from the largest weight to the scores.
    """
    generator = torch.Generator().manual_seed(seed)
    q_BHTd = torch.randn(QUERIES, 1, 1, head_dim, generator=generator, dtype=torch.float64)
    k_BHSd = torch.randn(QUERIES, 1, KEYS, head_dim, generator=generator, dtype=torch.float64)
    scores_BHTS = (q_BHTd @ k_BHSd.transpose(-2, -1) * scale).requires_grad_()
    one_BHTd = torch.ones(QUERIES, 1, 1, 1, dtype=torch.float64)
    scores_as_keys_BHSd = scores_BHTS.transpose(-2, -1)
    weights_BHTS = reference_attention(
        one_BHTd, scores_as_keys_BHSd, scores_as_keys_BHSd, None, Weighting(scale=1.0)
    )[1]
    largest_BHT = weights_BHTS.amax(dim=-1)
    (gradient_BHTS,) = torch.autograd.grad(largest_BHT.sum(), scores_BHTS)
    return Saturation(
        float(scores_BHTS.detach().std()),
        float(largest_BHT.detach().mean()),
        float(gradient_BHTS.norm(dim=-1).mean()),
    )


def plot_softmax_saturation(path: Path | str) -> Path:
    """Draw what the width of a head does to attention with and without `1 / sqrt(d)`.

    Random queries meet 32 random keys. Without the division the scores spread like sqrt(d) (left,
    both axes logarithmic), the largest weight goes to 1 (middle), and the gradient that could
    change it goes to 0 (right). Divided by sqrt(d), all three stay where they are at any width.
    """
    figure = blank(10.8, 3.5)
    panels = figure.subplots(1, 3)
    for label, power in (("q · k", 0.0), ("q · k / sqrt(d)", -0.5)):
        measured = [saturation(width, width**power) for width in WIDTHS]
        for axes, values in zip(panels, zip(*measured, strict=True), strict=True):
            axes.plot(WIDTHS, values, marker="o", markersize=4, label=label)
    titles = ("standard deviation of the scores", "largest weight", "its gradient in the scores")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel="width of a head, d", xscale="log")
        axes.set_xticks(WIDTHS, labels=[str(width) for width in WIDTHS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
    panels[0].set_yscale("log")
    panels[1].set_ylim(0, 1.05)
    panels[2].set_ylim(0, None)
    return save(figure, path)
