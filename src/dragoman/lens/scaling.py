"""A scaling law and the runs that it was fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.ticker import NullFormatter

from dragoman.lens.pictures import blank, save
from dragoman.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = 80
WIDER = 2.0
PURPLE = "#7a1fa2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPicture:
    """What is drawn, as plain numbers; N parameters, D tokens."""

    law: Callable[[float, float], float]
    """The loss of N and D."""
    floor: float
    """The loss that remains."""
    flops: Callable[[float], float]
    """Operations of a token, of N."""
    best: Callable[[float], tuple[float, float]]
    """The best N and D for so many operations."""
    runs: Sequence[tuple[float, float, float]]
    """N, D and the measured loss of each run that was fitted."""
    predicted: Sequence[tuple[float, float, float, float, float]] = ()
    """N, D, measured loss, and both ends of the predicted interval."""


def plot_scaling(picture: ScalingPicture, path: Path | str) -> Path:
    """Draw the law over its runs, and write a PNG.

    Left, the loss against the tokens, a curve for each size; a diamond is a run that was not
    fitted, with the predicted interval as a bar. Right, the same runs against the operations
    they took, and below all curves the frontier: the best size for each budget.
    """
    figure = blank(10.4, 4.4)
    left, right = figure.subplots(1, 2, sharey=True)
    sizes = sorted({run[0] for run in (*picture.runs, *picture.predicted)})
    colours = colormaps["viridis"](np.linspace(0.0, 0.85, len(sizes)))
    for size, colour in zip(sizes, colours, strict=True):
        _draw_size(left, picture, size, colour, cost=1.0)
        _draw_size(right, picture, size, colour, cost=picture.flops(size))
    _draw_frontier(right, picture)
    left.set(
        title=f"a curve for each size; floor E = {picture.floor:.2f}",
        xlabel="tokens",
        ylabel="loss, nats per token",
    )
    right.set(title="what a budget buys", xlabel="operations of training (FLOPs)")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=8)
    return save(figure, path)


def _draw_size(
    axes: Axes,
    picture: ScalingPicture,
    size: float,
    colour: np.ndarray,
    *,
    cost: float,
) -> None:
    """The curve of one size, its runs, and those that were predicted; `cost` is that of a token."""
    tokens = np.array([run[1] for run in (*picture.runs, *picture.predicted)])
    shown = np.geomspace(tokens.min() / WIDER, tokens.max() * WIDER, PLACES)
    losses = [picture.law(size, float(place)) for place in shown]
    axes.plot(shown * cost, losses, color=colour, linewidth=1.2, label=f"N = {short(size)}")
    fitted = [(d * cost, loss) for n, d, loss in picture.runs if n == size]
    if fitted:
        axes.plot(*zip(*fitted, strict=True), "o", color=colour, markersize=5)
    for n, d, loss, low, high in picture.predicted:
        if n == size:
            axes.plot([d * cost] * 2, [low, high], color=colour, linewidth=5, alpha=0.35)
            axes.plot(d * cost, loss, "D", color=colour, markersize=6, markeredgecolor="black")


def _draw_frontier(axes: Axes, picture: ScalingPicture) -> None:
    """The loss of the best size for each budget."""
    work = [d * picture.flops(n) for n, d, _ in picture.runs]
    budgets = np.geomspace(min(work), WIDER**2 * max(work), PLACES)
    best = [picture.law(*picture.best(float(budget))) for budget in budgets]
    axes.plot(budgets, best, color=PURPLE, linestyle="--", linewidth=1.8, label="the best size")
