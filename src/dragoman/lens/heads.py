"""Every head of a model on one text, in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.lens.heatmap import draw_cells
from dragoman.lens.picture import blank, save

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure, SubFigure

    from dragoman.lens.inspection import AttentionMap, Inspection

_MAIN_INCHES_A_TOKEN = 0.36
_MAIN_INCHES_AT_MOST = 16.0
_INCHES_A_HEAD = 1.25
_INCHES_AT_MOST = 40.0


def plot_heads(inspection: Inspection, path: Path | str) -> Path:
    """Draw where a model looks: one large grid with tokens, and a small one for each head.

    The large grid is the word alignment of a translation, else the last layer's attention averaged
    over its heads. Below stand the heads of each kind of attention, a row for each layer that was
    kept, each under the word for what it does; queries go down, keys go right, as in the large one.
    Writes a PNG and returns its path. Raises InputError if nothing can be written there.
    """
    return save(figure_of(inspection), path)


def figure_of(inspection: Inspection) -> Figure:
    """The figure of ``plot_heads``: as large as its tokens and heads need, up to a limit."""
    weights_TS, rows, columns, title = _main(inspection)
    most_heads = max((len(each.heads) for each in inspection.attention), default=0)
    width = max(2.5 + _MAIN_INCHES_A_TOKEN * len(columns), 0.8 + _INCHES_A_HEAD * most_heads, 6.0)
    heights = [min(1.8 + _MAIN_INCHES_A_TOKEN * len(rows), _MAIN_INCHES_AT_MOST)]
    heights += [0.5 + 1.15 * _INCHES_A_HEAD * len(each.layers) for each in inspection.attention]
    width = min(width, _INCHES_AT_MOST)
    figure = blank(width, min(sum(heights), _INCHES_AT_MOST))
    blocks = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    blocks[0].suptitle(title, fontsize=12)
    draw_cells(blocks[0].subplots(), weights_TS, columns, rows)
    for block, each in zip(blocks[1:], inspection.attention, strict=True):
        _draw_heads(block, each, columns=max(most_heads, int(width / _INCHES_A_HEAD)))
    return figure


def _main(inspection: Inspection) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...], str]:
    """The large grid: weights, the tokens at its rows and columns, and what it is."""
    src = inspection.src.tokens
    if inspection.alignment is not None and inspection.tgt is not None:
        return inspection.alignment.weights_TS, inspection.tgt.tokens, src, "word alignment"
    last = inspection.attention[-1]
    title = f"layer {last.layers[-1]}, {last.mean_name}"
    return last.weights_LHTS[-1].mean(0), last.query_tokens, last.key_tokens, title


def _draw_heads(block: SubFigure, attention: AttentionMap, columns: int) -> None:
    """A small grid for each layer and head, with no tokens: their order is that of the texts."""
    block.suptitle(f"{attention.name}: layer.head, counted from 0", x=0.01, ha="left", fontsize=11)
    grid = block.add_gridspec(len(attention.layers), columns)
    for row, layer in enumerate(attention.layers):
        for column, head in enumerate(attention.heads):
            axes = block.add_subplot(grid[row, column])
            weights_TS = attention.weights_LHTS[row, column]
            axes.imshow(weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            kind = attention.summaries[row][column].kind
            axes.set_title(f"{layer}.{head} {kind}", fontsize=7, pad=3)
