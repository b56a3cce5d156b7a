"""The page that computes: its numbers are the model's, and readers of every kind can use it."""

import json
import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from math import exp

import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from tests.system.browser.conftest import Opener, barriers
from torch import Tensor

from dragoman.data.made import demo_corpus
from dragoman.decoding import Decoding
from dragoman.evaluate import evaluate
from dragoman.models import EncoderDecoder
from dragoman.nn.patterns.pattern import Full
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Tokenizer
from live_page import LIVE, MODEL, OWN, live_model

TEXTS = (
    "I like studying artificial intelligence.",
    "You bought a piece of chocolate yesterday afternoon.",
    "Does your teacher drink tea in the kitchen every day?",
)
TGT = [2, 590, 700, 800, 900, 1000]
UNTOUCHED = {"scale": True, "causal": True, "positions": True, "temperature": 1, "off": []}

LOGITS = """([src, tgt, switches]) => {
    const model = loadModel(MODEL);
    const encoder = encode(model, src, switches);
    const decoder = decode(model, tgt, encoder.memory, switches);
    const heads = decoder.attention["cross.1"].map((head) => head.weights_TS);
    return [decoder.logits_V, heads];
}"""
TOKENS = """(texts) => {
    const { tokenizer } = loadModel(MODEL);
    return texts.map((text) => {
        const ids = tokenize(text, tokenizer);
        return [ids, detokenize(ids, tokenizer)];
    });
}"""
SEARCH = """([ids, size, switches]) => {
    const model = loadModel(MODEL);
    const { memory } = encode(model, ids, switches);
    const { way } = search(model, memory, { size, alpha: 1, longest: 40 }, switches);
    return detokenize(way.at(-1).ids, model.tokenizer);
}"""

FIRST_PIXEL = "(canvas) => [...canvas.getContext('2d').getImageData(0, 0, 1, 1).data.slice(0, 3)]"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The tokenizer in model.js."""
    return live_model()[1]


@pytest.fixture
def model() -> EncoderDecoder:
    """The model in it, built anew in float64: tests change it."""
    return live_model()[0].double()


@pytest.fixture(scope="module")
def scripts(browser: Browser) -> Iterator[Page]:
    """An empty page with the model and its code."""
    page = browser.new_page()
    for name in ("model.js", *OWN[:2]):
        page.add_script_tag(path=LIVE / name)
    yield page
    page.close()


def unscaled(model: EncoderDecoder) -> None:
    """Leave out 1 / sqrt(d)."""
    for layer in (*model.encoder.each_layer(), *model.decoder.each_layer()):
        for attn in (layer.self_attn, layer.cross_attn):
            if attn is not None:
                attn.scale = 1.0


def unmasked(model: EncoderDecoder) -> None:
    """Let the decoder look ahead."""
    for layer in model.decoder.each_layer():
        layer.self_attn.pattern = Full()


def unplaced(model: EncoderDecoder) -> None:
    """Leave out the positions."""
    model.src_embedding.positions = model.tgt_embedding.positions = None


def without_heads(model: EncoderDecoder) -> None:
    """Give one head of each kind no way out."""
    cross = model.decoder.each_layer()[1].cross_attn
    attentions = (model.encoder.each_layer()[0].self_attn, model.decoder.each_layer()[0].self_attn)
    for attn, head in zip((*attentions, cross), (2, 1, 0), strict=True):
        with torch.no_grad():
            attn.out_proj.weight.unflatten(1, (attn.num_heads, -1))[:, head] = 0  # type: ignore[union-attr] # cross is there


@pytest.mark.parametrize(
    ("switches", "change"),
    [
        ({}, lambda _: None),
        ({"scale": False}, unscaled),
        ({"causal": False}, unmasked),
        ({"positions": False}, unplaced),
        ({"off": ["encoder.0.2", "decoder.0.1", "cross.1.0"]}, without_heads),
    ],
)
def test_the_numbers_are_those_of_the_model(
    scripts: Page,
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    switches: dict[str, object],
    change: Callable[[EncoderDecoder], None],
) -> None:
    """Logits, and the weights of cross-attention, with each switch as with the same change here."""
    change(model)
    seen: list[Tensor] = []
    attn = model.decoder.each_layer()[1].cross_attn
    assert attn is not None
    attn.register_forward_hook(lambda a, args, _: seen.append(a.weights(*args)))
    for text in TEXTS:
        src = [*tokenizer.encode(text), tokenizer.eos_id]
        logits, heads = scripts.evaluate(LOGITS, [src, TGT, UNTOUCHED | switches])
        with torch.no_grad():
            expected_V = model(torch.tensor([src]), torch.tensor([TGT]))[0, -1]
        torch.testing.assert_close(
            torch.tensor(logits, dtype=torch.float64), expected_V, atol=1e-5, rtol=0
        )
        weights_HTS = torch.tensor(heads, dtype=torch.float64)
        torch.testing.assert_close(weights_HTS, seen.pop()[0], atol=1e-6, rtol=0)


def test_text_becomes_the_same_ids(scripts: Page, tokenizer: Tokenizer) -> None:
    """Of every script, with spaces anywhere; and the ids become the text again."""
    draw = random.Random(1)
    alphabet = "abcIT 'st.,?!23  \u4eba\u5de5\u667a，。é\u0301ß\u03a9\u0430ー\U0001f600\t\n<>/"
    texts = [*TEXTS, "", " ", "don't, it's 42", "我喜欢 tea。"]
    texts += ["".join(draw.choices(alphabet, k=draw.randint(1, 20))) for _ in range(200)]
    found = scripts.evaluate(TOKENS, texts)
    assert [ids for ids, _ in found] == tokenizer.encode_batch(texts)
    assert [text for _, text in found] == texts


@pytest.mark.parametrize("size", [1, 4])
def test_the_search_finds_what_the_translator_finds(
    scripts: Page, model: EncoderDecoder, tokenizer: Tokenizer, size: int
) -> None:
    """Greedy search and a beam of 4; the demo's own sentence is right."""
    decoding = Decoding(beam_size=size, length_penalty=1.0)
    translator = Translator(model.float(), tokenizer, tokenizer, decoding=decoding)
    ids = [[*tokenizer.encode(text), tokenizer.eos_id] for text in TEXTS]
    found = [scripts.evaluate(SEARCH, [each, size, UNTOUCHED]) for each in ids]
    assert found == [each.text for each in translator.translate(TEXTS)]
    assert found[0] == "我喜欢学习人工智能。"


CHANGES: dict[str, tuple[int, dict[str, object]]] = {
    "none": (4, {}),
    "greedy search": (1, {}),
    "positions off": (4, {"positions": False}),
    "scale off": (4, {"scale": False}),
    "causal mask off": (4, {"causal": False}),
    "cross-attention, layer 1, head 3 off": (4, {"off": ["cross.1.3"]}),
}
"""The changes that docs/live.md names: the size of the beam, and the switches."""


def test_the_page_says_what_comes_out(scripts: Page, tokenizer: Tokenizer) -> None:
    """Each row of its table of things to try; the Chinese one has the same sentences."""
    english, chinese = (
        re.findall(r"^\| ([A-Z].+?) \| (.+?) \| (.+?。) \|$", page.read_text("utf-8"), re.M)
        for page in (LIVE.parent / "live.md", LIVE.parent / "zh" / "live.md")
    )
    assert {change for _, change, _ in english} == CHANGES.keys()
    assert [(text, output) for text, _, output in english] == [
        (text, output) for text, _, output in chinese
    ]
    for text, change, output in english:
        size, switches = CHANGES[change]
        ids = [*tokenizer.encode(text), tokenizer.eos_id]
        assert scripts.evaluate(SEARCH, [ids, size, UNTOUCHED | switches]) == output


LOG_PROB = """([ids, size]) => {
    const model = loadModel(MODEL);
    const { memory } = encode(model, ids, UNTOUCHED);
    const { way } = search(model, memory, { size, alpha: 1, longest: 40 }, UNTOUCHED);
    const probs_V = decode(model, [BOS], memory, UNTOUCHED).probs_V.toSorted((a, b) => a - b);
    return [way.at(-1).log_prob, probs_V.length * probs_V[probs_V.length >> 1]];
}""".replace("UNTOUCHED", json.dumps(UNTOUCHED))


def numbers(english: str, chinese: str) -> list[float]:
    """The numbers at the groups of a sentence of docs/live.md, the same in its Chinese twin."""
    found = []
    for page, pattern in (("live.md", english), ("zh/live.md", chinese)):
        (groups,) = re.findall(pattern, (LIVE.parent / page).read_text("utf-8"), re.S)
        each = [groups] if isinstance(groups, str) else groups
        found.append([float(n.replace(",", "").replace("\u2212", "-")) for n in each])
    assert found[0] == found[1]
    return found[0]


def test_the_page_tells_the_odds(scripts: Page, tokenizer: Tokenizer) -> None:
    """Of the beam's sentence and the greedy one, and of what smoothing spreads: the median's."""
    times, beam, greedy = numbers(
        r"is (\S+) times as probable\s+\(log-probability (\S+) against ([^)]+)\)",
        r"是前者的 (\S+) 倍（对数概率 (\S+)，前者 ([^）]+)）",
    )
    liked, bought = ([*tokenizer.encode(text), tokenizer.eos_id] for text in TEXTS[:2])
    (of_beam, _), (of_greedy, _) = (scripts.evaluate(LOG_PROB, [bought, n]) for n in (4, 1))
    assert (round(of_beam, 2), round(of_greedy, 2)) == (beam, greedy)
    assert round(exp(of_beam - of_greedy)) == times
    (percent,) = numbers(r"spreads about (\d+) percent", r"约有 (\d+)% 的概率分散")
    assert round(100 * scripts.evaluate(LOG_PROB, [liked, 1])[1]) == percent


def test_the_page_counts_the_heads_that_decide(model: EncoderDecoder, tokenizer: Tokenizer) -> None:
    """Each, switched off alone, changes the two sentences as often as the page says."""
    number, decide = numbers(
        r"Of the (\d+) heads.+?umbrellas, but (\d+) change",
        r"。(\d+) 个头逐一.+?其中 (\d+) 个改变",
    )
    texts = ("Her brother bought two red umbrellas at the market yesterday.", TEXTS[0])
    attentions = [
        attn
        for layer in (*model.encoder.each_layer(), *model.decoder.each_layer())
        for attn in (layer.self_attn, layer.cross_attn)
        if attn is not None
    ]
    decoding, found = Decoding(beam_size=4, length_penalty=1.0), []
    whole = deepcopy(model.float().state_dict())
    for attn, head in [(None, 0), *((a, h) for a in attentions for h in range(a.num_heads))]:
        model.load_state_dict(whole)
        if attn is not None:
            with torch.no_grad():
                attn.out_proj.weight.unflatten(1, (attn.num_heads, -1))[:, head] = 0
        translator = Translator(model, tokenizer, tokenizer, decoding=decoding)
        found.append([each.text for each in translator.translate(texts)])
    plain, *others = found
    assert len(others) == number
    changes = [sum(other[n] != plain[n] for other in others) for n in (0, 1)]
    assert changes == [1, decide]
    assert others[-1] != plain  # the page's row: the last head of the last cross-attention


def test_the_page_tells_the_size_and_the_score(model: EncoderDecoder, tokenizer: Tokenizer) -> None:
    """Parameters, megabytes, and BLEU and exact translations of the model that is on the page."""
    assert numbers(r": ([\d,]+) parameters", r"：([\d,]+) 个参数") == [
        sum(weight.numel() for weight in model.parameters())
    ]
    assert numbers(r"file of (\S+) MB", r"文件 (\S+) MB") == [round(MODEL.stat().st_size / 1e6, 2)]
    told = numbers(
        r"BLEU on the demo's (\d+) test sentences is (\S+),\s+and (\d+) of",
        r"(\d+) 个测试句上 BLEU 为 (\S+)，其中 (\d+) 句",
    )
    _, _, test = demo_corpus()
    decoding = Decoding(beam_size=4, length_penalty=1.0)
    translator = Translator(model.float(), tokenizer, tokenizer, decoding=decoding)
    outputs = [found.text for found in translator.translate([pair.src for pair in test])]
    bleu = evaluate(outputs, [pair.tgt for pair in test], tokenize="zh").bleu
    exact = sum(output == pair.tgt for output, pair in zip(outputs, test, strict=True))
    assert told == [len(test), round(bleu, 1), exact]


def test_the_code_is_short() -> None:
    """Plain JavaScript of at most 600 lines, to be read; the page says how many."""
    lines = sum(len((LIVE / name).read_text(encoding="utf-8").splitlines()) for name in OWN)
    assert lines <= 600
    assert numbers(r"is (\d+) lines of JavaScript", r"是 (\d+) 行供人阅读") == [round(lines, -1)]


@pytest.fixture
def show(browser: Browser) -> Iterator[Opener]:
    """Opens the page from its file; it must be quiet and ask for nothing."""
    opener = Opener(browser, {"live": (LIVE / "index.html").as_uri()})
    yield opener
    opener.close()


def test_a_switch_changes_the_translation_at_once(show: Opener) -> None:
    """By the keyboard; what the unchanged model says stays beside it, and one button undoes it."""
    page = show("live")
    result = page.locator(".result .text")
    expect(result).to_have_text("我喜欢学习人工智能。")
    page.get_by_role("combobox", name="Examples").select_option(index=2)
    expect(result).to_have_text("老师昨天批评了护士。")
    page.get_by_role("checkbox", name="Positions").focus()
    page.keyboard.press("Space")
    expect(result).to_have_text("老师昨天批评了老师。")
    expect(page.locator(".result .note")).to_have_text("As trained: 老师昨天批评了护士。")
    assert page.locator("#embedding canvas").nth(1).evaluate(FIRST_PIXEL) == [255, 255, 255]
    page.locator(".chip").last.focus()
    expect(page.locator(".counter")).to_contain_text("the best hypothesis ended at step")
    page.get_by_role("button", name="As trained").click()
    expect(result).to_have_text("老师昨天批评了护士。")
    box = page.get_by_role("checkbox", name="Use Cross-attention, layer 1, head 0")
    box.uncheck()
    expect(box).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".thumb.off")).to_be_focused()
    assert not box.is_checked()


def test_the_search_goes_step_by_step(show: Opener) -> None:
    """Beam search draws its tree, sampling draws again, and typing translates anew."""
    page = show("live")
    page.get_by_role("button", name="Next step").click()
    expect(page.locator(".counter")).to_have_text("Step 2 of 9 writes 喜欢")
    expect(page.locator(".node.chosen:not(.future)")).to_have_count(3)
    page.get_by_role("radio", name="Sample").check()
    assert page.locator(".tree").count() == 0
    page.get_by_role("button", name="Draw again").click()
    page.get_by_role("textbox").fill("I like tea.")
    page.get_by_role("radio", name="Greedy").check()
    expect(page.locator(".result .text")).to_have_text("我喜欢茶。")


def test_a_head_is_chosen_and_its_numbers_are_told(show: Opener) -> None:
    """The arrows go from cell to cell, and the line says what a cell is made of."""
    page = show("live")
    page.get_by_role("button", name="Decoder, layer 0, head 2").click()
    expect(page.get_by_role("heading", name="Decoder, layer 0, head 2")).to_be_visible()
    page.locator("#head .heat").first.locator("tbody td").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#head .readout")).to_contain_text("“我” looks at “<s>”: q · k = ")
    assert "−∞" in page.locator("#head .heat").first.inner_text()


@pytest.mark.parametrize(("locale", "dark"), [("en-GB", True), ("zh-CN", False)])
def test_it_is_for_all_readers(show: Opener, locale: str, dark: bool) -> None:  # noqa: FBT001
    """No barrier that axe knows, and nothing beside the screen of a phone."""
    page = show("live", locale=locale, width=360, dark=dark)
    page.get_by_role("checkbox").nth(2).uncheck()
    assert barriers(page, "html", {}) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    expect(page.locator("h1")).to_contain_text("浏览器" if locale == "zh-CN" else "browser")


def test_without_scripts_it_says_what_it_is(browser: Browser) -> None:
    """A sentence in each language."""
    page = browser.new_page(java_script_enabled=False)
    page.goto((LIVE / "index.html").as_uri())
    assert page.locator("noscript p").count() == 2
    expect(page.locator("noscript p").first).to_contain_text("please allow scripts for this page")
    expect(page.locator("noscript p").first).to_be_visible()
    page.close()
