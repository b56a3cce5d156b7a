"""The site: what becomes of a page of the repository, and that nothing on it leads nowhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import make
from excerpts import ROOT, Wrong
from figures import DRAWINGS, FIGURES
from figures.chinese import chinese_name
from make import check_navigation, laid_out, pages_of, settings
from staging import CHINESE, Tree, find_pages, mathml, site_link, staged_page

PAGE = "blocks.md"
NORM = "src/dragoman/nn/norm.py"


def staged(text: str, language: str = "en") -> str:
    """What becomes of a text that stands in docs/blocks.md."""
    return staged_page(find_pages(language), PAGE, text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"<!-- code: {NORM}:RMSNorm.backward -->", f"{NORM} has no RMSNorm.backward"),
        ("[gone](gone.md)", "gone.md leads to no file"),
        ("[out](../../../etc/passwd)", "leads to no file of the repository"),
        (r"$\unheard{x}$", r"no MathML is known for \unheard"),
        ("A list:\n- one\n", "an empty line stands before a list"),
        ("- one\n  - two\n", "indented by four spaces"),
    ],
)
def test_what_does_not_fit_is_said_with_the_page(text: str, sentence: str) -> None:
    """The build ends with a sentence that names the page and what is wrong."""
    with pytest.raises(Wrong, match=re.escape(sentence)) as wrong:
        staged(f"# Title\n\n{text}\n")
    assert str(wrong.value).startswith("docs/blocks.md: ")


def test_links_lead_to_the_same_language() -> None:
    """From a Chinese page to Chinese ones, and to what is not translated."""
    tree = Tree("zh", {"index.md": CHINESE / "index.md", "blocks.md": ROOT / "docs" / "blocks.md"})
    text = "[blocks](../blocks.md#norms) ![grid](../images/patterns.png) [page](index.md)"
    assert staged_page(tree, "index.md", text) == (
        "[blocks](blocks.md#norms) ![grid](images/patterns.png) [page](index.md)"
    )


def test_a_picture_can_be_enlarged() -> None:
    """It leads to its own file, which a phone shows at any size."""
    made = staged("# Title\n\n![A grid](images/patterns.png)\n")
    assert made == "# Title\n\n[![A grid](images/patterns.png)](images/patterns.png)\n"


def test_a_heading_is_found_in_both_languages() -> None:
    """Links to it may name it in English or in Chinese: on the site it has its English anchor."""
    tree = find_pages("zh")
    assert staged_page(tree, "attention.md", "### 缓存\n") == "### 缓存 { #the-cache }\n"
    assert site_link(tree, "attention.md", "#缓存") == "#the-cache"
    assert site_link(tree, "walk/index.md", "../attention.md#缓存") == "../attention.md#the-cache"
    assert site_link(tree, "blocks.md", "attention.md#the-cache") == "attention.md#the-cache"


def test_the_line_of_languages_goes() -> None:
    """The site has a switch; other links stay."""
    made = staged("# Title\n\nEnglish · [中文](zh/index.md)\n\nText · [page](vit.md)\n")
    assert made == "# Title\n\nText · [page](vit.md)\n"


def test_lines_of_chinese_are_joined() -> None:
    """A line end is a space to a browser, and Chinese has none; a paragraph's end stays."""
    tree = find_pages("zh")
    text = "第一行，\n`code` 后\n一行 word\n末。\n\n- 一，\n  二\n- 三\n"
    joined = "第一行，`code` 后一行 word\n末。\n\n- 一，二\n- 三\n"
    assert staged_page(tree, "index.md", text) == joined
    assert staged_page(tree, "project/changelog.md", text) == text  # which is written in English
    numbered = "1. 甲，\n   乙。\n2. 丙，\n   2.5 丁。\n10. 戊。\n"
    assert staged_page(tree, "index.md", numbered) == "1. 甲，乙。\n2. 丙，2.5 丁。\n10. 戊。\n"


def test_formulas_are_made_and_prices_are_not() -> None:
    """Dollars around TeX make MathML; code and prices keep theirs."""
    made = staged(
        "$x_i * y$ and `$HOME`, $3 or $5.\n\n$$\n\\sqrt{d}\n$$\n\n```sh\necho $A $B\n```\n"
    )
    assert made.count("<math ") == 2
    assert '<div class="formula"><math' in made
    assert "`$HOME`, $3 or $5." in made
    assert "echo $A $B" in made
    assert "*" not in made
    assert "_" not in re.sub(r"<.*?>", "", made)


def test_a_formula_is_translated_whole() -> None:
    """Every letter, digit and sign of the TeX is in the MathML."""
    made = mathml(r"\frac{QK^\top}{\sqrt{d_k}}", display="block")
    assert [re.sub(r"<[^>]*>", "", part) for part in re.findall(r"<m[io]>.*?</m[io]>", made)] == [
        "Q",
        "K",
        "&#x022A4;",
        "d",
        "k",
    ]
    assert "<msqrt>" in made
    assert "<mfrac>" in made


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_in_the_navigation(language: str) -> None:
    """Once, under a title in its language."""
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    tree = find_pages(language)
    nav = settings(config, tree)["project"]["nav"]
    assert sorted(pages_of(nav)) == sorted(tree.pages)


def test_a_page_outside_the_navigation_is_an_error() -> None:
    """So is one that the navigation names and that is not there, and a title in one language."""
    tree = Tree("zh", {"index.md": ROOT / "docs" / "index.md"})
    check_navigation([{"a": ["index.md"]}], tree)
    with pytest.raises(Wrong, match="name it in nav"):
        check_navigation([], tree)
    with pytest.raises(Wrong, match=r"gone\.md, which is not there"):
        check_navigation(["index.md", "gone.md"], tree)
    with pytest.raises(Wrong, match="'Home' has no Chinese title"):
        laid_out([{"Home": "index.md"}], tree, {})
    assert laid_out([{"Home": "./"}], tree, None) == [{"Home": []}]


def test_every_picture_can_be_made_again() -> None:
    """`docs/make.py pictures` draws it by a function of docs/figures/, and it is there."""
    names = [*FIGURES, *DRAWINGS]
    names += [chinese_name(name) for name in names]
    assert [name for name in names if not (ROOT / "docs" / "images" / name).exists()] == []


def test_making_the_pages_changes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as the code is; if this fails, run `make docs`."""
    monkeypatch.setattr(make, "with_output", str)
    monkeypatch.setattr(make, "checkout_notebooks", dict)
    before = _contents()
    try:
        make.make_pages()
    finally:
        changed = {file for file, _ in before.items() ^ _contents().items()}
        for file in changed & before.keys():
            file.write_bytes(before[file])
    assert sorted(str(file.relative_to(ROOT)) for file in changed) == []


@pytest.mark.slow
def test_the_site_is_built_without_a_warning() -> None:
    """Both languages; it changes no file that git knows."""
    before = _contents()
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make.py", "site"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert _contents() == before
    english, chinese = (
        (ROOT / "build" / "site" / part / "vit.html").read_text(encoding="utf-8")
        for part in (".", "zh")
    )
    assert 'href="./zh/vit.html"' in english
    assert 'href="../vit.html"' in chinese
    assert '<html lang="zh"' in chinese


def _contents() -> dict[Path, bytes]:
    """The files of docs/, but for what Python compiles."""
    files = (ROOT / "docs").rglob("*.*")
    return {file: file.read_bytes() for file in files if file.suffix != ".pyc"}
