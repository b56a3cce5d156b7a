"""A figure that belongs to nobody else, and its way into a file."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from dragoman.lens.files import replacing

_DOTS_AN_INCH = 130


def blank(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, apart from matplotlib's global state.

    It is white, whatever the page around it: its colours mean numbers and stay what they are.
    """
    return Figure(
        figsize=(width, height), dpi=_DOTS_AN_INCH, layout="constrained", facecolor="white"
    )


def save(figure: Figure, path: Path | str) -> Path:
    """Write a PNG, whole or not at all; the same figure gives the same bytes.

    Missing folders are made. Returns the path. Raises ``InputError`` if nothing can be written
    there.
    """
    target = Path(path)
    with replacing(target, "picture") as part:
        figure.savefig(part, format="png", metadata={"Software": None})
    return target
