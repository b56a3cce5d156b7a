"""A real browser, and the pages of every variant in it."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)
from tests.unit.lens.inspections import MADE

from dragoman.lens.page import write_page

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

EMPTY = "about:blank"
PATIENCE = 60_000  # milliseconds that anything may take on a busy machine
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it; without one these tests are skipped.

    It ends with the module, and with it the event loop that the driver keeps in this thread.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The file of each variant."""
    folder = tmp_path_factory.mktemp("pages")
    return {name: write_page(make(), folder / f"{name}.html") for name, make in MADE.items()}


class Opener:
    """Opens pages, and holds at the end that nothing went wrong in them."""

    def __init__(
        self, browser: Browser, pages: Mapping[str, str], forgiven: Sequence[str] = ()
    ) -> None:
        """`pages` are the addresses by name; messages may contain what is `forgiven`."""
        self._browser = browser
        self._pages = pages
        self._forgiven = forgiven
        self._opened: list[Page] = []
        self._wrong: list[str] = []

    def __call__(
        self, name: str | Path, *, locale: str = "en-GB", width: int = 1200, dark: bool = False
    ) -> Page:
        """The page of a variant, or a file, as a reader with these settings opens it."""
        page = self._empty(locale)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)
        page.on("console", self._said)
        page.on("pageerror", self._failed)
        page.on("request", self._asked)
        self._opened.append(page)
        page.goto(name.as_uri() if isinstance(name, Path) else self._pages[name])
        return page

    def close(self) -> None:
        """Empty what was opened; no page may have complained or asked for anything."""
        for page in self._opened:
            page.mouse.move(0, 0)
            page.remove_listener("console", self._said)
            page.remove_listener("pageerror", self._failed)
            page.remove_listener("request", self._asked)
            page.unroute_all()
            page.goto(EMPTY)
        assert self._wrong == []

    def _empty(self, locale: str) -> Page:
        """Return a page that an earlier test has emptied, since starting one takes most time."""
        for page in (page for context in self._browser.contexts for page in context.pages):
            if page.url == EMPTY and page.evaluate("navigator.language") == locale:
                return page
        return self._browser.new_page(locale=locale)

    def _said(self, message: ConsoleMessage) -> None:
        if not any(part in message.text for part in self._forgiven):
            self._wrong.append(f"console: {message.text}")

    def _failed(self, error: Error) -> None:
        self._wrong.append(f"error: {error}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("file:", *self._pages.values())):
            self._wrong.append(f"request: {request.url}")


def barriers(page: Page, part: str, options: dict[str, object]) -> list[str]:
    """What axe-core finds in a part of the page, as short lines."""
    options = {"resultTypes": ["violations"], **options}
    found = Axe().run(page, context=part, options=options).response["violations"]
    return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]


@pytest.fixture
def show(browser: Browser, pages: dict[str, Path]) -> Iterator[Opener]:
    """Opens the page of a variant; every test with it also holds that the page is quiet."""
    opener = Opener(browser, {name: path.as_uri() for name, path in pages.items()})
    yield opener
    opener.close()
