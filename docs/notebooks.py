"""A notebook for each page of the walk that has experiments, for Jupyter and Colab.

`python docs/make.py site` writes it beside the page and links to it below the heading. Its cells
are the page: the text, each experiment as code, and below the code what the page says it printed.
Pictures are inside; a link to another page of the walk leads to that page's notebook. The first
cell installs the package from a checkout, unless it is installed.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from staging import (
    BROKEN_CHINESE,
    DOCS,
    FENCED,
    LANGUAGES,
    LINK,
    Tree,
    is_chinese,
    site_link,
)

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


def add_notebooks(tree: Tree, folder: Path) -> None:
    """Write the notebooks of a language into the folder of its staged pages, and the links."""
    for name in pages_with_experiments(tree):
        made = folder / notebook_name(name)
        made.write_text(json.dumps(notebook(tree, name), ensure_ascii=False, indent=1) + "\n")
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


def notebook(tree: Tree, name: str) -> dict[str, Any]:
    """The notebook of a page, as nbformat 4.5 has it."""
    cells = [_code(INSTALL.format(told=TOLD[tree.language])), *_cells(tree, name)]
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cells(tree: Tree, name: str) -> Iterator[dict[str, Any]]:
    """The text of a page and its experiments, each with what it printed, in order."""
    page = LANGUAGES.sub("", tree.pages[name].read_text(encoding="utf-8"), count=1)
    prose, code, end = "", None, 0
    for fenced in FENCED.finditer(page):
        between = _COMMENT.sub("", page[end : fenced.start()])
        end = fenced.end()
        kind = fenced["info"].strip()
        if code is not None:
            if kind == "text" and not between.strip():
                yield code | {"outputs": [_printed(fenced["body"])]}
                code = None
                continue
            yield code
            code = None
        prose += _shown(tree, name, between)
        if kind in ("python", "python3"):  # alone, or a part of a program
            yield from _text(prose)
            prose, code = "", _code(fenced["body"].rstrip("\n"))
        else:
            prose += f"$$\n{fenced['body']}$$" if kind == "math" else fenced[0]
    if code is not None:
        yield code
    yield from _text(prose + _shown(tree, name, _COMMENT.sub("", page[end:])))


def _code(source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return cell | {"outputs": [], "source": source}


def _printed(text: str) -> dict[str, str]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _text(prose: str) -> Iterator[dict[str, Any]]:
    """A cell of text with its pictures inside it; none where there is no text."""
    if not prose.strip():
        return
    attachments: dict[str, dict[str, str]] = {}

    def attach(found: re.Match[str]) -> str:
        """Put a picture into the cell."""
        picture = DOCS / "images" / Path(found["target"]).name
        content = base64.b64encode(picture.read_bytes()).decode()
        attachments[picture.name] = {MEDIA[picture.suffix]: content}
        return f"{found['open']}(attachment:{picture.name})"

    cell: dict[str, Any] = {"cell_type": "markdown", "metadata": {}}
    cell["source"] = _PICTURE.sub(attach, prose.strip("\n"))
    yield cell | ({"attachments": attachments} if attachments else {})


def _shown(tree: Tree, name: str, text: str) -> str:
    """Text with its links as they lead from the folder of the notebook."""
    if is_chinese(tree.pages[name]):
        text = BROKEN_CHINESE.sub("", text)
    with_experiments = pages_with_experiments(tree)

    def led(found: re.Match[str]) -> str:
        """To a page of the site, or to its notebook."""
        target = site_link(tree, name, found["target"])
        path, hash_, anchor = target.partition("#")
        if path.endswith(".md"):
            if f"walk/{path}" in with_experiments:
                return found["open"] + notebook_name(path)
            path = path.removesuffix(".md") + ".html"
        return f"{found['open']}{path}{hash_}{anchor}"

    return LINK.sub(led, text)
