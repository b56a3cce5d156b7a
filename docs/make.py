"""Regenerate the pages that are made from the code: ``make docs``.

docs/cli.md is the reference of the command line, taken from the verbs' own help texts; docs/images/
holds the pictures, each drawn by one function of `dragoman.lens`.

A page shows lines of the source by reference and never pastes them: a paragraph that is nothing but
a link to a file of the repository, whose text is the file and a name in it,

    [`src/dragoman/nn/attention.py:MultiHeadAttention.forward`](../../src/dragoman/nn/attention.py)

On GitHub that is a link. On the site it becomes the lines of that name (a class, a function, a
method, or a constant of a module or class), found by parsing the file, with their line numbers and
a link to the whole file. `path:Name:body` leaves its docstring out. A name that is gone, or a link
that leads to another file than its text says, ends the build with the page and the line.
"""

import re
from pathlib import Path

import typer
from typer.cli import get_docs_for_click
from typer.main import get_command

from dragoman.cli.main import make_app
from dragoman import lens

DOCS = Path(__file__).parent
PICTURES = {
    "cache-growth.png": lens.plot_cache_growth,
    "label-smoothing.png": lens.plot_label_smoothing,
    "norm-placement.png": lens.plot_norm_placement,
    "patterns.png": lens.plot_patterns,
    "positions.png": lens.plot_positions,
    "rotary-angles.png": lens.plot_rotary_angles,
    "schedules.png": lens.plot_schedules,
    "sinusoidal.png": lens.plot_sinusoidal,
    "sinusoidal-distances.png": lens.plot_sinusoidal_distances,
    "softmax-saturation.png": lens.plot_softmax_saturation,
    "softmax-temperature.png": lens.plot_softmax_temperature,
}
"""The pictures that need no model, by the name of their file in docs/images/."""


def cli_page() -> str:
    """The help of every verb as Markdown; example lines, which begin with the name, as code."""
    command = get_command(make_app())
    context = typer.Context(command, info_name="dragoman")
    page = get_docs_for_click(obj=command, ctx=context, name="dragoman")
    page = re.sub(r"^dragoman ", "    dragoman ", page, flags=re.MULTILINE)
    return page.replace("<tab>", "&lt;tab&gt;").rstrip() + "\n"


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(cli_page(), encoding="utf-8")
    print("docs/cli.md")
    for name, plot in PICTURES.items():
        plot(DOCS / "images" / name)
        print(f"docs/images/{name}")
