"""A figure that belongs to nobody else, and its way into a file."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from dragoman.errors import DragomanError, InputError

_DOTS_AN_INCH = 130


def blank(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, apart from matplotlib's global state.

    It is white, whatever the page around it: its colours mean numbers and stay what they are.
    """
    return Figure(
        figsize=(width, height), dpi=_DOTS_AN_INCH, layout="constrained", facecolor="white"
    )


def save(figure: Figure, path: Path | str) -> Path:
    """Write a PNG beside the target, then rename: whoever looks finds the old file or the new one.

    Missing folders are made; the same figure gives the same bytes. Returns the path. Raises
    ``InputError`` if nothing can be written there.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            figure.savefig(part, format="png", metadata={"Software": None})
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except (PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        message = f"cannot write the picture {target}: {error.strerror}; choose another path"
        raise InputError(message) from error
    except OSError as error:
        message = f"writing the picture {target} failed: {error.strerror or error}"
        raise DragomanError(message) from error
    return target
