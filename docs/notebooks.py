"""A notebook for each page of the walk that has experiments, for Jupyter and Colab.

Its cells are the page: the text, and each experiment as code. A link to another page of the walk
leads to that page's notebook. The first cell installs the package from a checkout, unless it is
installed.

    notebooks/          from `python docs/make.py pages`: without output, the pictures are those of
                        the checkout
    build/site/walk/    from `python docs/make.py site`, beside the page, which links to it below
                        its heading: the pictures are inside, and below the code is what the page
                        says it printed
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from excerpts import ROOT
from staging import (
    BROKEN_CHINESE,
    DOCS,
    FENCED,
    LANGUAGES,
    LINK,
    Tree,
    find_pages,
    is_chinese,
    site_link,
)

FOLDERS = {"en": ROOT / "notebooks", "zh": ROOT / "notebooks" / "zh"}
"""Where the checkout has the notebooks of each language."""

Led = Callable[[str], str]
"""Where a link of the page leads in the notebook."""

INSTALL = """\
from importlib.util import find_spec
from pathlib import Path

# {told}
folders = [Path.cwd(), *Path.cwd().parents]
checkout = next((each for each in folders if (each / "src/dragoman").exists()), "./dragoman")
if find_spec("dragoman") is None:
    %pip install --quiet {{checkout}}"""
TOLD = {
    "en": "Installs the package from a checkout around this notebook, or from the folder `dragoman`"
    " beside it.",
    "zh": "从本笔记本所在的、克隆下来的仓库安装这个包；没有的话，从旁边的 `dragoman` 文件夹安装。",
}
LINKED = {"en": "This page as a notebook", "zh": "本页的笔记本"}
MEDIA = {".png": "image/png", ".svg": "image/svg+xml"}

_COMMENT = re.compile(r"^<!--.*?-->\n?", re.M)
_PICTURE = re.compile(r"(?P<open>!\[[^\]]*\])\((?P<target>[^)\s]+)\)")


def checkout_notebooks() -> dict[Path, str]:
    """The notebooks of the checkout: what is in each file."""
    made = {}
    for language, folder in FOLDERS.items():
        tree = find_pages(language)
        for name in pages_with_experiments(tree):
            plain = notebook(tree, name, _in_checkout(tree, name))
            for cell in plain["cells"]:
                cell["source"] = cell["source"].splitlines(keepends=True)  # as Jupyter saves it
                if cell["cell_type"] == "code":
                    cell["outputs"] = []
            made[folder / Path(notebook_name(name)).name] = _written(plain)
    return made


def add_notebooks(tree: Tree, folder: Path) -> None:
    """Write the notebooks of a language into the folder of its staged pages, and the links."""
    for name in pages_with_experiments(tree):
        made = folder / notebook_name(name)
        made.write_text(_written(site_notebook(tree, name)), encoding="utf-8")
        staged = folder / name
        heading, _, rest = staged.read_text(encoding="utf-8").partition("\n\n")
        link = f'[{LINKED[tree.language]}]({made.name}){{ .notebook download="{made.name}" }}'
        staged.write_text(f"{heading}\n\n{link}\n\n{rest}", encoding="utf-8")


def pages_with_experiments(tree: Tree) -> list[str]:
    """The pages of the walk that have code to run."""
    return [
        name
        for name, path in sorted(tree.pages.items())
        if name.startswith("walk/") and "```python" in path.read_text(encoding="utf-8")
    ]


def notebook_name(name: str) -> str:
    """The file of a page's notebook."""
    return name.removesuffix(".md") + ".ipynb"


def site_notebook(tree: Tree, name: str) -> dict[str, Any]:
    """The notebook of a page for the site, with its pictures inside."""
    made = notebook(tree, name, _on_site(tree, name))
    for cell in made["cells"]:
        if cell["cell_type"] == "markdown":
            _attach_pictures(cell)
    return made


def notebook(tree: Tree, name: str, led: Led) -> dict[str, Any]:
    """The notebook of a page, as nbformat 4.5 has it."""
    cells = [_code(INSTALL.format(told=TOLD[tree.language])), *_cells(tree.pages[name], led)]
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _written(made: dict[str, Any]) -> str:
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


# ------------------------------------------------------------------------- links


def _on_site(tree: Tree, name: str) -> Led:
    """To a page of the site, or to its notebook beside this one."""
    with_experiments = pages_with_experiments(tree)

    def led(target: str) -> str:
        path, hash_, anchor = site_link(tree, name, target).partition("#")
        if path.endswith(".md"):
            known = f"walk/{path}" in with_experiments
            path = notebook_name(path) if known else path.removesuffix(".md") + ".html"
        return f"{path}{hash_}{anchor}"

    return led


def _in_checkout(tree: Tree, name: str) -> Led:
    """To a file of the checkout, or to its notebook beside this one."""
    files = {tree.pages[each]: each for each in pages_with_experiments(tree)}

    def led(target: str) -> str:
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return target
        file = Path(os.path.normpath(tree.pages[name].parent / path))
        if file in files:
            return f"{Path(notebook_name(files[file])).name}{hash_}{anchor}"
        return f"{os.path.relpath(file, FOLDERS[tree.language])}{hash_}{anchor}"

    return led


# ------------------------------------------------------------------------- cells


def _cells(path: Path, led: Led) -> Iterator[dict[str, Any]]:
    """The text of a page and its experiments, each with what it printed, in order."""
    page = LANGUAGES.sub("", path.read_text(encoding="utf-8"), count=1)

    def shown(text: str) -> str:
        """Text without comments, its links as they lead from the notebook."""
        text = _COMMENT.sub("", text)
        if is_chinese(path):
            text = BROKEN_CHINESE.sub("", text)
        return LINK.sub(lambda found: found["open"] + led(found["target"]), text)

    prose, code, end = "", None, 0
    for fenced in FENCED.finditer(page):
        between = page[end : fenced.start()]
        end = fenced.end()
        kind = fenced["info"].strip()
        if code is not None:
            if kind == "text" and not _COMMENT.sub("", between).strip():
                yield code | {"outputs": [_printed(fenced["body"])]}
                code = None
                continue
            yield code
            code = None
        prose += shown(between)
        if kind in ("python", "python3"):  # alone, or a part of a program
            yield from _text(prose)
            prose, code = "", _code(fenced["body"].rstrip("\n"))
        else:
            prose += f"$$\n{fenced['body']}$$" if kind == "math" else fenced[0]
    if code is not None:
        yield code
    yield from _text(prose + shown(page[end:]))


def _code(source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return cell | {"outputs": [], "source": source}


def _printed(text: str) -> dict[str, str]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _text(prose: str) -> Iterator[dict[str, Any]]:
    """A cell of text; none where there is no text."""
    if prose.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": prose.strip("\n")}


def _attach_pictures(cell: dict[str, Any]) -> None:
    """Put the pictures that a cell of text shows into it."""

    def attach(found: re.Match[str]) -> str:
        picture = DOCS / "images" / Path(found["target"]).name
        content = base64.b64encode(picture.read_bytes()).decode()
        cell.setdefault("attachments", {})[picture.name] = {MEDIA[picture.suffix]: content}
        return f"{found['open']}(attachment:{picture.name})"

    cell["source"] = _PICTURE.sub(attach, cell["source"])
