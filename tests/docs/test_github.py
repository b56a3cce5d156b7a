"""What GitHub makes of a page: formulas that are drawn, bold that is bold, one term for a thing."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.docs.pages import PAGES, ROOT, name_of

from staging import CODE_OR_MATH, DISPLAYED, FENCED, is_chinese

EACH = pytest.mark.parametrize("page", PAGES, ids=name_of)
CHINESE = [page for page in PAGES if is_chinese(page)]

_UPRIGHT = re.compile(r"\\(?:mathrm|operatorname|text|begin|end)\{[^{}]*\}|\\[A-Za-z]+")
_CODE = re.compile(r"`+[^`]+`+|\]\([^)]*\)|<!--.*?-->|^\$\$.*?\$\$$", re.M | re.S)


def formulas(page: Path) -> Iterator[tuple[str, str]]:
    """Each formula of a page, and the character before it; displayed ones have a line end."""
    text = page.read_text(encoding="utf-8")
    for block in FENCED.finditer(text):
        if block["info"].strip() == "math":
            yield block["body"], "\n"
    prose = FENCED.sub("", text)
    yield from ((found["tex"], "\n") for found in DISPLAYED.finditer(prose))
    prose = DISPLAYED.sub("", prose)
    for found in CODE_OR_MATH.finditer(prose):
        if found["tex"]:
            yield found["tex"], prose[found.start() - 1 : found.start()]


@EACH
def test_formulas_are_drawn(page: Path) -> None:
    r"""Markdown takes the backslash of `\,`; a dollar is read at a word's or a bracket's begin."""
    found = list(formulas(page))
    assert [tex for tex, _ in found if re.search(r"\\[^A-Za-z\s]", tex)] == []
    assert [tex for tex, before in found if not re.match(r"[\s(\[|*\"]", before)] == []


@EACH
def test_words_in_formulas_are_upright(page: Path) -> None:
    r"""Where TeX has no `\sin` of it, `softmax` is a word: unmarked, a product of seven letters."""
    bare = [_UPRIGHT.sub(" ", tex) for tex, _ in formulas(page)]
    assert [word for tex in bare for word in re.findall("[A-Za-z]{3,}", tex)] == []


@EACH
def test_bold_is_bold(page: Path) -> None:
    """No asterisks are left: a closing pair behind full-width punctuation needs a space after."""
    text = DISPLAYED.sub("", page.read_text(encoding="utf-8"))
    inline = [token for token in MarkdownIt("commonmark").parse(text) if token.type == "inline"]
    parts = [part for token in inline for part in token.children or ()]
    assert [part.content for part in parts if part.type == "text" and "**" in part.content] == []


@pytest.mark.parametrize("page", CHINESE, ids=name_of)
def test_chinese_is_not_slanted(page: Path) -> None:
    """Emphasis in Chinese is bold; slanted are words of other languages."""
    text = _CODE.sub("", FENCED.sub("", page.read_text(encoding="utf-8")))
    slanted = re.findall(r"(?<!\*)\*(?![\s*])([^*\n]+)(?<![\s*])\*(?!\*)", text)
    assert [words for words in slanted if re.search("[\u4e00-\u9fff]", words)] == []


TERMS = {
    "算子": "内核",
    "内积": "点积",
    "奈特|(?<![A-Za-z])nat(?![A-Za-z])": "nats",
    "逐比特|每一位都": "逐位",
    "贪婪": "贪心",
    "集束": "束搜索",
    "译码": "解码",
    "补齐": "填充",
    "词汇表": "词表",
    "标号平滑": "标签平滑",
    "对数几率": "logits",
    "候选词表": "候选表",
    "(?<!完)全注意力|完整注意力": "完全注意力",
    "候选(?:译文|假设)|哪些候选": "假设",
    "(?<=[\u4e00-\u9fff，、；]) ?ids? ?(?=[\u4e00-\u9fff，、；。])": "编号",
    "[预前后]归一化": "前置归一化, 后置归一化",
}
"""What Chinese pages call a thing otherwise, as a regular expression, and the one term for it."""


@pytest.mark.parametrize("page", CHINESE, ids=name_of)
def test_a_thing_has_one_chinese_term(page: Path) -> None:
    """The same on every page, also inside links and tables."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = {term: re.findall(other, text) for other, term in TERMS.items()}
    assert {term: others for term, others in found.items() if others} == {}


def test_variances_are_written_as_variances() -> None:
    """`N(0, 0.02^2)`: the second number is a variance, on pages and in docstrings."""
    texts = [*PAGES, *(ROOT / "src").rglob("*.py")]
    wrong = r"N\(0, (?:0\.02|D\^-1/2)\)"
    assert [path.name for path in texts if re.search(wrong, path.read_text("utf-8"))] == []
