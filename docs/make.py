"""Make the pages that are made from the code, and the site: `make docs`.

    python docs/make.py             the pages and the site
    python docs/make.py pages       the reference of the command line and of a recipe's keys, from
                                    the verbs' help texts and the dataclasses' sentences, the lines
                                    of the source that pages show, what commands print (see
                                    printed.py), the file whose parts page 0 of the walk shows, the
                                    page that computes (see live_page.py), the slides of a lesson
                                    (see slides.py), and the notebooks
    python docs/make.py site        build/site in English and build/site/zh in Chinese, by Zensical,
                                    with a notebook for each page of the walk
    python docs/make.py pictures    docs/images/, each drawn by one function of `docs/figures/`;
                                    only when asked for, since processors round differently

The site has every page of docs/ (Chinese ones lie in docs/zh/ under the same names; what is not
translated is shown in English) and what `BESIDE` in staging.py names. Titles and their order are
`nav` in zensical.toml: a page that is missing there, or a link that leads nowhere, is an error.

Lines of the source are on a page between markers: see excerpts.py.

Formulas are TeX as GitHub draws it: `$...$` in a line, `$$...$$` or a block of the language `math`
by themselves.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import tomlkit

from commands import cli_page
from dragoman.files.writing import replacing
from excerpts import ROOT, Wrong, filled
from live_page import live_page
from notebooks import add_notebooks, checkout_notebooks
from printed import with_output
from reference import recipe_page
from slides import slides_page
from staging import DOCS, Tree, find_pages, stage, stage_sources

Nav = list[str | dict[str, "str | Nav"]]
"""Pages, and sections of pages, under their titles; a page without a title has its heading's."""

BUILD = ROOT / "build"
SITE = BUILD / "site"
ASSETS = (
    DOCS / "theme" / "site.css",
    DOCS / "theme" / "iframe-worker.js",
    distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf"),
)
"""What lies beside the pages. Of ziamath nothing is used but STIX Two (SIL Open Font Licence)."""


def one_file() -> str:
    """The parts that page 0 of the walk shows, which are blocks of the language `python3`."""
    page = (DOCS / "walk" / "00-one-file.md").read_text(encoding="utf-8")
    return "\n\n".join(re.findall(r"^```python3\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": partial(cli_page, "en"),
    "zh/cli.md": partial(cli_page, "zh"),
    "recipe-keys.md": partial(recipe_page, "en"),
    "zh/recipe-keys.md": partial(recipe_page, "zh"),
    "walk/00-one-file.py": one_file,
    "live/index.html": live_page,
    "lesson/en.html": partial(slides_page, "en"),
    "lesson/zh.html": partial(slides_page, "zh"),
}
"""The pages that are made from the code, and the code that is made from a page."""


def make_pages() -> None:
    """Write what `PAGES` names."""
    for name, page in PAGES.items():
        with replacing(DOCS / name, "page") as part:
            part.write_text(page(), encoding="utf-8")
        print(f"docs/{name}")
    for path in sorted(DOCS.rglob("*.md")):
        now = with_output(filled(path))
        if now != path.read_text(encoding="utf-8"):
            path.write_text(now, encoding="utf-8")
            print(path.relative_to(ROOT))
    for path, content in checkout_notebooks().items():
        with replacing(path, "notebook") as part:
            part.write_text(content, encoding="utf-8")
    print("notebooks/")


def make_pictures() -> None:
    """Draw the pictures that need no model, in both languages."""
    sys.path.append(str(ROOT))  # for benchmarks, whose results are drawn too
    from figures import DRAWINGS, FIGURES
    from figures.chinese import chinese_name

    for name, plot in (FIGURES | DRAWINGS).items():
        for file in (name, chinese_name(name)):
            plot(DOCS / "images" / file)
            print(f"docs/images/{file}")


def make_site() -> None:
    """Copy the pages of both languages and let Zensical build them; a warning ends it."""
    config = tomlkit.parse((ROOT / "zensical.toml").read_text(encoding="utf-8")).unwrap()
    trees = {language: find_pages(language) for language in ("en", "zh")}
    made = {language: settings(config, tree) for language, tree in trees.items()}
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.rmtree(BUILD / "docs", ignore_errors=True)
    for language, tree in trees.items():
        stage(tree, BUILD / "docs" / language)
    for language, tree in trees.items():
        folder = BUILD / "docs" / language
        stage_sources(trees["en"].sources | trees["zh"].sources, folder)
        add_notebooks(tree, folder)
        for file in ASSETS:
            shutil.copy(str(file), folder)
        path = BUILD / f"zensical.{language}.toml"
        path.write_text(tomlkit.dumps(made[language]), encoding="utf-8")
        build(path)
    print(f"{SITE.relative_to(ROOT)}/index.html")


def settings(config: dict[str, Any], tree: Tree) -> dict[str, Any]:
    """Return Zensical's settings for a language, as they are read from a file in build/."""
    project = deepcopy(config["project"])
    chinese = project["extra"].pop("zh")
    titles = chinese["titles"] if tree.language == "zh" else None
    project["nav"] = laid_out(project["nav"], tree, titles)
    check_navigation(project["nav"], tree)
    theme = project["theme"] | {"language": tree.language, "custom_dir": "../docs/theme"}
    project |= {"docs_dir": f"docs/{tree.language}", "site_dir": "site", "theme": theme}
    if titles is not None:
        project["site_dir"] = "site/zh"
        project["site_description"] = chinese["site_description"]
        project["extra"]["alternate"] = chinese["alternate"]
        for choice in theme["palette"]:
            choice["toggle"]["name"] = titles[choice["toggle"]["name"]]
    return {"project": project}


def laid_out(nav: Nav, tree: Tree, titles: dict[str, str] | None) -> Nav:
    """Return the navigation under these titles, a folder in it replaced by its pages.

    They are in the order of their names, the one that is called index first.
    """
    made: Nav = []
    for entry in nav:
        if isinstance(entry, str):
            made.append(entry)
            continue
        for title, led in entry.items():
            if titles is not None and title not in titles:
                raise Wrong(f"zensical.toml: {title!r} has no Chinese title in project.extra.zh")
            shown = title if titles is None else titles[title]
            if isinstance(led, list):
                made.append({shown: laid_out(led, tree, titles)})
            elif led.endswith("/"):
                inside = [page for page in tree.pages if page.startswith(led)]
                inside.sort(key=lambda page: (not page.endswith("/index.md"), page))
                made.append({shown: [*inside]})
            else:
                made.append({shown: led})
    return made


def check_navigation(nav: Nav, tree: Tree) -> None:
    """Refuse a page that the navigation leaves out, and one that it names and that is not there."""
    named, there = set(pages_of(nav)), set(tree.pages)
    for name in sorted(named - there):
        raise Wrong(f"zensical.toml: nav names {name}, which is not there")
    for name in sorted(there - named):
        raise Wrong(f"{tree.pages[name].relative_to(ROOT)}: name it in nav of zensical.toml")


def pages_of(nav: Nav) -> Iterator[str]:
    """The pages of a navigation, those of its sections among them."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for led in entry.values():
                yield from pages_of(led if isinstance(led, list) else [led])


def build(config: Path) -> None:
    """Run Zensical; whatever it warns of is an error."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(
        [*command, "--config-file", str(config)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_COLOR": "1"},
    )
    said = done.stdout + done.stderr
    if done.returncode or re.search("warning|error", said, re.IGNORECASE):
        raise Wrong(f"the site cannot be built:\n{said}")


def main() -> int:
    """Make what the command line names."""
    makers = {"pages": make_pages, "site": make_site, "pictures": make_pictures}
    asked = sys.argv[1:] or ["pages", "site"]
    if unknown := set(asked) - set(makers):
        print(f"{' '.join(unknown)}: say {', '.join(makers)}", file=sys.stderr)
        return 2
    try:
        for name in asked:
            makers[name]()
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
