"""Every head of a translator's cross-attention on one sentence, and the mean of its heads.

    PYTHONPATH=docs:. python docs/figures/heads.py runs/demo/model

writes what they look at into heads.json, which the pictures are drawn from. The model is what
`dragoman demo` leaves; the sentence is one of its grammar's. Layers and heads are counted from 0,
as everywhere.
"""

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.data.made import EXAMPLE
from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.lens.pictures import blank, draw_cells, heat_map, label, save
from dragoman.tasks.folders import read_folder
from dragoman.tasks.loading import load
from figures.chinese import chinese, translate

RESULTS = Path(__file__).with_name("heads.json")
TITLE = "Which English word each Chinese piece looks at"
TEXT = "The farmer read two books at the library yesterday."


class Looks(NamedTuple):
    """How much each token that was written looked at each token of the source."""

    src: Sequence[str]
    tgt: Sequence[str]
    weights: npt.NDArray[np.float64]
    """`(L, H, T, S)` by layer and head, or `(T, S)`."""


def plot_every_head(path: Path | str) -> Path:
    """Draw a grid for each head, from what was measured."""
    return plot_heads(looks("heads"), Path(path))


def plot_mean(path: Path | str) -> Path:
    """Draw what `dragoman demo` draws of its last sentence; in Chinese if `path` says so."""
    mean = looks("mean")
    figure = heat_map(mean.weights, mean.src, mean.tgt, TITLE)
    if ".zh." in Path(path).name:
        grid, bar = figure.axes
        for text in (grid.title, bar.yaxis.label):
            translate(text)
    return save(figure, path)


def plot_heads(cross: Looks, path: Path) -> Path:
    """Draw a grid for each head, a row of grids for each layer; in Chinese if `path` says so.

    A row of a grid is a token that is written, a column a source token; white is 0 and the darkest
    blue 1.
    """
    rows, columns = cross.weights.shape[:2]
    figure = blank(3.3 * columns, 3.6 * rows)
    grids = figure.subplots(rows, columns, squeeze=False)
    for (layer, head), axes in np.ndenumerate(grids):
        draw_cells(axes, cross.weights[layer, head], cross.src, cross.tgt)
        said = f"layer {layer}, head {head}"
        shown, font = label(chinese(said) if ".zh." in path.name else said)
        axes.set_title(shown, fontproperties=font, fontsize=12)
        for text in axes.get_xticklabels():
            text.set(rotation=90, horizontalalignment="center")
    return save(figure, path)


@cache
def looks(name: str) -> Looks:
    """What was measured under a name: heads or mean."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))[name]
    return Looks(found["src"], found["tgt"], np.array(found["weights"]))


def main(model: str) -> None:
    """Measure both, and write them to three digits."""
    inspection = inspect_folder(read_folder(Path(model), device="cpu"), TEXT, Choices())
    cross = next(each for each in inspection.attention if each.name == "cross")
    mean = load(Path(model), device="cpu").translate(EXAMPLE.src).alignment()
    measured = {
        "heads": Looks(cross.key_tokens, cross.query_tokens, cross.weights_LHTS),
        "mean": Looks(mean.src_tokens, mean.tgt_tokens, mean.weights_TS.numpy()),
    }
    plain = {
        name: each._asdict() | {"weights": np.round(each.weights.astype(float), 3).tolist()}
        for name, each in measured.items()
    }
    RESULTS.write_text(json.dumps(plain, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
