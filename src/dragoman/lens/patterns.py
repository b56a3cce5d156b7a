"""Who sees whom: every attention pattern as a picture of its mask."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn.mask import Documents
from dragoman.nn.patterns import (
    Causal,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    Packed,
    Pattern,
    SlidingWindow,
    Strided,
)

LENGTH = 24
SHOWN: tuple[tuple[str, Pattern], ...] = (
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
    for axes, (name, pattern) in zip(figure.subplots(3, 3).flat, SHOWN, strict=True):
        mask = pattern.mask(LENGTH, LENGTH, torch.device("cpu"))
        seen = torch.ones(LENGTH, LENGTH, dtype=torch.bool) if mask is None else mask
        axes.imshow(seen.numpy(), cmap="Blues", vmin=0, vmax=1.4)
        axes.set_title(name, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.supxlabel("key")
    figure.supylabel("query")
    return save(figure, path)
