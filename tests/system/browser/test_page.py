"""The HTML page of an inspection, used as a reader does: by pointer and keys, in two languages."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.system.browser.conftest import Opener, barriers
from tests.unit.lens.inspections import TGT, translation


def focused(page: Page) -> Locator:
    """What has the focus."""
    return page.locator(":focus")


def said(page: Page, section: str) -> Locator:
    """The line that says what is pointed at."""
    return page.locator(f"{section} .readout")


def share_of(text: str) -> float:
    """The number of a text such as "53%"."""
    found = re.search(r"([\d.]+)%", text)
    assert found is not None, text
    return float(found[1]) / 100


def test_pointing_at_a_token_shows_what_it_looks_at(show: Opener) -> None:
    """The others are painted by their weights, and the line says the strongest first."""
    page = show("translation")
    alignment = translation().alignment
    assert alignment is not None
    page.locator(".queries .token").nth(3).hover()
    values = page.locator(".keys .value").all_inner_texts()
    expected = alignment.weights_TS[3]
    assert [share_of(value) for value in values if value] == pytest.approx(
        [weight for weight in expected if weight >= 0.005], abs=0.005
    )
    painted = page.locator(".keys .token").evaluate_all(
        "all => all.map((item) => Number(item.style.getPropertyValue('--w')))"
    )
    assert painted.index(max(painted)) == expected.argmax()
    expect(said(page, "#sentence")).to_have_text(re.compile(r"^“红” looks at “red” \d+%, "))
    assert page.locator(".lines path").count() == (expected >= 0.01).sum()
    page.mouse.move(5, 5)
    expect(page.locator(".keys .value").nth(3)).to_be_empty()
    assert page.locator(".lines path").count() == len(alignment.links)


def test_pointing_at_the_other_row_shows_who_looks(show: Opener) -> None:
    """The column of a source token: shares that need not sum to one."""
    page = show("translation")
    page.locator(".keys .token").nth(1).hover()
    expect(said(page, "#sentence")).to_have_text(re.compile(r"^“have” is looked at by “有” \d+%"))
    alignment = translation().alignment
    assert alignment is not None
    value = page.locator(".queries .value").nth(1).inner_text()
    assert share_of(value) == pytest.approx(alignment.weights_TS[1, 1], abs=0.005)


def test_a_head_is_shown_on_the_sentence(show: Opener) -> None:
    """Layer and head are chosen from lists; the weights are those of that head."""
    page = show("translation")
    page.get_by_role("radio", name="Cross-attention").click()
    page.get_by_role("combobox", name="Layer").select_option(label="1")
    page.get_by_role("combobox", name="Head").select_option(label="2")
    page.locator(".queries .token").nth(2).hover()
    weights = translation().attention[2].weights_LHTS[1, 2, 2]
    strongest = page.locator(".keys .value").nth(int(weights.argmax()))
    assert share_of(strongest.inner_text()) == pytest.approx(weights.max(), abs=0.005)


def test_clicking_a_head_opens_it(show: Opener) -> None:
    """A large table of its weights; a cell tells its own; Escape leads back to where one was."""
    page = show("translation")
    thumb = page.get_by_role("button", name="Decoder, layer 1, head 2")
    thumb.click()
    dialog = page.get_by_role("dialog", name="Decoder · layer 1 · head 2")
    expect(dialog).to_be_visible()
    cell = dialog.locator("tbody tr").nth(4).locator("td").nth(2)
    cell.hover()
    weight = translation().attention[1].weights_LHTS[1, 2, 4, 2]
    line = dialog.locator(".readout")
    expect(line).to_have_text(re.compile("^“苹果” looks at “有” "))
    assert share_of(line.inner_text()) == pytest.approx(weight, abs=0.005)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(thumb).to_be_focused()


def test_a_part_has_the_numbers_of_the_model(show: Opener) -> None:
    """Layer 1 and heads 0 and 3 are called so in the grid, the lists, the table and the dialog."""
    page = show("chosen")
    headers = page.locator("table.heads th").all_inner_texts()
    assert [text.strip() for text in headers][1:] == ["Head 0", "Head 3", "Layer 1"]
    for name, numbers in (("Layer", ["1"]), ("Head", ["0", "3"])):
        options = page.get_by_role("combobox", name=name).locator("option")
        assert options.all_inner_texts() == ["mean of these", *numbers]
    page.get_by_role("combobox", name="Head").select_option(label="3")
    page.get_by_text("The heads in numbers").click()
    rows = page.locator(".numbers tbody tr").all_inner_texts()
    assert [row.split()[:3] for row in rows] == [["Decoder", "1", "0"], ["Decoder", "1", "3"]]
    page.get_by_role("button", name="Decoder, layer 1, head 3").click()
    expect(page.get_by_role("dialog", name="Decoder · layer 1 · head 3")).to_be_visible()


def test_the_heads_can_be_walked_through_with_keys_alone(show: Opener) -> None:
    """Arrows in the grid, Enter, arrows in the cells, the next head, and on to the sentence."""
    page = show("translation")
    first = page.get_by_role("button", name="Encoder, layer 0, head 0")
    first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    expect(focused(page)).to_have_accessible_name(re.compile("Encoder, layer 1, head 0"))
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Encoder · layer 1 · head 3")
    dialog.locator("tbody td").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(dialog.locator(".readout")).to_have_text(re.compile("^“have” looks at “have” "))
    dialog.get_by_role("button", name="Next head").press("Enter")
    expect(dialog.get_by_role("heading")).to_have_text("Encoder · layer 2 · head 0")
    dialog.get_by_role("button", name="Show this head").press("Enter")
    expect(dialog).to_be_hidden()
    assert page.get_by_role("combobox", name="Layer").input_value() == "2"
    expect(focused(page)).to_have_class(re.compile("token"))


def test_everything_is_reached_by_the_tab_key(show: Opener) -> None:
    """A walk from the top: each group is one stop, and the focus is always to be seen."""
    page = show("translation")
    stops: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        stop = page.evaluate("""() => {
          const item = document.activeElement;
          const seen = item.matches("input") ? item.nextSibling : item;
          if (item === document.body) return "";
          const style = getComputedStyle(seen);
          if (style.outlineStyle === "none") throw new Error("unseen: " + item.outerHTML);
          return item.name || item.className || item.tagName;
        }""")
        if not stop:
            break
        stops.append(stop.split(" ")[0])
    wanted = ["skip", *["A"] * 4, "theme", "language", "view"]
    wanted += ["token", "after", "token", "node", "scroll"]
    assert stops[: len(wanted)] == wanted
    assert stops[len(wanted) :] == ["thumb", "thumb", "thumb", "SUMMARY", "SUMMARY"]


def test_the_beam_is_stepped_through(show: Opener) -> None:
    """By buttons and arrows: the step, its alternatives, the tree so far, and why branches died."""
    page = show("translation")
    counter = page.locator("#steps .counter")
    expect(counter).to_have_text("Step 1 of 7 writes 我")
    assert page.locator(".node:visible").count() == 5
    page.get_by_role("button", name="Next step").click()
    expect(counter).to_have_text("Step 2 of 7 writes 有")
    assert page.locator(".node:visible").count() == 9
    expect(page.locator(".tree path.future").first).to_have_css("visibility", "hidden")
    step = translation().steps[1]
    shares = page.locator("#steps .bars .share").all_inner_texts()
    assert [share_of(share) for share in shares] == pytest.approx(
        [other.prob for other in step.alternatives], abs=0.005
    )
    expect(page.locator("#steps .bars .here .name")).to_have_text(re.compile("有"))
    expect(page.locator(".candidates tbody tr")).to_have_count(4)
    expect(page.locator(".candidates tbody tr").nth(3)).to_contain_text("我的")
    expect(page.locator(".candidates tbody tr").nth(3)).to_contain_text("Made to be pruned.")
    page.locator("#steps .chip").nth(1).focus()
    page.keyboard.press("ArrowRight")
    expect(counter).to_have_text("Step 3 of 7 writes 两个")
    page.keyboard.press("End")
    expect(counter).to_have_text("Step 7 of 7 writes </s>, the end")
    expect(page.get_by_role("button", name="Next step")).to_be_disabled()
    page.locator(".node[tabindex='0']").focus()
    page.locator("#steps .chip").first.click()
    expect(page.locator(".node[tabindex='0']")).to_be_visible()


def test_a_step_tells_what_its_logit_is_made_of(show: Opener) -> None:
    """The greatest shares, the others and their sum; and what each layer would have written."""
    page = show("translation")
    page.locator("#steps .chip").nth(1).click()
    tables = page.locator("#steps .alternatives table")
    shares, lens = (table.locator("tr").all_inner_texts() for table in (tables.first, tables.last))
    rows = [row.split("\t") for row in shares]
    assert rows[:2] == [["Decoder, layer 0, head 0", "2.00"], ["Decoder, layer 0, head 1", "−1.00"]]
    assert [name for name, _ in rows[6:]] == ["6 others", "Logit"]
    numbers = [float(share.replace("−", "-")) for _, share in rows]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.05)
    assert [row.split("\t")[1] for row in lens] == ["·the", "有"]


def test_the_heads_that_matter_most_come_first(show: Opener) -> None:
    """Each with its change, and with the translation if that is another one."""
    rows = show("translation").locator("#off tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["Encoder, layer 2, head 3", "−1.80", "the same"]
    assert rows[3].split("\t") == ["Encoder, layer 2, head 2", "−1.20", "我有两个苹果。"]
    assert len(rows) == len(translation().switched_off)


def test_the_tree_is_walked_with_arrows(show: Opener) -> None:
    """Up and down in a step, right to the next one, also where it has not been reached yet."""
    page = show("translation")
    page.get_by_role("button", name="start, step 0").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#steps .counter")).to_have_text("Step 2 of 7 writes 有")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(focused(page)).to_have_accessible_name(re.compile("^</s>, step 2, rank 3, .*, finished"))
    expect(page.locator(".beam .readout")).to_have_text(
        "“我</s>”, log-probability −1.80, score −1.20. Made to be finished."
    )
    assert page.locator(".tree path.way").count() == 2


@pytest.mark.parametrize(
    ("section", "first", "keys"),
    [
        ("#sentence", ".keys .token >> nth=0", ["ArrowRight", "ArrowDown"]),
        (".beam", ".node >> nth=0", ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"]),
        ("dialog", ".heat tbody td >> nth=0", ["ArrowDown"] * 6),
    ],
)
def test_what_is_said_is_in_sight(show: Opener, section: str, first: str, keys: list[str]) -> None:
    """In a low window too: whatever has the focus and the line about it are both to be seen."""
    page = show("translation")
    page.set_viewport_size({"width": 1200, "height": 420})
    if section == "dialog":
        page.locator(".thumb").first.click()
    page.locator(first).focus()
    for key in ("", *keys):
        if key:
            page.keyboard.press(key)
        own, line = (each.bounding_box() for each in (focused(page), said(page, section)))
        assert own is not None
        assert line is not None
        for box in (own, line):
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 421
        assert (
            own["y"] + own["height"] <= line["y"] + 1 or line["y"] + line["height"] <= own["y"] + 1
        )


def test_the_language_is_the_readers_and_can_be_changed(show: Opener) -> None:
    """Chinese for a Chinese browser; the switch changes every label, and `lang` follows."""
    page = show("translation", locale="zh-CN")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    expect(page.get_by_role("heading", level=2).first).to_have_text("谁在看谁")
    page.locator(".node").nth(4).hover()
    expect(page.locator(".beam .readout")).to_contain_text("造来演示")
    page.get_by_role("radio", name="EN", exact=True).click()
    assert page.evaluate("document.documentElement.lang") == "en"
    expect(page.get_by_role("heading", level=2).first).to_have_text("Who looks at whom")
    expect(page.locator("body")).not_to_contain_text(re.compile("注意力|词元"))
    expect(page.get_by_role("radio", name="EN", exact=True)).to_be_focused()


def test_the_theme_is_the_readers_and_can_be_changed(show: Opener) -> None:
    """Dark where the system is dark; the switch changes text, ground and heat maps."""
    page = show("translation", dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    pixel = "document.querySelector('canvas').toDataURL()"
    dark, dark_pixel = page.evaluate(ground), page.evaluate(pixel)
    page.get_by_role("radio", name="Light").click()
    assert page.evaluate(ground) != dark
    assert page.evaluate(pixel) != dark_pixel
    page.get_by_role("radio", name="Dark").click()
    assert page.evaluate(ground) == dark
    assert page.evaluate(pixel) == dark_pixel


@pytest.mark.parametrize(
    ("name", "headings"),
    [
        ("translation", ["Who looks at whom", "Step by step", "Every head", "Without a head"]),
        ("continuation", ["Who looks at whom", "Step by step", "Every head"]),
        ("chosen", ["Who looks at whom", "Step by step", "Some heads"]),
        (
            "classification",
            ["The label", "Which tokens mattered", "Who looks at whom", "Every head"],
        ),
        ("tagging", ["The tags", "Who looks at whom", "Every head"]),
        ("filling", ["Who looks at whom", "The gaps", "Every head"]),
    ],
)
def test_each_variant_has_its_sections(show: Opener, name: str, headings: list[str]) -> None:
    """And no other: no beam without one, no labels where none are given."""
    page = show(name)
    assert page.get_by_role("heading", level=2).all_inner_texts() == headings


def test_what_mattered_is_labelled_as_what_it_is(show: Opener) -> None:
    """Both methods by name, negative values framed, and a sentence that neither proves a cause."""
    page = show("classification")
    section = page.locator("#mattered")
    assert section.get_by_role("heading", level=3).all_inner_texts() == [
        "Attention rollout",
        "Gradient × input",
    ]
    expect(section).to_contain_text("Neither is a proof of cause")
    assert section.locator(".against").count() == 2
    expect(section.locator(".against").first).to_have_text("Not−0.80")


def test_texts_are_shown_and_never_run(show: Opener) -> None:
    """A token that looks like markup stands there as it is; Hebrew keeps its direction."""
    page = show("continuation")
    expect(page.locator(".queries .token").nth(6)).to_have_text("·</script><b>")
    assert page.locator("main b").count() == 0
    direction = "item => getComputedStyle(item.querySelector('bdi')).direction"
    assert page.locator(".queries .token").nth(7).evaluate(direction) == "rtl"


def test_what_runs_from_right_to_left_does(show: Opener) -> None:
    """The first token stands rightmost, and the left arrow leads to the second."""
    page = show("filling")
    tokens = page.locator(".queries .token")
    places = [tokens.nth(n).bounding_box() for n in (0, 1, 2)]
    left = [place["x"] for place in places if place is not None]
    assert left == sorted(left, reverse=True)
    tokens.nth(0).focus()
    page.keyboard.press("ArrowLeft")
    expect(said(page, "#sentence")).to_have_text(re.compile("^“عاصمة” looks at"))


@pytest.mark.parametrize("width", [360, 760])
def test_nothing_is_wider_than_the_screen(show: Opener, width: int) -> None:
    """On a telephone too: what is wider scrolls inside itself."""
    page = show("translation", width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator(".queries .token").nth(len(TGT) - 2).hover()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_narrow_page_shows_all_columns_and_lines_its_tabs_up(show: Opener) -> None:
    """At 400 pixels nothing of the table of continuations is cut, and the tabs are as wide."""
    page = show("translation", width=400)
    table = page.locator(".tall")
    assert table.evaluate("item => item.scrollWidth <= item.clientWidth")
    tabs = page.locator(".controls .choices label").evaluate_all(
        "all => all.map((item) => Math.round(item.getBoundingClientRect().width))"
    )
    assert len(tabs) == 4
    assert len(set(tabs)) == 1


def test_no_barrier_is_found(show: Opener) -> None:
    """The rules of axe-core find nothing, with a token pointed at and everything unfolded.

    Nor in the dialog of a head, with a cell pointed at.
    """
    page = show("translation")
    for details in page.locator("summary").all():
        details.click()
    page.locator(".queries .token").nth(3).hover()
    assert barriers(page, "body", {}) == []
    page.locator(".thumb").nth(1).click()
    page.locator(".heat tbody td").nth(5).hover()
    assert barriers(page, "dialog", {}) == []
    assert barriers(show("classification"), "#mattered", {}) == []


def test_the_dark_colours_have_contrast(show: Opener) -> None:
    """Text on every shade of the accent's colour, in the theme where it is light."""
    page = show("translation", dark=True)
    page.locator(".queries .token").nth(3).hover()
    assert barriers(page, "body", {"runOnly": ["color-contrast"]}) == []
