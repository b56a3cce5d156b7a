"""How rotary positions turn a pair of numbers (Su et al., 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn.position import Rotary, rotate

if TYPE_CHECKING:
    from torch import Tensor

HEAD_DIM = 64
LENGTH = 128
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
    pairs_Lp2 = turned_pairs(LENGTH, HEAD_DIM)
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
