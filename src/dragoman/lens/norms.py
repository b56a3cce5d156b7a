"""What the place of the norm does to gradients, by depth, measured on our stacks."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn import Encoder, EncoderLayer, LayerShape, deepnorm
from dragoman.nn.shape import NormPosition

DEPTHS = (6, 12, 24)
D_MODEL = 64
LENGTH = 16
ROWS = 4
DRAWS = 3
PLACES: tuple[tuple[NormPosition, str], ...] = (
    ("post", "post-norm (the paper)"),
    ("pre", "pre-norm"),
    ("deepnorm", "DeepNorm"),
)


class LayerSizes(NamedTuple):
    """One number for each layer of a stack, first layer first; each a mean over draws."""

    gradients: list[float]
    """Norm of the loss's gradient in the second matrix of each feed-forward network."""
    streams: list[float]
    """Root mean square of the residual stream behind each layer."""


def layer_sizes(place: NormPosition, depth: int, *, draws: int = DRAWS) -> LayerSizes:
    """Build encoders as they stand before training, and measure each of their layers.

    The input is random, N(0, 1); the loss is the dot product of the output with random numbers of
    the same kind, divided by the root of their count, so that every stack is asked for the same.
    """
    gradients, streams = [], []
    with torch.random.fork_rng(devices=[]):
        for seed in range(draws):
            torch.manual_seed(seed)
            measured = _measure(place, depth)
            gradients.append(measured.gradients)
            streams.append(measured.streams)
    return LayerSizes(
        [fmean(layer) for layer in zip(*gradients, strict=True)],
        [fmean(layer) for layer in zip(*streams, strict=True)],
    )


def _measure(place: NormPosition, depth: int) -> LayerSizes:
    """Draw one encoder, and go through it and back."""
    shape = LayerShape(
        d_model=D_MODEL, num_heads=4, d_ff=4 * D_MODEL, dropout=0.0, norm_position=place
    )
    scale = deepnorm(depth) if place == "deepnorm" else None
    stack = Encoder(shape, depth, final_norm=shape.ends_in_norm, depth=scale)
    x_BLD, wanted_BLD = torch.randn(2, ROWS, LENGTH, D_MODEL)
    streams: list[float] = []
    layers = [layer for layer in stack.layers if isinstance(layer, EncoderLayer)]
    for layer in layers:
        layer.register_forward_hook(
            lambda _layer, _args, out_BLD: streams.append(float(out_BLD.detach().square().mean()))
        )
    loss = (stack(x_BLD) * wanted_BLD).sum() / wanted_BLD.numel() ** 0.5
    gradients = torch.autograd.grad(loss, [layer.ffn.down.weight for layer in layers])
    return LayerSizes(
        [float(gradient.norm()) for gradient in gradients], [square**0.5 for square in streams]
    )


def plot_norm_placement(path: Path | str) -> Path:
    """Draw the size of gradients by layer for stacks of 6 to 24 layers at initialisation.

    Above, the norm of the gradient in each layer's feed-forward matrix (logarithmic), the first
    layer left and the last one right. Below, the size of the residual stream behind each layer.

    Post-norm: every layer, however deep the stack, gets as large a gradient as in a shallow one, so
    a first step of the usual size moves a deep stack too far, and learning begins with a warm-up.
    Pre-norm: the stream grows from layer to layer, the last norm divides by it, and the gradient of
    the last layers falls as the stack gets deeper (Xiong et al., 2020, theorem 1). DeepNorm: all
    layers get the same, and less of it in a deeper stack (Wang et al., 2022).
    """
    figure = blank(10.8, 6.0)
    panels = figure.subplots(2, len(PLACES), sharex=True, sharey="row")
    for (place, title), (above, below) in zip(PLACES, panels.T, strict=True):
        for depth in DEPTHS:
            sizes = layer_sizes(place, depth)
            above.plot(range(1, depth + 1), sizes.gradients, label=f"{depth} layers")
            below.plot(range(1, depth + 1), sizes.streams)
        above.set(title=title, yscale="log")
        below.set(xlabel="layer")
        for axes in (above, below):
            axes.grid(alpha=0.3)
    panels[0, 0].set_ylabel("norm of the gradient")
    panels[1, 0].set_ylabel("size of the stream")
    panels[0, 0].legend(fontsize=9)
    return save(figure, path)
