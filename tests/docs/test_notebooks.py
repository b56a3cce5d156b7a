"""The notebooks of the walk: valid, with the page's code and text, linked, up to date, and run."""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.walk import differences, experiments

from notebooks import (
    FOLDERS,
    add_notebooks,
    checkout_notebooks,
    notebook_name,
    pages_with_experiments,
    site_notebook,
)
from staging import DOCS, find_pages, stage

TREES = {language: find_pages(language) for language in ("en", "zh")}
ALL = [(language, name) for language in TREES for name in pages_with_experiments(TREES[language])]
EACH = pytest.mark.parametrize(
    ("language", "name"), ALL, ids=[f"{language}-{Path(name).stem}" for language, name in ALL]
)


def cells(language: str, name: str, kind: str) -> list[dict[str, Any]]:
    """The cells of a notebook that are of a kind."""
    return [c for c in site_notebook(TREES[language], name)["cells"] if c["cell_type"] == kind]


def test_every_page_but_the_index_has_one() -> None:
    """In both languages."""
    pages = [path.relative_to(DOCS).as_posix() for path in sorted((DOCS / "walk").glob("*.md"))]
    expected = [name for name in pages if name != "walk/index.md"]
    assert [pages_with_experiments(tree) for tree in TREES.values()] == [expected, expected]


@EACH
def test_it_has_the_experiments_of_its_page(language: str, name: str) -> None:
    """All of them, in order, each with what it printed; before them the installation."""
    install, *code = cells(language, name, "code")
    assert "%pip install" in install["source"]
    found = experiments(TREES[language].pages[name])
    assert [cell["source"] for cell in code] == [each.code.rstrip("\n") for each in found]
    printed = ["".join(output["text"] for output in cell["outputs"]) for cell in code]
    assert printed == [each.said for each in found]


@EACH
def test_it_has_the_text_of_its_page(language: str, name: str) -> None:
    """Headings, formulas and the lines of the source; no marker and no link to a lost file."""
    page = TREES[language].pages[name].read_text(encoding="utf-8")
    text = "\n\n".join(cell["source"] for cell in cells(language, name, "markdown"))
    for pattern in (r"^#+ [^\n]+$", r"^\$\$\n.+?\n\$\$$", r"^```py\n.*?^```$"):
        assert re.findall(pattern, text, re.M | re.S) == re.findall(pattern, page, re.M | re.S)
    assert "<!--" not in text
    assert "```python" not in text
    targets = re.findall(r"\]\((?!https?:|#|attachment:)([^)#]+)", text)
    assert [target for target in targets if not target.endswith((".html", ".ipynb"))] == []


@EACH
def test_its_pictures_are_inside(language: str, name: str) -> None:
    """Every picture of the page is an attachment of the cell that shows it, byte by byte."""
    page = TREES[language].pages[name].read_text(encoding="utf-8")
    shown = []
    for cell in cells(language, name, "markdown"):
        named = re.findall(r"\(attachment:([^)]+)\)", cell["source"])
        assert sorted(cell.get("attachments", {})) == sorted(named)
        for picture in named:
            ((kind, content),) = cell["attachments"][picture].items()
            assert kind.startswith("image/")
            assert base64.b64decode(content) == (DOCS / "images" / picture).read_bytes()
        shown += named
    assert shown == [Path(found).name for found in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)]


def test_links_lead_to_the_next_notebook() -> None:
    """Within the walk; other pages and sources are those of the site."""
    text = "\n".join(
        cell["source"] for cell in cells("en", "walk/03-scaled-dot-product.md", "markdown")
    )
    assert "](04-multi-head.ipynb)" in text
    assert "](../source/src/dragoman/nn/dot_product.py.html)" in text


def test_the_page_on_the_site_links_to_it(tmp_path: Path) -> None:
    """Below the heading, in the language of the page, and the file is beside it."""
    for language, words in (("en", "This page as a notebook"), ("zh", "本页的笔记本")):
        folder = tmp_path / language
        stage(TREES[language], folder)
        add_notebooks(TREES[language], folder)
        for name in pages_with_experiments(TREES[language]):
            file = Path(notebook_name(name)).name
            _, below, _ = (folder / name).read_text(encoding="utf-8").split("\n\n", 2)
            assert below == f'[{words}]({file}){{ .notebook download="{file}" }}'
            written = json.loads((folder / "walk" / file).read_text(encoding="utf-8"))
            assert written == json.loads(json.dumps(site_notebook(TREES[language], name)))


def test_the_checkout_has_them_as_the_pages_are_now() -> None:
    """All of them and no others; `python docs/make.py pages` writes them again."""
    found = {path: path.read_text("utf-8") for path in FOLDERS["en"].rglob("*.ipynb")}
    assert found == checkout_notebooks()


def test_those_of_the_checkout_are_small_and_lead_somewhere() -> None:
    """No output, no pictures inside, and every link has a file of the checkout."""
    sizes = 0
    for path, content in checkout_notebooks().items():
        sizes += len(content.encode())
        made = json.loads(content)
        assert [
            cell for cell in made["cells"] if cell.get("outputs") or "attachments" in cell
        ] == []
        text = "".join(
            "".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "markdown"
        )
        targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        assert [target for target in targets if not (path.parent / target).exists()] == []
    assert sizes < 1_000_000


RUN = """
import sys, nbclient, nbformat
from jupyter_client.manager import AsyncKernelManager

opened = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(opened)
kernel = AsyncKernelManager(transport="ipc")  # sockets in this folder, not ports
nbclient.NotebookClient(opened, km=kernel, startup_timeout=600, timeout=600).execute()
nbformat.write(opened, "run.ipynb")
"""


def test_jupyter_runs_one(tmp_path: Path) -> None:
    """From its file, in a kernel of its own; it prints what the page says, and installs nothing."""
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason=f"Jupyter's {name} is not installed")
    page = DOCS / "walk" / "03-scaled-dot-product.md"
    file = FOLDERS["en"] / f"{page.stem}.ipynb"
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    environment = os.environ | dict.fromkeys(own, str(tmp_path))
    command = [sys.executable, "-c", RUN, str(file)]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    run = json.loads((tmp_path / "run.ipynb").read_text(encoding="utf-8"))
    install, *code = [cell for cell in run["cells"] if cell["cell_type"] == "code"]
    assert install["outputs"] == []
    for experiment, cell in zip(experiments(page), code, strict=True):
        printed = "".join(line for output in cell["outputs"] for line in output["text"])
        assert differences(experiment.said, printed, experiment.tolerance) == []


def test_the_first_cell_finds_the_checkout() -> None:
    """What it computes is the folder of the repository, from wherever below it the notebook is."""
    source = cells("en", "walk/02-stacks.md", "code")[0]["source"]
    plain = source.replace("%pip install --quiet {checkout}", "raise AssertionError")
    module: dict[str, Any] = {}
    exec(compile(plain, "install", "exec"), module)  # noqa: S102
    assert (Path(module["checkout"]) / "pyproject.toml").exists()


def test_the_first_cell_installs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another project it names the folder `dragoman` beside it, which pip takes for no name."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    source = cells("en", "walk/02-stacks.md", "code")[0]["source"]
    module: dict[str, Any] = {}
    exec(compile(source.partition("if find_spec")[0], "install", "exec"), module)  # noqa: S102
    assert module["checkout"] == "./dragoman"
