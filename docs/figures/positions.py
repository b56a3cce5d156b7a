"""Figures of positions: the sinusoidal table, rotary angles, and four schemes side by side."""

from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor

from dragoman.lens.pictures import blank
from dragoman.nn import RelativeBias, Rotary, distances, rotate
from dragoman.nn.position.bias import ALiBiBias, RelativeBiasTable
from dragoman.nn.position.sinusoidal import sinusoidal_table
from figures.chinese import save

# ---------------------------------------------------------------- sinusoidal (section 3.5)

TABLE_LENGTH = 100
TABLE_WIDTH = 64
CURVES = (0, 8, 16, 24)


def plot_sinusoidal(path: Path | str) -> Path:
    """Draw the table of positions for 100 positions and D = 64, as heat map and as curves.

    Left, a row for each position and a column for each dimension, red for -1 and blue for 1: to
    the left neighbours differ at once, to the right they hardly differ at all. Right, four of the
    columns over the position: each is a sine, and the wavelengths grow from 2 pi to 20,000 pi.
    """
    table_LD = sinusoidal_table(TABLE_LENGTH, TABLE_WIDTH)
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
    products_LL, distances_LL = row_distances(sinusoidal_table(TABLE_LENGTH, TABLE_WIDTH))
    figure = blank(11.4, 3.9)
    left, middle, right = figure.subplots(1, 3)
    for axes, matrix_LL, title in (
        (left, products_LL, "dot product"),
        (middle, distances_LL, "distance"),
    ):
        image = axes.imshow(matrix_LL.numpy(), cmap="viridis")
        axes.set(title=f"{title} of PE(p) and PE(q)", xlabel="q", ylabel="p")
        figure.colorbar(image, ax=axes, shrink=0.8)
    offsets = range(-TABLE_LENGTH // 2, TABLE_LENGTH // 2)
    right.plot(offsets, products_LL[TABLE_LENGTH // 2].numpy(), label="dot product")
    right.plot(offsets, distances_LL[TABLE_LENGTH // 2].numpy(), label="distance")
    right.set(title=f"row p = {TABLE_LENGTH // 2}", xlabel="q - p", ylim=(0, None))
    right.legend(fontsize=9)
    return save(figure, path)


# ---------------------------------------------------------------- rotary (Su et al., 2021)

HEAD_DIM = 64
TURNED_LENGTH = 128
PAIRS = (0, 4, 8, 12)
TURNS = 12


def turned_pairs(length: int, head_dim: int) -> Tensor:
    """Turn the pair (1, 0) of every frequency to every position: `(L, d/2, 2)`.

    At position `m` pair `i` is `(cos m theta_i, sin m theta_i)`, `theta_i = 10000^(-2i/d)`.
    """
    ones = torch.zeros(1, 1, length, head_dim, dtype=torch.float64)
    ones[..., : head_dim // 2] = 1.0
    angles = Rotary().make_rotation(head_dim).angles(range(length), ones)
    return torch.stack(rotate(ones, angles)[0, 0].chunk(2, dim=-1), dim=-1)


def plot_rotary_angles(path: Path | str) -> Path:
    """Draw the angle of every pair at every position, and four pairs as they turn.

    Left, the angle in degrees by position and pair of a head of 64 numbers: the first pairs turn
    by a radian a token, the last ones hardly move in a thousand. Right, where the arrow (1, 0) of
    four pairs points at the first 12 positions, dark to light: a query and a key that are as far
    apart as another two are turned apart by the same angles.
    """
    pairs_Lp2 = turned_pairs(TURNED_LENGTH, HEAD_DIM)
    degrees_Lp = torch.atan2(pairs_Lp2[..., 1], pairs_Lp2[..., 0]).rad2deg() % 360
    figure = blank(9.6, 4.4)
    halves = figure.add_gridspec(1, 2, width_ratios=(1.15, 1))
    left, right = figure.add_subfigure(halves[0]), figure.add_subfigure(halves[1])
    grid = left.subplots()
    image = grid.imshow(degrees_Lp.numpy(), cmap="twilight", vmin=0, vmax=360, aspect="auto")
    grid.set(title="angle of a pair, in degrees", xlabel="pair i", ylabel="position m")
    left.colorbar(image, ax=grid, ticks=range(0, 361, 90))
    dials = right.subplots(2, 2)
    shades = [str(0.75 * turn / TURNS) for turn in range(TURNS)]
    for axes, pair in zip(dials.flat, PAIRS, strict=True):
        x_L, y_L = pairs_Lp2[:TURNS, pair].T.numpy()
        axes.quiver(
            [0] * TURNS, [0] * TURNS, x_L, y_L, color=shades, scale=1, scale_units="xy", angles="xy"
        )
        axes.set(title=f"pair {pair}", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
        axes.set(xticks=[], yticks=[])
    return save(figure, path)


# ---------------------------------------------------------------- four schemes

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
        axes.plot(bias_H1S[head, 0].numpy(), label=f"head {head} of {HEADS}")
    axes.set(
        title="ALiBi: taken from the score", xlabel="positions back", ylabel="bias", ylim=(-20, 1)
    )
    axes.legend()
