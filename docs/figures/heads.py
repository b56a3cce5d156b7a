"""Draw docs/images/heads.png, every head of a translator's cross-attention on one sentence.

And docs/images/attention.png, the mean of its heads on the sentence of `dragoman demo`.

    PYTHONPATH=docs python -m figures.heads runs/demo/model

The model is what `dragoman demo` leaves; the sentence is one of its grammar's.
"""

import sys
from pathlib import Path

import numpy as np

from dragoman.data.made import EXAMPLE
from dragoman.lens.inspecting import Choices, inspect_folder
from dragoman.lens.inspection import AttentionMap
from dragoman.lens.pictures import blank, draw_cells, heat_map, label, save
from dragoman.tasks.folders import load, read_folder
from figures.chinese import chinese, chinese_name, translate

IMAGES = Path(__file__).parents[1] / "images"
TITLE = "Which English word each Chinese piece looks at"
TEXT = "The farmer read two books at the library yesterday."


def cross_attention(model: Path) -> AttentionMap:
    """The cross-attention of every layer and head while the model translates the sentence."""
    inspection = inspect_folder(read_folder(model, device="cpu"), TEXT, Choices())
    return next(each for each in inspection.attention if each.name == "cross")


def plot_heads(cross: AttentionMap, path: Path) -> Path:
    """Draw a grid for each head, a row of grids for each layer; in Chinese if `path` says so.

    A row of a grid is a token that is written, a column a source token; white is 0 and the darkest
    blue 1.
    """
    rows, columns = len(cross.layers), len(cross.heads)
    figure = blank(3.3 * columns, 3.6 * rows)
    grids = figure.subplots(rows, columns, squeeze=False)
    for (row, column), axes in np.ndenumerate(grids):
        draw_cells(axes, cross.weights_LHTS[row, column], cross.key_tokens, cross.query_tokens)
        said = f"layer {cross.layers[row] + 1}, head {cross.heads[column] + 1}"
        shown, font = label(chinese(said) if ".zh." in path.name else said)
        axes.set_title(shown, fontproperties=font, fontsize=12)
        for text in axes.get_xticklabels():
            text.set(rotation=90, horizontalalignment="center")
    return save(figure, path)


def plot_mean(model: Path, path: Path) -> Path:
    """Draw what `dragoman demo` draws of its last sentence; in Chinese if `path` says so."""
    alignment = load(model, device="cpu").translate(EXAMPLE.src).alignment()
    tokens = alignment.src_tokens, alignment.tgt_tokens
    figure = heat_map(alignment.weights_TS.numpy(), *tokens, TITLE)
    if ".zh." in path.name:
        grid, bar = figure.axes
        for text in (grid.title, bar.yaxis.label):
            translate(text)
    return save(figure, path)


def main(model: str) -> None:
    """Draw them in both languages."""
    cross = cross_attention(Path(model))
    for name in ("heads.png", chinese_name("heads.png")):
        plot_heads(cross, IMAGES / name)
        sys.stdout.write(f"docs/images/{name}\n")
    for name in ("attention.png", chinese_name("attention.png")):
        plot_mean(Path(model), IMAGES / name)
        sys.stdout.write(f"docs/images/{name}\n")


if __name__ == "__main__":
    main(sys.argv[1])
