"""A table of weights as a coloured grid with a token at every row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from dragoman.lens.fonts import label

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

_INCHES_A_TOKEN = 0.42
_INCHES_AT_MOST = 40.0
_DOTS_AN_INCH = 150


def heat_map(
    weights_TS: np.ndarray, src_tokens: Sequence[str], tgt_tokens: Sequence[str], title: str
) -> Figure:
    """The figure, apart from matplotlib's global state: no window, no settings, no open figures."""
    rows, columns = len(tgt_tokens), len(src_tokens)
    width = min(2.2 + _INCHES_A_TOKEN * columns, _INCHES_AT_MOST)
    height = min(1.8 + _INCHES_A_TOKEN * rows, _INCHES_AT_MOST)
    figure = Figure(figsize=(width, height), dpi=_DOTS_AN_INCH, layout="constrained")
    axes = figure.subplots()
    image = draw_cells(axes, weights_TS, src_tokens, tgt_tokens)
    figure.colorbar(image, ax=axes, shrink=0.8, aspect=2 * max(10, rows), label="attention")
    shown, font = label(title)
    _dress(axes.set_title(shown, pad=12), font, size=12)
    return figure


def draw_cells(
    axes: Axes, weights_TS: np.ndarray, src_tokens: Sequence[str], tgt_tokens: Sequence[str]
) -> AxesImage:
    """Draw the grid alone: from white, 0, to the darkest blue, 1."""
    image = axes.imshow(weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    _name_cells(axes, src_tokens, tgt_tokens)
    _separate_cells(axes, len(tgt_tokens), len(src_tokens))
    return image


def _name_cells(axes: Axes, src_tokens: Sequence[str], tgt_tokens: Sequence[str]) -> None:
    """Every token at its column or row, source on top and slanted."""
    src, tgt = ([label(token) for token in tokens] for tokens in (src_tokens, tgt_tokens))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks(range(len(src)), labels=[shown for shown, _ in src], rotation=45, ha="left")
    axes.set_yticks(range(len(tgt)), labels=[shown for shown, _ in tgt])
    texts = (*axes.get_xticklabels(), *axes.get_yticklabels())
    for text, (_, font) in zip(texts, (*src, *tgt), strict=True):
        _dress(text, font, size=11)


def _separate_cells(axes: Axes, rows: int, columns: int) -> None:
    """Thin white lines between the cells and no frame."""
    axes.set_xticks([column - 0.5 for column in range(1, columns)], minor=True)
    axes.set_yticks([row - 0.5 for row in range(1, rows)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.0)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)


def _dress(text: Text, font: FontProperties, *, size: float) -> None:
    """Literal text, in which "$" begins no formula, in that font."""
    text.set_parse_math(False)
    text.set_fontproperties(font)
    text.set_fontsize(size)
