"""Lines of the source on the pages: those of the marker, and none twice.

That pages have them as they are now, test_site.py tests.
"""

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, name_of

import excerpts
from excerpts import MARKER, MOST_LINES, Wrong, filled, lines_of, parts_of
from staging import find_pages, source_page, staged_page

NORM = "src/dragoman/nn/norm.py"
DOT = "src/dragoman/nn/dot_product.py"
DOCS = [page for page in PAGES if ROOT / "docs" in page.parents]
SHOWN = [page for page in DOCS if MARKER.search(page.read_text(encoding="utf-8"))]


def test_every_page_of_the_walk_shows_lines() -> None:
    """In both languages; only the index has none, and two pages whose code is their own."""
    own = {"index", "00-one-file", "00b-one-vector"}
    walk = [page for page in DOCS if page.parent.name == "walk" and page.stem not in own]
    assert len(walk) > 25
    assert [page for page in walk if page not in SHOWN] == []


@pytest.mark.parametrize("page", SHOWN, ids=name_of)
def test_the_lines_carry_an_idea_and_no_more(page: Path) -> None:
    """At most fifteen, whole lines of the named file, with a link to it."""
    blocks = re.findall(
        r"^<!-- code: (\S+?):[^\n]+ -->\n<!-- fmt: off -->\n```py\n(.*?)\n```\n<!-- fmt: on -->\n\n"
        r"\[`(\S+?):\S+`\]\((\S+)\)\n<!-- end -->$",
        page.read_text(encoding="utf-8"),
        re.M | re.S,
    )
    assert len(blocks) == len(MARKER.findall(page.read_text(encoding="utf-8")))
    for file, code, named, target in blocks:
        source = [line.strip() for line in (ROOT / file).read_text("utf-8").splitlines()]
        assert 2 < code.count("\n") + 1 <= MOST_LINES
        assert [line for line in code.splitlines() if line.strip() not in source] == []
        assert named == file
        assert (page.parent / target).resolve() == ROOT / file


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of a repository with one source file."""
    monkeypatch.setattr(excerpts, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(
        'def one(x):\n    """Say it.\n\n    In lines.\n    """\n    y = x + 1\n\n    return y\n\n\n'
        "class Two:\n    value = 2\n\n    def three(self):\n        return 3\n",
        encoding="utf-8",
    )
    return tmp_path / "page.md"


def shown(page: Path, text: str) -> str:
    """The code of the only block that a text becomes."""
    page.write_text(f"# Title\n\n{text}\n\nBehind.\n", encoding="utf-8")
    made = filled(page)
    assert made.startswith("# Title\n\n<!-- code: ")
    assert made.endswith("<!-- end -->\n\nBehind.\n")
    page.write_text(made, encoding="utf-8")
    assert filled(page) == made
    (code,) = re.findall(r"```py\n(.*?)\n```", made, re.S)
    return str(code)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<!-- code: a.py:one -->", "def one(x):\n    y = x + 1\n\n    return y"),
        ('<!-- code: a.py:one from "y =" to "return" -->', "y = x + 1\n\nreturn y"),
        ('<!-- code: a.py:one from "return" -->', "return y"),
        ('<!-- code: a.py:one to "y =" -->', "def one(x):\n    y = x + 1"),
        ("<!-- code: a.py:Two.three -->", "def three(self):\n    return 3"),
        ("<!-- code: a.py:Two.value -->", "value = 2"),
        ("[`a.py:Two.value`](a.py)", "value = 2"),
        ("<!-- code: a.py:Two.value -->\n```py\nold\n```\n\ngone\n<!-- end -->", "value = 2"),
    ],
)
def test_what_a_marker_becomes(page: Path, text: str, code: str) -> None:
    """From the first line to the last; without them, all but a long docstring."""
    assert shown(page, text) == code


def test_two_markers_are_two_blocks(page: Path) -> None:
    """One that has no lines yet does not reach into the next one's."""
    page.write_text(
        "<!-- code: a.py:Two.value -->\n\nBetween.\n\n"
        "<!-- code: a.py:Two.three -->\n<!-- end -->\n",
        encoding="utf-8",
    )
    made = filled(page)
    assert made.count("```py\n") == 2
    assert made.count("<!-- end -->") == 2
    assert "Between." in made


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<!-- code: b.py:one -->", "page.md: there is no file b.py"),
        ("<!-- code: a.py:Two.four -->", "a.py has no Two.four"),
        ('<!-- code: a.py:one from "z =" -->', "a.py:one has no line with 'z ='"),
        ('<!-- code: a.py:one from "return" to "y =" -->', "a.py:one has no line with 'y ='"),
    ],
)
def test_what_is_not_there_is_said(page: Path, text: str, sentence: str) -> None:
    """With the page, the file and what it lacks."""
    with pytest.raises(Wrong, match=re.escape(sentence)):
        shown(page, text)


def test_too_many_lines_are_refused(page: Path) -> None:
    """With what to say instead."""
    body = "".join(f"    x = {number}\n" for number in range(MOST_LINES))
    (page.parent / "a.py").write_text(f"def one():\n{body}", encoding="utf-8")
    with pytest.raises(Wrong, match=r"shows 16 lines, at most 15 fit; say from"):
        shown(page, "<!-- code: a.py:one -->")
    assert shown(page, '<!-- code: a.py:one from "x = 0" -->').count("x = ") == MOST_LINES


@pytest.mark.parametrize("page", SHOWN, ids=name_of)
def test_every_line_is_on_the_site_once(page: Path) -> None:
    """Shown or folded away, in order, with its number: together the whole of the name."""
    for found in MARKER.finditer(page.read_text(encoding="utf-8")):
        lines = lines_of(found["file"], found["name"])
        parts = list(parts_of(found))
        assert any(part.shown for part in parts)
        numbered = [
            (part.first + i, line)
            for part in parts
            for i, line in enumerate(part.code.splitlines())
            if line
        ]
        whole = enumerate(lines.code.splitlines(), start=lines.first)
        assert numbered == [(number, line) for number, line in whole if line]


@pytest.mark.parametrize(("language", "summary"), [("en", "11 more lines"), ("zh", "其余 11 行")])
def test_the_site_folds_the_rest(language: str, summary: str) -> None:
    """The docstring and what stands before the first line; a link leads to the line in its file."""
    name = "walk/03-scaled-dot-product.md"
    text = (
        f'<!-- code: {DOT}:additive from "return" -->\n```py\nold\n```\n<!-- end -->\n\nBehind.\n'
    )
    made = staged_page(find_pages(language), name, text)
    lines = lines_of(DOT, "additive")
    last = lines.first + lines.code.count("\n")
    more = summary.replace("11", str(last - lines.first))
    assert f"<summary>{more}</summary>" in made
    assert made.count('<details class="rest" markdown="1">') == 1
    assert f'linenums="{last}"\n    return zeros' in made
    assert f"[{DOT}:{last}](../{source_page(DOT)}#__codelineno-0-{last}){{ .source }}" in made
    assert "old" not in made
    assert made.rstrip().endswith("Behind.")


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("LayerNorm", "class LayerNorm(nn.Module):"),
        ("make_norm", "def make_norm("),
        ("NormName", 'NormName = Literal["layer", "rms"]'),
    ],
)
def test_names_of_every_kind_are_found(name: str, begins: str) -> None:
    """Classes, functions and constants; decorators belong to what they decorate."""
    assert lines_of(NORM, name).code.startswith(begins)
    decorated = lines_of("src/dragoman/nn/position/rotary.py", "LinearScaling")
    assert decorated.code.startswith("@dataclass(")
    among_others = lines_of("src/dragoman/nn/patterns/pattern.py", "Causal.is_causal")
    assert among_others.code == "is_causal = True"
