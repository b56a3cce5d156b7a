"""A figure that belongs to nobody else, and its way into a file."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from dragoman.files.writing import replacing

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
    drawn = BytesIO()  # a pipe takes bytes in their order alone, and this library goes back
    figure.savefig(drawn, format="png", metadata={"Software": None})
    with replacing(target, "picture") as part:
        part.write_bytes(drawn.getvalue())
    return target
