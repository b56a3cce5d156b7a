"""The pictures of attention: a grid with tokens, and every head of a model on one text.

Matplotlib's own font has no Chinese glyphs, and naming a font that is not installed only prints
warnings. So every label uses the first font file that has all its characters:

1. matplotlib's own font;
2. Noto Sans SC (SIL Open Font Licence), which the package `zhplot` contains and the extra `plot`
   installs; only its file is used, and the package is not imported, because importing it changes
   matplotlib's global settings;
3. any other installed font, but no other one of matplotlib's: its "Last Resort" font draws a frame
   for every character, and others have math symbols in place of letters.

If no font has them, missing characters are shown by their code points: U+6211 for 我.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib import get_data_path
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.image import AxesImage
from matplotlib.text import Text

from dragoman.files.writing import replacing
from dragoman.lens.inspection import AttentionMap, Inspection

_DOTS_AN_INCH = 130
_GRID_DOTS_AN_INCH = 150
_INCHES_A_TOKEN = 0.42
_MAIN_INCHES_A_TOKEN = 0.36
_MAIN_INCHES_AT_MOST = 16.0
_INCHES_A_HEAD = 1.25
_INCHES_AT_MOST = 40.0


# ---------------------------------------------------------------- any figure


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, independent of matplotlib's global state.

    It is white whatever surrounds it, because its colours represent numbers and must not change.
    """
    return Figure(
        figsize=(width, height), dpi=_DOTS_AN_INCH, layout="constrained", facecolor="white"
    )


def save(figure: Figure, path: Path | str) -> Path:
    """Write a PNG atomically and return its path; the same figure gives the same bytes.

    Missing folders are created. Raises `InputError` if nothing can be written there.
    """
    target = Path(path)
    drawn = BytesIO()  # a pipe takes bytes in order only, and this library seeks back
    figure.savefig(drawn, format="png", metadata={"Software": None})
    with replacing(target, "picture") as part:
        part.write_bytes(drawn.getvalue())
    return target


# ---------------------------------------------------------------- one grid


def plot_alignment(
    weights_TS: np.ndarray,
    src_tokens: Sequence[str],
    tgt_tokens: Sequence[str],
    path: Path | str,
    *,
    title: str = "",
) -> Path:
    """Draw attention weights as a heat map and write it as a PNG file.

    Source tokens are on top, target tokens on the side; row t shows how much target token t attends
    to each source token (white is 0, the darkest blue is 1). Missing folders are created, and the
    file is written atomically.

    `weights_TS` has shape (T, S): T target tokens, S source tokens. Returns the path. Raises
    `InputError` if nothing can be written there, `ValueError` on shapes that do not match.
    """
    expected = (len(tgt_tokens), len(src_tokens))
    if weights_TS.shape != expected or 0 in expected:
        message = f"weights have shape {weights_TS.shape}, the tokens ask for (T, S) = {expected}"
        raise ValueError(message)
    return save(heat_map(weights_TS, src_tokens, tgt_tokens, title), path)


def heat_map(
    weights_TS: np.ndarray, src_tokens: Sequence[str], tgt_tokens: Sequence[str], title: str
) -> Figure:
    """Return the figure, without matplotlib's global state: no window, settings or open figures."""
    rows, columns = len(tgt_tokens), len(src_tokens)
    width = min(2.2 + _INCHES_A_TOKEN * columns, _INCHES_AT_MOST)
    height = min(1.8 + _INCHES_A_TOKEN * rows, _INCHES_AT_MOST)
    figure = Figure(figsize=(width, height), dpi=_GRID_DOTS_AN_INCH, layout="constrained")
    axes = figure.subplots()
    image = draw_cells(axes, weights_TS, src_tokens, tgt_tokens)
    figure.colorbar(image, ax=axes, shrink=0.8, aspect=2 * max(10, rows), label="attention")
    shown, font = label(title)
    _dress(axes.set_title(shown, pad=12), font, size=12)
    return figure


def draw_cells(
    axes: Axes, weights_TS: np.ndarray, src_tokens: Sequence[str], tgt_tokens: Sequence[str]
) -> AxesImage:
    """Draw only the grid: from white, 0, to the darkest blue, 1."""
    image = axes.imshow(weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    _name_cells(axes, src_tokens, tgt_tokens)
    _separate_cells(axes, len(tgt_tokens), len(src_tokens))
    return image


def _name_cells(axes: Axes, src_tokens: Sequence[str], tgt_tokens: Sequence[str]) -> None:
    src, tgt = ([label(token) for token in tokens] for tokens in (src_tokens, tgt_tokens))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks(range(len(src)), labels=[shown for shown, _ in src], rotation=45, ha="left")
    axes.set_yticks(range(len(tgt)), labels=[shown for shown, _ in tgt])
    texts = (*axes.get_xticklabels(), *axes.get_yticklabels())
    for text, (_, font) in zip(texts, (*src, *tgt), strict=True):
        _dress(text, font, size=11)


def _separate_cells(axes: Axes, rows: int, columns: int) -> None:
    axes.set_xticks([column - 0.5 for column in range(1, columns)], minor=True)
    axes.set_yticks([row - 0.5 for row in range(1, rows)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.0)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)


def _dress(text: Text, font: FontProperties, *, size: float) -> None:
    """Set text in this font, literally: "$" does not start a formula."""
    text.set_parse_math(False)
    text.set_fontproperties(font)
    text.set_fontsize(size)


# ---------------------------------------------------------------- every head


def plot_heads(inspection: Inspection, path: Path | str) -> Path:
    """Draw where a model attends: one large grid with tokens, and a small one for each head.

    The large grid is the word alignment of a translation, else the last layer's attention averaged
    over its heads. Below are the heads of each kind of attention, a row for each kept layer, each
    under the word for its behaviour; queries go down, keys go right, as in the large one. Writes a
    PNG and returns its path. Raises InputError if nothing can be written there.
    """
    return save(figure_of(inspection), path)


def figure_of(inspection: Inspection) -> Figure:
    """Return the figure of `plot_heads`: as large as its tokens and heads need, up to a limit."""
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
    src = inspection.src.tokens
    if inspection.alignment is not None and inspection.tgt is not None:
        return inspection.alignment.weights_TS, inspection.tgt.tokens, src, "word alignment"
    last = inspection.attention[-1]
    title = f"layer {last.layers[-1]}, {last.mean_name}"
    return last.weights_LHTS[-1].mean(0), last.query_tokens, last.key_tokens, title


def _draw_heads(block: SubFigure, attention: AttentionMap, columns: int) -> None:
    """Draw a small grid for each layer and head, without tokens; their order is the texts'."""
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


# ---------------------------------------------------------------- a font for each label


def label(text: str) -> tuple[str, FontProperties]:
    """Return the text in a form that can be drawn, and the font to draw it with."""
    shown = "".join(
        char if char.isprintable() else "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}" for char in text
    )
    wanted = frozenset(map(ord, shown))
    for path in _candidates():
        if wanted <= _glyphs(path):
            return shown, FontProperties(fname=path)
    own = next(_candidates())
    known = _glyphs(own)
    spelled = "".join(char if ord(char) in known else f"U+{ord(char):04X}" for char in shown)
    return spelled, FontProperties(fname=own)


def _candidates() -> Iterator[str]:
    """Yield paths of font files in the order of the module's docstring, looked up when needed."""
    yield fontManager.findfont("DejaVu Sans")
    yield from _carried()
    yield from _installed()


@cache
def _installed() -> list[str]:
    """Return the installed upright fonts of regular weight, without matplotlib's."""
    found = (
        font.fname
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight in (400, "normal", "regular")
    )
    return sorted({path for path in found if not path.startswith(get_data_path())})


@cache
def _carried() -> list[str]:
    """Return the font files in the package `zhplot`, if it is installed."""
    spec = find_spec("zhplot")
    folders = spec.submodule_search_locations if spec else None
    return [str(path) for folder in folders or () for path in sorted(Path(folder).rglob("*.ttf"))]


@cache
def _glyphs(path: str) -> frozenset[int]:
    """Return the code points that a font file can draw; none if it cannot be read or scaled."""
    try:
        font = FT2Font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(font.get_charmap()) if font.scalable else frozenset()
