"""Figures of attention: the softmax, the masks, the reach, and common mistakes."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.lens.pictures import blank
from dragoman.nn import (
    Causal,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    MultiHeadAttention,
    Packed,
    Scoring,
    SlidingWindow,
    Strided,
    causal_mask,
    padding_mask,
    reference_attention,
)
from dragoman.nn.patterns.packed import Documents
from dragoman.nn.patterns.pattern import Pattern
from figures.chinese import save

# ---------------------------------------------------------------- softmax (section 3.2.1)

TEMPERATURES = (0.25, 1.0, 4.0)
SCORES = (2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
KEYS = 32
QUERIES = 256
SEED = 1


def softmax_of(scores: Sequence[float], temperature: float) -> list[float]:
    """Compute `softmax(scores / temperature)` by attention itself.

    One query, the number 1, meets keys that are the scores; its scale is `1 / temperature`.
    """
    q_BHTd = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    k_BHSd = torch.tensor(scores, dtype=torch.float64)[None, None, :, None]
    weights_BHTS = reference_attention(
        q_BHTd, k_BHSd, k_BHSd, None, Scoring(scale=1 / temperature)
    )[1]
    return [float(weight) for weight in weights_BHTS.flatten()]


def plot_softmax_temperature(path: Path | str) -> Path:
    """Draw the weights that eight scores get at three temperatures.

    The scores are the same in each picture, 2 to -1.5 in steps of a half, and are divided by the
    temperature. Cold, nearly all the weight is on the largest; hot, all keys get about the same.
    Multiplying scores by a number is the same as dividing the temperature by it.
    """
    figure = blank(9.6, 3.2)
    for axes, temperature in zip(
        figure.subplots(1, len(TEMPERATURES), sharey=True), TEMPERATURES, strict=True
    ):
        axes.bar(range(len(SCORES)), softmax_of(SCORES, temperature), color="tab:blue")
        axes.set(title=f"temperature {temperature:g}", xlabel="score", ylim=(0, 1))
        axes.set_xticks(range(len(SCORES)), labels=[f"{score:g}" for score in SCORES])
    figure.supylabel("weight", fontsize=10)
    return save(figure, path)


class Saturation(NamedTuple):
    """What happened to random queries and keys of one width; each figure is a mean over queries."""

    spread: float
    """Standard deviation of the scores."""
    largest: float
    """Largest weight of a query."""
    gradient: float
    """Norm of the largest weight's gradient in the scores: how much learning can move it."""


@cache
def saturation(head_dim: int, scale: float, *, seed: int = SEED) -> Saturation:
    """Attend with random queries and keys, drawn from N(0, 1), 32 keys for each of 256 queries.

    A score before scaling is a sum of `d` products of variance 1, so its standard deviation is
    `sqrt(d)`. The gradient is measured by going back from the largest weight to the scores.
    """
    generator = torch.Generator().manual_seed(seed)
    q_BHTd = torch.randn(QUERIES, 1, 1, head_dim, generator=generator, dtype=torch.float64)
    k_BHSd = torch.randn(QUERIES, 1, KEYS, head_dim, generator=generator, dtype=torch.float64)
    scores_BHTS = (q_BHTd @ k_BHSd.transpose(-2, -1) * scale).requires_grad_()
    one_BHTd = torch.ones(QUERIES, 1, 1, 1, dtype=torch.float64)
    scores_as_keys_BHSd = scores_BHTS.transpose(-2, -1)
    weights_BHTS = reference_attention(
        one_BHTd, scores_as_keys_BHSd, scores_as_keys_BHSd, None, Scoring(scale=1.0)
    )[1]
    largest_BHT = weights_BHTS.amax(dim=-1)
    (gradient_BHTS,) = torch.autograd.grad(largest_BHT.sum(), scores_BHTS)
    return Saturation(
        float(scores_BHTS.detach().std()),
        float(largest_BHT.detach().mean()),
        float(gradient_BHTS.norm(dim=-1).mean()),
    )


def plot_softmax_saturation(path: Path | str) -> Path:
    """Draw what the width of a head does to attention with and without `1 / sqrt(d)`.

    Random queries meet 32 random keys. Without the division the scores spread like sqrt(d) (left,
    both axes logarithmic), the largest weight goes to 1 (middle), and the gradient that could
    change it goes to 0 (right). Divided by sqrt(d), all three stay where they are at any width.
    """
    figure = blank(10.8, 3.5)
    panels = figure.subplots(1, 3)
    for label, power in (("q · k", 0.0), ("q · k / sqrt(d)", -0.5)):
        measured = [saturation(width, width**power) for width in WIDTHS]
        for axes, values in zip(panels, zip(*measured, strict=True), strict=True):
            axes.plot(WIDTHS, values, marker="o", markersize=4, label=label)
    titles = ("standard deviation of the scores", "largest weight", "its gradient in the scores")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel="width of a head, d", xscale="log")
        axes.set_xticks(WIDTHS, labels=[str(width) for width in WIDTHS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
    panels[0].set_yscale("log")
    panels[1].set_ylim(0, 1.05)
    panels[2].set_ylim(0, None)
    return save(figure, path)


# ---------------------------------------------------------------- masks

PATTERN_LENGTH = 24
PATTERNS: tuple[tuple[str, Pattern | Packed], ...] = (
    ("full", Full()),
    ("causal", Causal()),
    ("linear (causal)", LinearAttention()),
    ("sliding window, 6", SlidingWindow(size=6)),
    ("sliding window, 3 each way", SlidingWindow(size=3, causal=False)),
    ("Longformer, 2 global", Longformer(window=3, global_positions=(0, 12))),
    ("strided, 5", Strided(stride=5)),
    ("fixed, 6, summary 2", Fixed(stride=6, summary=2)),
    ("packed documents, causal", Packed(Causal(), Documents((9, 4, 11)))),
)


def plot_patterns(path: Path | str) -> Path:
    """Draw the mask of each pattern for 24 positions: a row is a query and a column is a key.

    Blue is seen and white is hidden; the key at the query's own place is on the diagonal.
    """
    figure = blank(9.0, 9.4)
    for axes, (name, pattern) in zip(figure.subplots(3, 3).flat, PATTERNS, strict=True):
        mask = pattern.mask(PATTERN_LENGTH, PATTERN_LENGTH, torch.device("cpu"))
        seen = torch.ones(PATTERN_LENGTH, PATTERN_LENGTH) if mask is None else mask
        axes.imshow(seen.numpy(), cmap="Blues", vmin=0, vmax=1.4)
        axes.set_title(name, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.supxlabel("key")
    figure.supylabel("query")
    return save(figure, path)


# ---------------------------------------------------------------- reach (section 4)

D_MODEL = 64
FARTHEST = 128
DRAWS = 16
RECURRENT: dict[str, Callable[..., nn.RNNBase]] = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
KINDS = ("attention", *RECURRENT)


def steps_between(kind: str, distance: int) -> int:
    """How many steps a signal takes from one word to another so many words on (Table 1)."""
    return distance if kind in RECURRENT else 1


@cache
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


# ---------------------------------------------------------------- mistakes

PADDED = 2
LENGTH = 8
HEAD_DIM = 64


def allowed() -> Tensor:
    """Who may see whom, `(T, S)`: none a later place, and none the two paddings in front."""
    ids_BS = torch.ones(1, LENGTH, dtype=torch.long)
    ids_BS[:, :PADDED] = 0
    return padding_mask(ids_BS, pad_id=0)[0, 0] & causal_mask(LENGTH, LENGTH)


def weights_by_mistake(*, seed: int = SEED) -> dict[str, Tensor]:
    """The weights `(T, S)` of random queries and keys of width 64, as we make them and by faults.

    Eight places, the first two of them padding. Every fault sees the same queries and keys, and
    differs from ours in what its name says and in nothing else.
    """
    generator = torch.Generator().manual_seed(seed)
    q_BHTd, k_BHSd = torch.randn(
        2, 1, 1, LENGTH, HEAD_DIM, generator=generator, dtype=torch.float64
    )
    seen = allowed()
    scores = (q_BHTd @ k_BHSd.transpose(-2, -1) * HEAD_DIM**-0.5)[0, 0]

    def ours(mask: Tensor, weighting: Scoring | None = None) -> Tensor:
        """Those that the package computes under a mask."""
        return reference_attention(q_BHTd, k_BHSd, k_BHSd, mask, weighting)[1][0, 0]

    return {
        "ours": ours(seen),
        "mask read the wrong way": scores.masked_fill(seen, -1e9).softmax(dim=-1),
        "no causal mask": ours(seen[-1:]),
        "padding not hidden": ours(causal_mask(LENGTH, LENGTH)),
        "-inf where nothing is seen": scores.masked_fill(~seen, float("-inf")).softmax(dim=-1),
        "not divided by sqrt(d)": ours(seen, Scoring(scale=1.0)),
    }


def plot_mistakes(path: Path | str) -> Path:
    """Draw the weights of one head as five mistakes make them, beside ours.

    A row is a query and a column is a key, white is 0 and the darkest blue 1; the first two places
    are padding, a red cross is NaN. Ours: nothing above the diagonal, nothing on padding, and a
    query that may see nothing has no weights. Read the wrong way, the mask shows what it should
    hide. Without the causal mask every word sees those behind it; with padding not hidden every
    word gives it a share. With minus infinity the rows of queries that see nothing are NaN. Scores
    that are not divided put nearly all of a row on one key.
    """
    figure = blank(9.6, 6.3)
    drawn = weights_by_mistake()
    for axes, (name, weights) in zip(figure.subplots(2, 3).flat, drawn.items(), strict=True):
        image = axes.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1)
        rows, columns = weights.isnan().nonzero(as_tuple=True)
        axes.plot(columns.numpy(), rows.numpy(), "x", color="tab:red")
        axes.axvline(PADDED - 0.5, color="black", linewidth=0.8, linestyle=":")
        axes.axhline(PADDED - 0.5, color="black", linewidth=0.8, linestyle=":")
        axes.set_title(name, fontsize=11)
        labels = ["pad"] * PADDED + [str(place) for place in range(1, LENGTH - PADDED + 1)]
        axes.set_xticks(range(LENGTH), labels=labels, fontsize=8)
        axes.set_yticks(range(LENGTH), labels=labels, fontsize=8)
    figure.colorbar(image, ax=figure.axes, label="weight", shrink=0.6)
    figure.supxlabel("key", fontsize=10)
    figure.supylabel("query", fontsize=10)
    return save(figure, path)
