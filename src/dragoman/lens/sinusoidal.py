"""The sinusoidal table and what it knows of distances (paper, section 3.5)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn.position.table import sinusoidal_table

if TYPE_CHECKING:
    from torch import Tensor

LENGTH = 100
WIDTH = 64
CURVES = (0, 8, 16, 24)


def plot_sinusoidal(path: Path | str) -> Path:
    """Draw the table of positions for 100 positions and D = 64, as heat map and as curves.

    Left, a row for each position and a column for each dimension, red for -1 and blue for 1: to
    the left neighbours differ at once, to the right they hardly differ at all. Right, four of the
    columns over the position: each is a sine, and the wavelengths grow from 2 pi to 20,000 pi.
    """
    table_LD = sinusoidal_table(LENGTH, WIDTH)
    figure = blank(9.6, 4.2)
    grid, curves = figure.subplots(1, 2)
    image = grid.imshow(table_LD.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    grid.set(title="PE(pos, column)", xlabel="column (2i: sine, 2i + 1: cosine)", ylabel="position")
    figure.colorbar(image, ax=grid)
    for column in CURVES:
        curves.plot(table_LD[:, column].numpy(), label=f"column {column} (i = {column // 2})")
    curves.set(title="four of its columns", xlabel="position", ylim=(-1.05, 1.5))
    curves.legend(ncols=2, fontsize=9, loc="upper center")
    return save(figure, path)


class Distances(NamedTuple):
    """How alike the rows of a table are, each `(L, L)`."""

    products_LL: Tensor
    """Dot products of any two rows."""
    distances_LL: Tensor
    """Euclidean distances between any two rows."""


def row_distances(table_LD: Tensor) -> Distances:
    """Compute `PE(p) . PE(q)` and `|PE(p) - PE(q)|` for all pairs of positions.

    Of the sinusoidal table both depend on `p - q` alone:
    `PE(p) . PE(q) = sum_i cos((p - q) / 10000^(2i/D))`.
    """
    return Distances(table_LD @ table_LD.T, torch.cdist(table_LD, table_LD))


def plot_sinusoidal_distances(path: Path | str) -> Path:
    """Draw the dot products and the distances of all pairs of rows of the table, and one row.

    Each matrix has the same numbers along a diagonal: the table tells how far apart two positions
    are, and not which two they are. The last picture is the middle row of both: the product falls
    with the distance to either side, so that neighbours are alike.
    """
    products_LL, distances_LL = row_distances(sinusoidal_table(LENGTH, WIDTH))
    figure = blank(11.4, 3.9)
    left, middle, right = figure.subplots(1, 3)
    for axes, matrix_LL, title in (
        (left, products_LL, "dot product"),
        (middle, distances_LL, "distance"),
    ):
        image = axes.imshow(matrix_LL.numpy(), cmap="viridis")
        axes.set(title=f"{title} of PE(p) and PE(q)", xlabel="q", ylabel="p")
        figure.colorbar(image, ax=axes, shrink=0.8)
    offsets = range(-LENGTH // 2, LENGTH // 2)
    right.plot(offsets, products_LL[LENGTH // 2].numpy(), label="dot product")
    right.plot(offsets, distances_LL[LENGTH // 2].numpy(), label="distance")
    right.set(title=f"row p = {LENGTH // 2}", xlabel="q - p", ylim=(0, None))
    right.legend(fontsize=9)
    return save(figure, path)
