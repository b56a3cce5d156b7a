"""What stands between the two matrices of a feed-forward network (paper, section 3.3)."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn.feedforward import ACTIVATIONS, Activation

SHOWN: tuple[tuple[Activation, str, str], ...] = (
    ("relu", "ReLU (the paper)", "-"),
    ("gelu", "GELU", "-"),
    ("gelu_tanh", "GELU by tanh (GPT-2)", "--"),
    ("silu", "SiLU (Llama)", "-"),
)
"""Each with its name in the legend and its kind of line."""


def values_and_slopes(name: Activation, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What a network with this activation computes for each number, and its slope there.

    Both have the shape of `x`; the slope is the gradient that training would see.
    """
    x = x.detach().clone().requires_grad_()
    values = ACTIVATIONS[name](x)
    (slopes,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), slopes


def plot_activations(path: Path | str) -> Path:
    """Draw ReLU, GELU (exact, and by tanh) and SiLU, and beside them their slopes.

    The slope (right) is what the gradient is multiplied by on its way back. Left of 0, ReLU's is 0:
    a unit that is off learns nothing from this token. The others go below 0 there, and on far to
    the left their slope dies away as well. GELU's two forms lie on each other.
    """
    x = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    figure = blank(9.0, 3.4)
    panels = figure.subplots(1, 2)
    for name, label, style in SHOWN:
        for axes, numbers in zip(panels, values_and_slopes(name, x), strict=True):
            axes.plot(x.numpy(), numbers.numpy(), style, label=label)
    for axes, title in zip(panels, ("activation", "its slope"), strict=True):
        axes.set(title=title, xlabel="x", xlim=(-5, 5))
        axes.grid(alpha=0.3)
    panels[0].set_ylim(-0.5, 3)
    panels[0].legend(fontsize=9)
    return save(figure, path)
