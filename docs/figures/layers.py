"""Figures of layers: the position of the norm, activations, and the growth of caches."""

from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch

from dragoman.lens.pictures import blank
from dragoman.nn import (
    Causal,
    Encoder,
    KeyValue,
    LayerConfig,
    LinearAttention,
    Pattern,
    Scoring,
    SlidingWindow,
    deepnorm,
)
from dragoman.nn.cache import Storage
from dragoman.nn.config import NormPosition
from dragoman.nn.feedforward import ACTIVATIONS, Activation
from figures.chinese import save

# ---------------------------------------------------------------- norms

DEPTHS = (6, 12, 24)
D_MODEL = 64
ROW_LENGTH = 16
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


@cache
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
    shape = LayerConfig(
        d_model=D_MODEL, num_heads=4, d_ff=4 * D_MODEL, dropout=0.0, norm_position=place
    )
    scale = deepnorm(depth) if place == "deepnorm" else None
    stack = Encoder(shape, depth, depth=scale)
    x_BLD, wanted_BLD = torch.randn(2, ROWS, ROW_LENGTH, D_MODEL)
    streams: list[float] = []
    layers = stack.each_layer()
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


# ---------------------------------------------------------------- activations (section 3.3)

ACTIVATIONS_SHOWN: tuple[tuple[Activation, str, str], ...] = (
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
    for name, label, style in ACTIVATIONS_SHOWN:
        for axes, numbers in zip(panels, values_and_slopes(name, x), strict=True):
            axes.plot(x.numpy(), numbers.numpy(), style, label=label)
    for axes, title in zip(panels, ("activation", "its slope"), strict=True):
        axes.set(title=title, xlabel="x", xlim=(-5, 5))
        axes.grid(alpha=0.3)
    panels[0].set_ylim(-0.5, 3)
    panels[0].legend(fontsize=9)
    return save(figure, path)


# ---------------------------------------------------------------- caches

DECODED = 512
NUM_HEADS = 8
HEAD_DIM = 64
CACHES_SHOWN: tuple[tuple[str, Pattern, int], ...] = (
    ("full: 8 key-value heads", Causal(), 8),
    ("grouped: 2 key-value heads", Causal(), 2),
    ("one key-value head", Causal(), 1),
    ("window of 64", SlidingWindow(size=64), 8),
    ("linear", LinearAttention(), 8),
)


def stored_bytes(storage: Storage) -> int:
    """The bytes of the tensors that a storage holds now, with the room that it has reserved."""
    held = [value for value in vars(storage).values() if isinstance(value, torch.Tensor)]
    return sum(tensor.nbytes for tensor in held)


@torch.no_grad()
def cache_growth(pattern: Pattern, num_kv_heads: int, length: int) -> list[int]:
    """Decode `length` tokens with one layer's attention, 8 heads of 64, and weigh its storage.

    Returns the bytes behind each token, for one sentence in float32.
    """
    q_BHTd = torch.ones(1, NUM_HEADS, 1, HEAD_DIM)
    token = KeyValue(*torch.ones(2, 1, num_kv_heads, 1, HEAD_DIM))
    storage = pattern.make_storage()
    weighed = []
    for _ in range(length):
        pattern.attend(q_BHTd, storage.extend(token), None, Scoring(scale=HEAD_DIM**-0.5))
        weighed.append(stored_bytes(storage))
    return weighed


def plot_cache_growth(path: Path | str) -> Path:
    """Draw the bytes that one layer keeps while 512 tokens are decoded, for five layers.

    Full attention keeps every key and value; its store doubles when it is full, hence the stairs,
    and the dotted line is what is in use. Fewer key-value heads make it smaller by their number.
    A window stops growing at two windows, and linear attention keeps one matrix for each head
    from the first token on.
    """
    figure = blank(8.6, 4.2)
    axes = figure.subplots()
    tokens = range(1, DECODED + 1)
    for name, pattern, num_kv_heads in CACHES_SHOWN:
        kib = [weight / 1024 for weight in cache_growth(pattern, num_kv_heads, DECODED)]
        axes.plot(tokens, kib, label=name, linewidth=2)
    token = 2 * NUM_HEADS * HEAD_DIM * torch.float32.itemsize / 1024
    axes.plot(tokens, [token * n for n in tokens], ":", color="0.4", label="full, in use")
    axes.set(xlabel="tokens decoded", ylabel="KiB for each layer and sentence")
    axes.set(xlim=(0, DECODED), yscale="log")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=9, loc="upper left", ncols=2)
    axes.set_ylim(10, 10_000)
    return save(figure, path)
