"""What usual mistakes look like in the weights of one head."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from dragoman.lens.picture import blank, save
from dragoman.nn import Weighting, causal_mask, padding_mask, reference_attention

PADDED = 2
LENGTH = 8
HEAD_DIM = 64
SEED = 1


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

    def ours(mask: Tensor, weighting: Weighting | None = None) -> Tensor:
        """Those that the package computes under a mask."""
        return reference_attention(q_BHTd, k_BHSd, k_BHSd, mask, weighting)[1][0, 0]

    return {
        "ours": ours(seen),
        "mask read the wrong way": scores.masked_fill(seen, -1e9).softmax(dim=-1),
        "no causal mask": ours(seen[-1:]),
        "padding not hidden": ours(causal_mask(LENGTH, LENGTH)),
        "-inf where nothing is seen": scores.masked_fill(~seen, float("-inf")).softmax(dim=-1),
        "not divided by sqrt(d)": ours(seen, Weighting(scale=1.0)),
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
