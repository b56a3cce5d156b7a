"""The page of a server whose model has a language in two scripts."""

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from playwright.sync_api import Browser, expect
from tests.system.browser.conftest import Opener
from tests.system.serve.live import serving
from tests.unit.tasks.tiny import save_several


def test_each_script_of_a_language_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    """By its name, and it is the one that is asked for and swapped."""
    with serving(save_several(tmp_path / "scripts", "en", "sr-Cyrl", "sr-Latn")) as live:
        opener = Opener(browser, {"page": f"http://127.0.0.1:{live.port}/"}, ())
        page = opener("page")
        origin, into = (page.get_by_role("combobox", name=name) for name in ("From", "To"))
        origin.select_option(label="English")
        assert into.locator("option").all_inner_texts() == ["Serbian (Cyrillic)", "Serbian (Latin)"]
        page.get_by_role("textbox", name="Text to translate").fill("the cat")
        with page.expect_request("**/v1/translate") as asked:
            into.select_option(label="Serbian (Latin)")
        assert "sr-Latn" in (asked.value.post_data or "")
        page.get_by_role("button", name="Swap languages").click()
        expect(origin).to_have_value("sr-Latn")
        opener.close()
