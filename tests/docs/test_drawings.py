"""The drawings of the paper's figures, their Chinese, and what the site makes of them."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.docs.pages import PAGES, ROOT, links, name_of

pytest.importorskip("matplotlib", reason="pictures need the extra dragoman[plot]")

from matplotlib.figure import Figure

from figures import DRAWINGS
from figures.chinese import chinese, chinese_name, save
from figures.drawings import CHINESE
from figures.heads import looks
from staging import find_pages, staged_page

IMAGES = ROOT / "docs" / "images"
SVG = "{http://www.w3.org/2000/svg}"
FILES = [file for name in DRAWINGS for file in (name, chinese_name(name))]


@pytest.mark.parametrize("file", FILES)
def test_a_drawing_is_what_its_code_draws(file: str, tmp_path: Path) -> None:
    """To the byte: if this fails, run `python docs/make.py pictures`."""
    made = DRAWINGS[file.replace(".zh.", ".")](tmp_path / file)
    assert made.read_bytes() == (IMAGES / file).read_bytes()


@pytest.mark.parametrize("file", FILES)
def test_every_box_leads_to_its_page(file: str) -> None:
    """A page of the walk in the language of the drawing, with a label inside."""
    boxes = ET.parse(IMAGES / file).getroot().findall(f"{SVG}a")  # noqa: S314 (our own)
    assert len(boxes) > 10
    walk = ROOT / "docs" / ("zh" if ".zh." in file else "") / "walk"
    for box in boxes:
        page = (IMAGES / box.attrib["href"]).resolve()
        assert page.parent == walk
        assert page.exists()
        assert (box.findtext(f"{SVG}text") or "").strip()


@pytest.mark.parametrize("file", FILES)
def test_labels_stay_inside_the_drawing(file: str) -> None:
    """No box and no label stands outside of what is shown."""
    root = ET.parse(IMAGES / file).getroot()  # noqa: S314 (our own)
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (int(box.attrib.get(key, 0)) for key in ("x", "y", "width", "height"))
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height
    for text in root.iter(f"{SVG}text"):
        assert 0 < int(text.attrib["x"]) < width
        assert 0 < int(text.attrib["y"]) < height


def test_both_languages_are_one_drawing() -> None:
    """The same boxes at the same places, and every label of the table is used."""
    said = ""
    for name in DRAWINGS:
        english, chinese_one = (
            (IMAGES / file).read_text(encoding="utf-8") for file in (name, chinese_name(name))
        )
        said += english
        for pattern in (r"<rect [^>]+>", r"<path [^>]+>", r"walk/[\w-]+\.md"):
            assert re.findall(pattern, english) == re.findall(pattern, chinese_one)
        for word, meant in CHINESE.items():
            label = f">{word.replace('&', '&amp;')}<"
            assert english.count(label) == 0 or f">{meant}<" in chinese_one
    assert [w for w in CHINESE if f">{w.replace('&', '&amp;')}<" not in said] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_drawing_is_part_of_the_page_on_the_site(language: str) -> None:
    """In one block, with links to the pages of the site and its text for who cannot see it."""
    file, up = {"en": ("transformer.svg", "../"), "zh": ("transformer.zh.svg", "../../")}[language]
    text = "![All of it](" + f"{up}images/{file})\n\nBehind.\n"
    made = staged_page(find_pages(language), "walk/02-stacks.md", text)
    drawing, behind = made.split("\n\n")
    assert behind == "Behind.\n"
    assert drawing.startswith('<div class="drawing"><svg role="group" aria-label="All of it" ')
    assert drawing.endswith("</svg></div>")
    assert "\n" not in drawing
    hrefs = re.findall(r'href="([^"]+)"', drawing)
    assert {"07-embeddings.html", "06-feed-forward.html", "02-stacks.html"} <= set(hrefs)
    assert all(re.fullmatch(r"\d\d-[\w-]+\.html", href) for href in hrefs)


@pytest.mark.parametrize("page", [p for p in PAGES if "zh" in p.parts], ids=name_of)
def test_chinese_pages_have_chinese_pictures(page: Path) -> None:
    """Wherever there is one."""
    named = [Path(link).name for link in links(page) if "/images/" in link]
    assert [name for name in named if (IMAGES / chinese_name(name)).exists()] == []


@pytest.mark.parametrize("page", [p for p in PAGES if "docs" in p.parts], ids=name_of)
def test_a_caption_names_no_function(page: Path) -> None:
    """It says what to see."""
    assert re.findall(r"\[`plot_\w+`\]", page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("6 layers", "6 层"),
        ("full: 8 key-value heads", "完全：8 个键值头"),
        ("0.5", "0.5"),
        ("$\\mathdefault{10^{2}}$", "$\\mathdefault{10^{2}}$"),
        ("RNN", "RNN"),
    ],
)
def test_the_chinese_of_a_label(said: str, meant: str) -> None:
    """By its pattern, numbers kept; names and numbers stay."""
    assert chinese(said) == meant


def test_a_label_without_its_chinese_is_an_error(tmp_path: Path) -> None:
    """In a title, a legend or at an axis; not in the English picture."""
    for place in ("title", "ticks"):
        figure = Figure()
        axes = figure.subplots()
        if place == "title":
            axes.set_title("unheard of")
        else:
            axes.set_xticks([0], labels=["unheard of"])
        save(figure, tmp_path / "picture.png")
        with pytest.raises(KeyError, match="no Chinese for 'unheard of'"):
            save(figure, tmp_path / "picture.zh.png")


def test_every_label_is_translated(tmp_path: Path) -> None:
    """Titles, legends and the marks of an axis that are set by hand, each with its size."""
    figure = Figure()
    axes = figure.subplots()
    axes.set_title("6 layers", fontsize=17)
    axes.plot([0, 1], label="causal")
    legend = axes.legend()
    axes.set_xticks([0, 1], labels=["pad", "1"], fontsize=8)
    save(figure, tmp_path / "picture.zh.png")
    assert (axes.get_title(), axes.title.get_fontsize()) == ("6 层", 17)
    assert [text.get_text() for text in legend.get_texts()] == ["因果"]
    ticks = figure.axes[0].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["填充", "1"]
    assert {tick.get_fontsize() for tick in ticks} == {8}


def test_the_caption_counts_the_heads_that_are_drawn() -> None:
    """Page 4 of the walk: at which word each of the eight looks most."""
    cross = looks("heads")

    def most(token: str) -> list[list[str]]:
        """By layer and head, the source token that gets most of a written one's attention."""
        row = cross.tgt.index(token)
        return [
            [cross.src[head[row].argmax()].strip() for head in layer] for layer in cross.weights
        ]

    def count(token: str, word: str) -> int:
        return sum(layer.count(word) for layer in most(token))

    assert (count("昨天", "yesterday"), count("了两", "two"), count("在", "at")) == (6, 6, 5)
    assert most("了两")[0][1:3] == ["books", "books"]
    assert most("本")[0][3] == "</s>"


def test_the_caption_of_the_mean_is_so() -> None:
    """Page 4: the first two words look at their own, 学习 at its own and a piece of the next."""
    mean = looks("mean")
    seen = {
        token: [mean.src[place].strip() for place in row.argsort()[::-1] if row[place] > 0.15]
        for token, row in zip(mean.tgt, mean.weights, strict=True)
    }
    assert (seen["我"], seen["喜欢"], seen["学习"]) == (["I"], ["like"], ["studying", "tif"])
