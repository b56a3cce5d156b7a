"""The slides of a lesson in a browser: the keyboard turns them, and each fits its screen."""

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
    """Forwards, backwards, and not beyond the first; no slide is larger than its screen."""
    page = show(language)
    slides = page.locator("section")
    page.keyboard.press("ArrowLeft")
    turns = (("ArrowRight", 1), ("PageDown", 2), (" ", 3), ("Shift+ ", 2), ("ArrowUp", 1))
    for key, seen in turns:
        page.keyboard.press(key)
        expect(slides.nth(seen)).to_be_in_viewport(ratio=0.9)
    assert page.evaluate("document.documentElement.scrollWidth") == 1200
    page.set_viewport_size({"width": 1280, "height": 720})
    heights = slides.evaluate_all("all => all.map((each) => each.getBoundingClientRect().height)")
    assert {round(height) for height in heights} == {720}
