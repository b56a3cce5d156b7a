"""How far one word is from another, in a recurrent network and in attention (paper, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.lens.picture import blank, save
from dragoman.nn import MultiHeadAttention

D_MODEL = 64
FARTHEST = 128
DRAWS = 16
RECURRENT: dict[str, Callable[..., nn.RNNBase]] = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
KINDS = ("attention", *RECURRENT)


def steps_between(kind: str, distance: int) -> int:
    """How many steps a signal takes from one word to another so many words on (Table 1)."""
    return distance if kind in RECURRENT else 1


def gradients_by_distance(
    kind: str, *, farthest: int = FARTHEST, draws: int = DRAWS
) -> list[float]:
    """How much the last output depends on the word 1, 2 ... `farthest` places before it.

    A layer of width 64 as it stands before training reads `farthest + 1` random words, N(0, 1). The
    gradient of a random direction of its last output is taken in each word; a figure is the norm,
    its geometric mean over draws of layer, words and direction. In float64: float32 knows nothing
    below 1e-45.
    """
    logs = []
    with torch.random.fork_rng(devices=[]):
        for seed in range(draws):
            torch.manual_seed(seed)
            x_BLD = torch.randn(1, farthest + 1, D_MODEL, dtype=torch.float64, requires_grad=True)
            direction_D = nn.functional.normalize(torch.randn(D_MODEL, dtype=torch.float64), dim=0)
            last_D = _read(kind, x_BLD)[0, -1]
            (gradient_BLD,) = torch.autograd.grad(last_D @ direction_D, x_BLD)
            logs.append(gradient_BLD[0, :-1].norm(dim=-1).log())
    nearest_first = torch.stack(logs).mean(dim=0).exp().flip(0)
    return [float(size) for size in nearest_first]


def _read(kind: str, x_BLD: Tensor) -> Tensor:
    """Draw a layer of this kind, and give it the words: `(B, L, D)`."""
    if kind in RECURRENT:
        layer = RECURRENT[kind](D_MODEL, D_MODEL, batch_first=True).double()
        out_BLD: Tensor = layer(x_BLD)[0]
    else:
        attn = MultiHeadAttention(D_MODEL, num_heads=4).double()
        out_BLD = attn(x_BLD, attn.project_kv(x_BLD))
    return out_BLD


def plot_reach(path: Path | str) -> Path:
    """Draw how far the last word is from those before it, counted in steps and in gradients.

    Left, the steps of the way from one word to another. Right (logarithmic), how much the last
    output of a layer depends on each word before training. In a recurrent layer each step back
    multiplies the gradient by something smaller than 1. In attention distance plays no part: its
    line is level, at a height that falls with the number of words, since they share one output; the
    nearest words count for more in a recurrent layer.
    """
    distances = range(1, FARTHEST + 1)
    figure = blank(9.6, 3.6)
    left, right = figure.subplots(1, 2)
    for name, kind in (("recurrent", "RNN"), ("attention", "attention")):
        color = "tab:blue" if kind == "attention" else "black"
        left.plot(distances, [steps_between(kind, d) for d in distances], color=color, label=name)
    for kind in KINDS:
        right.plot(distances, gradients_by_distance(kind), label=kind)
    left.set(title="steps between two words", ylim=(-4, None))
    right.set(title="gradient of the last output", yscale="log")
    for axes in (left, right):
        axes.set(xlabel="words back", xlim=(0, FARTHEST))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
    return save(figure, path)
