"""Regenerate the pages that are made from the code: ``make docs``.

docs/cli.md is the reference of the command line, taken from the verbs' own help texts; docs/images/
holds the pictures, each drawn by one function of `dragoman.lens`.
"""

import re
from pathlib import Path

import typer
from typer.cli import get_docs_for_click
from typer.main import get_command

from dragoman.cli.main import make_app
from dragoman.lens.patterns import plot_patterns
from dragoman.lens.positions import plot_positions

DOCS = Path(__file__).parent
PICTURES = {"patterns.png": plot_patterns, "positions.png": plot_positions}
"""The pictures that need no model, by the name of their file."""


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
