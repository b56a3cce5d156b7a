"""Which source token each target token looked at: figure 3 of Bahdanau et al. (2015)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.lens.heatmap import heat_map
from dragoman.lens.picture import save

if TYPE_CHECKING:
    import numpy as np


def plot_alignment(
    weights_TS: np.ndarray,
    src_tokens: Sequence[str],
    tgt_tokens: Sequence[str],
    path: Path | str,
    *,
    title: str = "",
) -> Path:
    """Draws attention weights as a heat map and writes it as a PNG file.

    Source tokens stand on top, target tokens on the side; row t shows how much target token t took
    from each source token (white is 0, the darkest blue is 1). Missing folders of the path are
    made; the file appears whole or not at all.

    ``weights_TS`` has shape (T, S): T target tokens, S source tokens. Returns the path. Raises
    ``InputError`` if nothing can be written there, ``ValueError`` on shapes that do not fit.
    """
    expected = (len(tgt_tokens), len(src_tokens))
    if weights_TS.shape != expected or 0 in expected:
        message = f"weights have shape {weights_TS.shape}, the tokens ask for (T, S) = {expected}"
        raise ValueError(message)
    return save(heat_map(weights_TS, src_tokens, tgt_tokens, title), path)
