"""The slides of a lesson in a browser: the keyboard turns them, and none is too wide."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.system.browser.conftest import Opener

from slides import FOLDER


@pytest.fixture
def show(browser: Browser) -> Iterator[Opener]:
    """Opens the slides from their file; they must be quiet and ask for nothing."""
    opener = Opener(browser, {each: (FOLDER / f"{each}.html").as_uri() for each in ("en", "zh")})
    yield opener
    opener.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_keyboard_turns_the_slides(show: Opener, language: str) -> None:
    """Forwards, backwards, and not beyond the first; no slide is wider than its screen."""
    page = show(language)
    slides = page.locator("section")
    page.keyboard.press("ArrowLeft")
    for key, seen in (("ArrowRight", 1), ("PageDown", 2), (" ", 3), ("ArrowUp", 2)):
        page.keyboard.press(key)
        expect(slides.nth(seen)).to_be_in_viewport(ratio=0.9)
    assert page.evaluate("document.documentElement.scrollWidth") == 1200
