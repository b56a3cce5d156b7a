"""What the place of the norm does to gradients, by depth, measured on our stacks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn import Encoder, EncoderLayer, LayerShape, deepnorm
from dragoman.nn.shape import NormPosition

DEPTHS = (6, 12, 24, 48)
D_MODEL = 64
LENGTH = 32
ROWS = 4
SEED = 1
PLACES: tuple[tuple[NormPosition, str], ...] = (
    ("post", "post-norm (the paper)"),
    ("pre", "pre-norm"),
    ("deepnorm", "DeepNorm"),
)


class LayerSizes(NamedTuple):
    """One number for each layer of a stack, first layer first."""

    gradients: list[float]
    """Norm of the loss's gradient in the second matrix of each feed-forward network."""
    streams: list[float]
    """Root mean square of the residual stream behind each layer."""


def layer_sizes(place: NormPosition, depth: int, *, seed: int = SEED) -> LayerSizes:
    """Build an encoder as it stands before training, and measure each of its layers once.

    Its input is random, N(0, 1); the loss is the dot product of its output with random numbers
    of the same kind, divided by their root count, so that every stack is asked for the same.
    """
    torch_state = torch.random.get_rng_state()
    try:
        torch.manual_seed(seed)
        stack, x_BLD, wanted_BLD = _draw(place, depth)
    finally:
        torch.random.set_rng_state(torch_state)
    streams: list[float] = []
    layers = [layer for layer in stack.layers if isinstance(layer, EncoderLayer)]
    for layer in layers:
        layer.register_forward_hook(
            lambda _layer, _args, out_BLD: streams.append(
                float(out_BLD.detach().square().mean().sqrt())
            )
        )
    loss = (stack(x_BLD) * wanted_BLD).sum() / wanted_BLD.numel() ** 0.5
    weights = [layer.ffn.down.weight for layer in layers]
    gradients = torch.autograd.grad(loss, weights)
    return LayerSizes([float(gradient.norm()) for gradient in gradients], streams)


def _draw(place: NormPosition, depth: int) -> tuple[Encoder, torch.Tensor, torch.Tensor]:
    shape = LayerShape(
        d_model=D_MODEL, num_heads=4, d_ff=4 * D_MODEL, dropout=0.0, norm_position=place
    )
    scale = deepnorm(depth) if place == "deepnorm" else None
    stack = Encoder(shape, depth, final_norm=shape.ends_in_norm, depth=scale)
    return stack, torch.randn(ROWS, LENGTH, D_MODEL), torch.randn(ROWS, LENGTH, D_MODEL)


def plot_norm_placement(path: Path | str) -> Path:
    """Draw the size of gradients by layer for stacks of 6 to 48 layers at initialisation.

    Above, the norm of the gradient in each layer's feed-forward matrix (logarithmic), the first
    layer left and the last one right. Below, the size of the residual stream behind each layer.
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
