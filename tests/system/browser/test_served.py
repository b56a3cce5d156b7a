"""The page of a server, used as a reader does: it answers, refuses, dies and returns."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from playwright.sync_api import Browser, Page, Route, expect
from tests.system.browser.conftest import Opener, barriers
from tests.system.serve.live import Live, Steps, serving, until
from tests.unit.tasks.tiny import save_several, save_translator

from dragoman.serve.settings import ApiKeys, RequestLimits

TRANSLATE = "**/v1/translate"
REFUSED = ("Failed to load resource", "net::ERR")
"""What a browser says of an answer with a status of failure; everything else is a fault."""

Show = Callable[..., Page]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator from English to Chinese."""
    return save_translator(tmp_path_factory.mktemp("page") / "en-zh")


@pytest.fixture(scope="module")
def live(folder: Path) -> Iterator[Live]:
    """Its server."""
    with serving(folder) as live:
        yield live


@pytest.fixture
def show(browser: Browser) -> Iterator[Show]:
    """Opens the page of a server, which is quiet and asks no other server."""
    openers = list[Opener]()

    def opened(live: Live, *forgiven: str, **settings: Any) -> Page:  # noqa: ANN401 -- of Opener
        address = f"http://127.0.0.1:{live.port}/"
        openers.append(Opener(browser, {"page": address}, forgiven))
        return openers[-1]("page", **settings)

    yield opened
    for opener in openers:
        opener.close()


def source(page: Page) -> Any:  # noqa: ANN401 -- a Locator
    """The field that one types in."""
    return page.get_by_role("textbox", name=re.compile("Text to translate|原文"))


def words(page: Page) -> Any:  # noqa: ANN401 -- a Locator
    """The words of the translation."""
    return page.locator("#translation .words")


def answers(page: Page, *translations: dict[str, Any]) -> None:
    """Let the page have made answers."""
    body = {"model": "en-zh", "translations": [PLAIN | one for one in translations]}
    page.route(TRANSLATE, partial(Route.fulfill, json=body))


UNSURE = {"language": None, "candidates": [{"language": "en"}, {"language": "zh"}]}
PLAIN = {"score": -0.5, "flags": [], "alternatives": [], "alignment": [], "src_tokens": []}
APPLES = {
    "text": "我吃 é 红苹果。",
    "tokens": ["我", "吃", " ", "<0xC3>", "<0xA9>", " 红", "苹", "果", "。"],
    "src_tokens": ["▁I", "▁eat", "▁é", "▁red", "▁app", "les", "."],
    "alignment": [[0, 0], [1, 1], [2, 3], [2, 4], [3, 5], [4, 6], [5, 7], [6, 8]],
    "flags": ["short", "retried"],
    "alternatives": [PLAIN | {"text": "我吃苹果。", "score": -1.5}],
}


def test_what_is_typed_is_translated(show: Show, live: Live) -> None:
    """Once for what was typed without a pause: text, score and alternatives of the model."""
    page = show(live)
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    source(page).press_sequentially("the cat sees", delay=10)
    answer = live.post("/v1/translate", {"text": "the cat sees", "n_best": 3}).json
    (best,) = answer["translations"]
    expect(words(page)).to_have_text(best["text"])
    assert sum("translate" in url for url in asked) == 1
    score = f"Score {best['score']:.2f}".replace("-", "\u2212")
    expect(page.get_by_text(score)).to_be_visible()
    others = page.locator(".others bdi").all_inner_texts()
    assert others == [one["text"] for one in best["alternatives"]]
    expect(page.locator("#said")).to_have_text(best["text"])
    source(page).fill("")
    expect(words(page)).to_have_count(0)


def test_a_word_shows_where_it_comes_from(show: Show, live: Live) -> None:
    """By its tokens' links, marked until Escape; flags are in words, doubtful ones stand out."""
    page = show(live)
    answers(page, {"text": "嗯", "tokens": ["嗯"]}, APPLES)
    source(page).fill("Oh\nI eat é red apples.")
    marks, origin = page.locator("#mirror mark"), page.locator("#origin")
    for word, origins in (("苹果", ["apples"]), ("红", ["red"]), ("é", ["é"]), ("吃", ["eat"])):
        page.get_by_role("button", name=word, exact=True).click()
        expect(marks).to_have_text(origins)
        expect(origin).to_have_text(f"“{word}” comes from “{origins[0]}”.")
    page.keyboard.press("Escape")
    expect(marks).to_have_count(0)
    assert origin.inner_text() == ""
    page.get_by_role("button", name="嗯").click()
    expect(origin).to_have_text("“嗯” comes from no single word.")
    chosen = page.locator(".word[aria-pressed=true]")
    expect(chosen).to_have_text("嗯")
    chosen.click()
    expect(chosen).to_have_count(0)
    expect(page.locator(".flag")).to_have_text(["much shorter than the source", "searched again"])
    assert page.locator(".doubtful").all_inner_texts() == ["much shorter than the source"]


def test_typing_on_withdraws_what_runs(show: Show, folder: Path) -> None:
    """The server computes nothing more for it and counts it as gone; all of the text follows."""
    with serving(folder) as live:
        steps = Steps(live, "en-zh")
        page = show(live)
        source(page).fill("the cat sees")
        until(lambda: steps.count == 4)
        steps.leave()
        source(page).press_sequentially(" a dog")
        until(lambda: live.counted('dragoman_requests_total{dialect="v1",outcome="gone"') == 1)
        steps.go_on.set()
        expected = live.post("/v1/translate", {"text": "the cat sees a dog", "n_best": 3}).json
        expect(words(page)).to_have_text(expected["translations"][0]["text"])
        assert steps.count == 4


ERRORS = [
    (413, {}, "The text is too long for this server; shorten it.", "文本对本服务器来说太长"),
    (429, {"retry-after": "1"}, "trying again in 1 s", "1 秒后自动重试"),
    (503, {"retry-after": "1"}, "the page continues when it is ready", "就绪后本页会自动继续"),
    (504, {}, "longer than the server allows", "超过了服务器的限制"),
    (429, {}, "trying again in 1 s", "1 秒后自动重试"),
    (502, {}, "The server does not answer", "服务器没有响应"),
]


def test_an_error_is_one_sentence(show: Show, live: Live) -> None:
    """In both languages. What passes is tried again; after the rest the next text is translated."""
    page = show(live, *REFUSED)
    problem = page.get_by_role("alert")
    for number, (status, headers, english, chinese) in enumerate(ERRORS):
        error = {"error": {"what": "It is bad.", "where": "text", "do": "Mend it."}}
        proxys = not headers and status in {429, 502}
        body = "<html>" if proxys else json.dumps(error)
        page.route(TRANSLATE, partial(Route.fulfill, status=status, headers=headers, body=body))
        source(page).fill(f"the cat {number}")
        expect(problem).to_contain_text(english)
        page.get_by_role("radio", name="中文").click()
        expect(problem).to_contain_text(chinese)
        assert source(page).input_value() == f"the cat {number}"
        page.get_by_role("radio", name="EN").click()
        page.unroute(TRANSLATE)
        if not headers and not proxys:
            source(page).fill("the dog")
        expect(words(page)).to_have_count(1)
        expect(problem).to_be_empty()


def test_a_server_that_was_gone_is_asked_again(show: Show, folder: Path) -> None:
    """The text stays, one sentence says so, and the translation comes when the server does."""
    with serving(folder) as live:
        page = show(live, *REFUSED)
        source(page).fill("the cat")
        expect(words(page)).to_have_count(1)
    source(page).fill("the cat sees a dog")
    problem = page.get_by_role("alert")
    expect(problem).to_have_text("The server does not answer; the page continues when it is back.")
    expect(words(page)).to_have_count(0)
    with serving(folder, port=live.port) as again:
        expected = again.post("/v1/translate", {"text": "the cat sees a dog", "n_best": 3}).json
        expect(words(page)).to_have_text(expected["translations"][0]["text"])
        expect(problem).to_be_empty()
        assert source(page).input_value() == "the cat sees a dog"


def test_a_key_is_asked_for_and_kept_in_memory_only(show: Show, folder: Path) -> None:
    """Where the server has keys; a wrong one is said, and nothing is stored."""
    with serving(folder, keys=ApiKeys(["sesame"])) as live:
        page = show(live, *REFUSED)
        problem, field = page.get_by_role("alert"), page.get_by_label("API key")
        expect(problem).to_have_text("This server asks for an API key.")
        field.fill("open")
        field.press("Enter")
        expect(problem).to_have_text("The server does not know this API key.")
        field.fill("sesame")
        page.get_by_role("button", name="Use").click()
        expect(problem).to_be_empty()
        source(page).fill("the cat")
        expect(words(page)).to_have_count(1)
        stored = "[localStorage.length, sessionStorage.length, document.cookie.length]"
        assert page.evaluate(stored) == [0, 0, 0]
        assert barriers(page, "body", {}) == []
        page.reload()
        expect(field).to_have_value("")


def test_a_limit_of_the_server_is_said_in_the_words_of_the_page(show: Show, folder: Path) -> None:
    """And what is shorter is translated."""
    with serving(folder, limits=RequestLimits(characters=10)) as live:
        page = show(live, *REFUSED, locale="zh-CN")
        source(page).fill("the cat sees")
        said = "文本超过了本服务器的上限 10 个字符，请缩短，或作为文件翻译。"
        expect(page.get_by_role("alert")).to_have_text(said)
        assert source(page).input_value() == "the cat sees"
        source(page).fill("the cat")
        expect(words(page)).to_have_count(1)
        expect(page.get_by_role("alert")).to_be_empty()


def test_languages_are_detected_or_chosen(show: Show, folder: Path, tmp_path: Path) -> None:
    """The model is that of the pair; only what can be written is offered; one may swap."""
    back = copytree(folder, tmp_path / "zh-en")
    config = back / "config.json"
    swapped = json.loads(config.read_text()) | {"src_lang": "zh", "tgt_lang": "en"}
    config.write_text(json.dumps(swapped))
    with serving(folder, back) as live:
        page = show(live)
        origin, by = page.get_by_role("combobox", name="From"), page.locator("#by")
        source(page).fill("the cat sees the big house")
        expect(by).to_have_text("en-zh")
        expect(origin.locator("option:checked")).to_have_text("English (detected)")
        expect(page.locator("#to")).to_contain_text("Chinese")
        source(page).fill("我喜欢学习吗")
        expect(by).to_have_text("zh-en")
        expect(page.locator("#to")).to_contain_text("English")
        origin.select_option(label="English")
        expect(by).to_have_text("en-zh")
        page.get_by_role("button", name="Swap languages").click()
        expect(by).to_have_text("zh-en")
        expect(origin.locator("option:checked")).to_have_text("Chinese")
        page.route("**/v1/detect", partial(Route.fulfill, json={"detections": [UNSURE]}))
        origin.select_option("")
        page.locator(".guesses").get_by_role("button", name="English").click()
        expect(by).to_have_text("en-zh")
        page.get_by_role("combobox", name="Model").select_option("en-zh")
        expect(page.locator("#from")).to_contain_text("English")
        assert origin.count() == 0
        expect(by).to_have_text("en-zh")


def test_each_script_of_a_language_can_be_chosen(show: Show, tmp_path: Path) -> None:
    """By its name, and it is the one that is asked for and swapped."""
    with serving(save_several(tmp_path / "scripts", "en", "sr-Cyrl", "sr-Latn")) as live:
        page = show(live)
        origin, into = (page.get_by_role("combobox", name=name) for name in ("From", "To"))
        origin.select_option(label="English")
        assert into.locator("option").all_inner_texts() == ["Serbian (Cyrillic)", "Serbian (Latin)"]
        source(page).fill("the cat")
        with page.expect_request(TRANSLATE) as asked:
            into.select_option(label="Serbian (Latin)")
        assert "sr-Latn" in (asked.value.post_data or "")
        page.get_by_role("button", name="Swap languages").click()
        expect(origin).to_have_value("sr-Latn")


def test_the_language_of_the_page_is_the_readers(show: Show, live: Live) -> None:
    """Chinese for a Chinese browser; the switch changes every label, and keeps what was typed."""
    page = show(live, locale="zh-CN")
    source(page).fill("the cat sees")
    expect(page.locator("#from")).to_contain_text("英语")
    expect(page.locator(".others summary")).to_have_text("其他译法")
    page.get_by_role("radio", name="EN").click()
    expect(page.locator(".others summary")).to_have_text("Alternatives")
    assert page.evaluate("document.documentElement.lang") == "en"
    assert source(page).input_value() == "the cat sees"
    expect(page.locator("main")).not_to_contain_text(re.compile("得分|译|源语言|模型"))


def test_everything_is_done_by_keys(show: Show, live: Live) -> None:
    """The text has the focus; words are one stop of the Tab key, with arrows between them."""
    page = show(live)
    answers(page, APPLES)
    expect(source(page)).to_be_focused()
    page.keyboard.type("I eat é red apples.")
    expect(words(page)).to_have_count(1)
    focus = page.locator(":focus")
    for _ in range(4):  # the terms, a file, to clear, and the words
        page.keyboard.press("Tab")
    expect(focus).to_have_text("我")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#origin")).to_have_text("“吃” comes from “eat”.")
    assert page.locator("#mirror mark").all_inner_texts() == ["eat"]
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(focus).to_have_text("Alternatives")
    page.keyboard.press("Shift+Tab")
    expect(focus).to_have_text("吃")
    for _ in range(3):  # the alternatives, to copy, the inside
        page.keyboard.press("Tab")
    expect(focus).to_have_text("Inside the model")
    page.keyboard.press("Enter")
    expect(page.locator("#inside .stage")).to_be_visible()


def test_a_file_is_translated_by_the_terms_that_are_typed(
    show: Show, live: Live, tmp_path: Path
) -> None:
    """It is handed back under its name; what is wrong with it is said."""
    page = show(live, *REFUSED)
    source(page).fill("the cat")
    expect(words(page)).to_have_count(1)
    page.get_by_text("Terms").click()
    with page.expect_request(TRANSLATE) as asked:
        page.get_by_role("textbox", name="Terms").fill("cat = 我\nno term")
    assert json.loads(asked.value.post_data or "")["glossary"] == {"cat": "我"}
    file = tmp_path / "é.txt"
    file.write_text("the cat\n\nthe cat", encoding="utf-8")
    page.route("**/v1/documents", partial(Route.fulfill, status=429, body="<html>"), times=1)
    with page.expect_download() as saved:
        page.get_by_label("Translate a file").set_input_files(file)
    assert saved.value.suggested_filename == "é.txt"
    first, empty, last = saved.value.path().read_text("utf-8").split("\n")
    assert (first, empty) == (last, "")
    assert "我" in first
    expect(page.locator("#said")).to_have_text("é.txt is translated.")
    (tmp_path / "a.pdf").write_text("a")
    page.get_by_label("Translate a file").set_input_files(tmp_path / "a.pdf")
    expect(page.get_by_role("alert")).to_contain_text("A PDF has no running text")


def test_the_inside_follows_what_is_typed(show: Show, live: Live) -> None:
    """Alignment, steps and every head of the line, drawn again for each translation."""
    page = show(live)
    page.get_by_text("Inside the model").click()
    source(page).fill("the cat")
    tokens = page.locator("#inside .keys .token")
    expect(tokens.first).to_contain_text("the")
    before = tokens.count()
    source(page).press_sequentially(" sees a dog")
    expect(page.locator("#inside .keys")).to_contain_text("dog")
    assert tokens.count() > before
    expect(page.locator("#inside").get_by_role("heading", level=2)).to_have_text(
        ["Inside the model", "Who looks at whom", "Step by step", "Every head"]
    )
    page.locator(".word").last.click()
    chosen = page.locator("#inside .chip[aria-current=step]")
    expect(chosen).to_contain_text(page.locator(".word").last.inner_text())
    page.locator("#inside .thumb").first.click()
    expect(page.get_by_role("dialog", name="Encoder · layer 0 · head 0")).to_be_visible()
    page.keyboard.press("Escape")
    assert barriers(page, "#inside", {}) == []
    source(page).fill("")
    expect(page.locator("#inside .stage")).to_have_count(0)


def test_a_word_leads_to_what_else_was_considered(show: Show, live: Live) -> None:
    """At the step that wrote it, of any line; the answer stays in sight below a long text."""
    page = show(live)
    source(page).fill("the cat\n" + "sees a dog\n" * 30)
    word = page.locator(".line").nth(1).locator(".word").last
    word.click()
    expect(page.locator("#origin")).to_be_in_viewport()
    page.get_by_role("button", name="What else the model considered").click()
    chip = page.locator("#inside .chip[aria-current=step]")
    expect(chip).to_be_focused()
    assert word.inner_text() in chip.inner_text()
    page.keyboard.press("Escape")
    expect(page.locator("#others")).to_be_hidden()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_barrier_is_found_on_a_telephone(show: Show, live: Live, *, dark: bool) -> None:
    """Nothing is wider than 360 pixels, and axe-core finds nothing, with a word chosen."""
    page = show(live, width=360, dark=dark)
    answers(page, APPLES, APPLES | {"text": "长" * 80, "alternatives": []})
    source(page).fill("I eat é red apples.\n" + "x" * 200)
    page.get_by_role("button", name="苹果").click()
    expect(page.locator("#mirror mark")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert barriers(page, "body", {}) == []


def test_a_text_is_shown_and_never_run(show: Show, live: Live) -> None:
    """What looks like markup stands there as it is; the policy forbids all but the page's own."""
    page = show(live)
    hostile = "</script><img src=x onerror=alert(1)>"
    answers(page, {"text": hostile, "tokens": [hostile]})
    source(page).fill(hostile)
    expect(words(page)).to_have_text(hostile)
    assert page.locator("#translation img, #mirror img").count() == 0
    policy = live.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
