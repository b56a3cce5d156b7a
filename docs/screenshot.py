"""Take the pictures of the web pages again: `python docs/screenshot.py`.

The model is that of the page that computes (live_page.py); the sentence is one of its grammar's.
Needs a Chromium and a font with Chinese characters; the Chinese pictures end in `.zh.png`.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from live_page import LIVE, live_folder

IMAGES = Path(__file__).parent / "images"
DRAGOMAN = (sys.executable, "-m", "dragoman")
MODEL = "runs/live"
TEXT = "Her brother bought two red umbrellas at the market yesterday."
HEAD = re.compile("Cross-attention, layer 1, head 2|交叉注意力，层 1，头 2")
LOCALES = {".png": "en-GB", ".zh.png": "zh-CN"}
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def top(page: Page) -> None:
    """The sentence, with a word of the translation pointed at."""
    page.locator(".queries .token").nth(8).hover()


def steps(page: Page) -> None:
    """The search, at its third step."""
    page.locator("#steps .chip").nth(2).click()
    page.locator("#steps").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('steps').scrollIntoView({ behavior: 'instant' })")


def head(page: Page) -> None:
    """A head of the cross-attention, opened."""
    page.get_by_role("button", name=HEAD).click()
    page.get_by_role("dialog").locator("tbody tr").nth(8).locator("td").nth(8).hover()


def typed(page: Page) -> None:
    """The page of a server, with a word of the translation chosen."""
    page.get_by_role("textbox").fill(TEXT)
    page.locator(".word").nth(1).click()


def switched(page: Page) -> None:
    """The page that computes, without positions, at its heads."""
    page.locator(".picker select").select_option(index=2)
    page.locator('[name="positions"]').uncheck()
    page.evaluate("document.getElementById('heads').scrollIntoView({ behavior: 'instant' })")


VIEWS: dict[str, tuple[Callable[[Page], None], int, bool]] = {
    "inspect.png": (top, 830, False),
    "inspect-steps.png": (steps, 1700, False),
    "inspect-head.png": (head, 880, True),
    "serve.png": (typed, 430, False),
    "live.png": (switched, 920, False),
}
"""What each picture shows, its height, and whether it is dark."""


@contextmanager
def serving(folder: str) -> Iterator[str]:
    """The address of a server of the model in a folder."""
    command = [*DRAGOMAN, "serve", MODEL, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as server:
        try:
            lines = map(json.loads, server.stderr or ())
            yield next(line["address"] for line in lines if "address" in line)
        finally:
            server.kill()


def main() -> None:
    """Write the model and the page of TEXT to a temporary folder and take the pictures."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        live_folder(Path(folder) / "runs" / "live")
        command = [*DRAGOMAN, "inspect", MODEL, TEXT, "--html", "look.html"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        html = Path(folder) / "look.html"
        with serving(folder) as address, sync_playwright() as playwright:
            pages = {typed: address, switched: (LIVE / "index.html").as_uri()}
            browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
            for (name, (arrange, height, dark)), ending in product(VIEWS.items(), LOCALES):
                page = browser.new_page(
                    viewport={"width": 1120, "height": height},
                    locale=LOCALES[ending],
                    color_scheme="dark" if dark else "light",
                    reduced_motion="reduce",
                )
                page.goto(pages.get(arrange, html.as_uri()))
                arrange(page)
                page.screenshot(path=IMAGES / name.replace(".png", ending))
                print(f"docs/images/{name.replace('.png', ending)}")
            browser.close()


if __name__ == "__main__":
    main()
