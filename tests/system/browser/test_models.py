"""What models of every kind leave in a page is what a browser shows."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.system.browser.conftest import Opener
from tests.unit.tasks.readers import CLASSIFY, MASKED, TAG, save_reader
from tests.unit.tasks.tiny import save_translator
from tests.unit.tasks.tiny_generator import save_generator

from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.lens.page import write_page
from dragoman.tasks.folders import read_folder

KINDS: dict[str, Callable[[Path], Path]] = {
    "translator": save_translator,
    "generator": save_generator,
    "classifier": partial(save_reader, head=CLASSIFY),
    "tagger": partial(save_reader, head=TAG),
    "pretrained": partial(save_reader, head=MASKED),
}


@pytest.mark.parametrize("save", KINDS.values(), ids=KINDS)
def test_the_page_of_a_model_opens(
    save: Callable[[Path], Path], show: Opener, tmp_path: Path
) -> None:
    """All tokens and heads are there, every head opens, every step can be taken, nothing fails."""
    folder = read_folder(save(tmp_path / "model"), device="cpu")
    seen = inspect_folder(folder, "the cat sees a dog 我喜欢。", Choices())
    page = show(write_page(seen, tmp_path / "look.html"))
    assert page.locator("h1").inner_text() == seen.src.text.strip()
    heads = sum(len(each.layers) * len(each.heads) for each in seen.attention)
    assert page.locator(".thumb").count() == heads
    for row in (".keys", ".queries"):
        page.locator(f"{row} .token").last.hover()
        expect(page.locator("#sentence .readout")).to_contain_text("look")
    page.locator(".thumb").last.click()
    last = seen.attention[-1]
    expect(page.locator(".heat tbody tr")).to_have_count(len(last.query_tokens))
    expect(page.locator(".heat tbody td")).to_have_count(
        len(last.query_tokens) * len(last.key_tokens)
    )
    page.keyboard.press("Escape")
    for chip in page.locator(".chip").all():
        chip.click()
        expect(chip).to_have_attribute("aria-current", "step")
