"""Regenerate the pages that are made from the code: ``make docs``.

docs/cli.md is the reference of the command line, taken from the verbs' own help texts.
"""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent


def write_cli() -> None:
    """Write the help of every verb as Markdown."""
    program = ("typer", "dragoman.cli.main", "utils", "docs", "--name", "dragoman")
    page = subprocess.run(  # noqa: S603 -- our own program
        [sys.executable, "-m", *program], capture_output=True, text=True, check=False
    )
    if page.returncode:
        sys.exit(f"docs/cli.md: the command line cannot describe itself\n{page.stderr}")
    (DOCS / "cli.md").write_text(page.stdout.rstrip() + "\n", encoding="utf-8")
    print("docs/cli.md")


if __name__ == "__main__":
    write_cli()
