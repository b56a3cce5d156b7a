"""What each position scheme looks like, in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn.patterns import distances
from dragoman.nn.position import ALiBiBias, RelativeBias, RelativeBiasTable, Rotary, rotate
from dragoman.nn.position.table import sinusoidal_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTH = 64
WIDTH = 32
HEADS = 8
SHOWN_HEADS = (0, 2, 4)


def plot_positions(path: Path | str) -> Path:
    """Draw what four schemes make of a position or a distance, and write a PNG.

    The sinusoidal table; the score of a vector with itself, turned apart by rotary positions; the
    buckets of T5's relative bias; the slopes of ALiBi. Learned positions begin as noise.
    """
    figure = blank(9.6, 6.4)
    ((table, turned), (buckets, slopes)) = figure.subplots(2, 2)
    _draw_table(table)
    _draw_rotary(turned)
    _draw_buckets(buckets)
    _draw_alibi(slopes)
    return save(figure, path)


def _draw_table(axes: Axes) -> None:
    axes.imshow(sinusoidal_table(LENGTH, WIDTH).numpy(), cmap="RdBu", aspect="auto")
    axes.set(title="sinusoidal: added to the embedding", xlabel="dimension", ylabel="position")


def _draw_rotary(axes: Axes) -> None:
    vector = torch.ones(1, 1, 1, WIDTH, dtype=torch.float64) / WIDTH**0.5
    for base in (100.0, 10_000.0):
        rotation = Rotary(base=base).make_rotation(WIDTH)
        angles = rotation.angles(range(LENGTH), vector)
        keys = rotate(vector.expand(1, 1, LENGTH, WIDTH), angles)[0, 0]
        axes.plot((keys @ keys[0]).numpy(), label=f"base {base:,.0f}")
    axes.set(title="rotary: a vector with itself, turned apart", xlabel="distance", ylabel="score")
    axes.legend()


def _draw_buckets(axes: Axes) -> None:
    bias = RelativeBiasTable(RelativeBias(), HEADS, bidirectional=True)
    distance = torch.arange(-160, 161)
    axes.plot(distance.numpy(), bias.buckets(distance[None, :])[0].numpy(), drawstyle="steps-mid")
    axes.set(
        title="relative bias (T5): distances that share a number",
        xlabel="key minus query",
        ylabel="bucket",
    )


def _draw_alibi(axes: Axes) -> None:
    bias_H1S = ALiBiBias(HEADS)(distances(1, LENGTH)).flip(-1)
    for head in SHOWN_HEADS:
        axes.plot(bias_H1S[head, 0].numpy(), label=f"head {head + 1} of {HEADS}")
    axes.set(
        title="ALiBi: taken from the score", xlabel="positions back", ylabel="bias", ylim=(-20, 1)
    )
    axes.legend()
