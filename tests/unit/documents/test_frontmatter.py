"""Front matter: its titles and descriptions are translated, and nothing else of it."""

import pytest
from tests.word_translator import WordTranslator, in_capitals, translated

from dragoman.documents.document import MARKS

MATTER = [
    "---\ntitle: «a b»\ndate: 2024-01-02\nslug: a-b\ntags: [c d]\n---\n",
    "---\r\nseo:\r\n  description: '«it''s»'  # c\r\n---\r\n",
    "---\nsummary: >\n  «a b\n  c»\nauthor: d\n---\n",
    '---\nexcerpt: "<b>«a»</b> «b \\" c»"\n---\n',
    '+++\ntitle = "«a \\"b\\"»"\nslug = "c"\n[d]\n  tagline = "«e»" # f\n+++\n',
]
LEFT = [
    "---\ntitle: a: b\n---\n",  # not YAML
    "---\ntitle: 12\nweight: d e\n---\n",
    "---\ntitle: !a b\n---\n",
    "---\ntitle:\n- type: a b\n  text: c d\n---\n",  # a key of Pandoc, not a title
    '+++\ntitle = """\na b"""\nsubtitle = "\\U0001F600 a"\n+++\n',
    "---\ntitle: \x9f\xa0 a b {{\n---\n",
]
REST = "front matter, but for titles and descriptions: line 1"


@pytest.mark.parametrize("marked", MATTER)
def test_titles_and_descriptions_are_translated(marked: str) -> None:
    """In their style, at any depth; the report names the rest."""
    source, expected = in_capitals(f"{marked}\n«x y»\n")
    data, _, report = translated(source, "a.md")
    assert (data, report.left) == (expected, (REST,))


def test_a_value_is_quoted_if_its_translation_needs_it() -> None:
    """A literal string of TOML has no escapes."""
    colon = WordTranslator(lambda word: f"{word}:")
    assert translated("---\ntitle: a b\n---\n", "a.md", colon)[0] == '---\ntitle: "a: b:"\n---\n'
    source, quoted = "+++\ntitle = 'a \\ b'\n+++\n", '+++\ntitle = "A \\\\ B"\n+++\n'
    assert translated(source, "a.md")[0] == quoted


@pytest.mark.parametrize("source", LEFT)
def test_other_front_matter_is_left(source: str) -> None:
    """Also one that is not valid: no tool of its site reads it."""
    data, texts, report = translated(f"{source}\nx y\n", "a.md")
    assert (data, texts, report.left) == (f"{source}\nX Y\n", ["x y"], (REST,))


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_page_may_have_front_matter(start: str) -> None:
    """As those of Jekyll have; a line of hyphens elsewhere is text."""
    source = f"{start}---\nlayout: c d\ntitle: a\n---\nb <i title='e'>f</i>\n<p>g\n---\nh"
    data, texts, report = translated(source, "a.html")
    expected = source.replace(": a", ": A").replace("b <i title='e'>f", "B <i title='E'>F")
    assert data == expected.replace("g\n---\nh", "G --- H")
    assert sorted(texts) == ["a", "b f", "e", "g --- h"]
    assert report.left == (REST,)
    source = f"{start}+++\nlayout = 'c d'\ntitle = \"a\"\n+++\nb"
    assert translated(source, "a.html")[0] == source.replace('"a"', '"A"')[:-1] + "B"


def test_marks_in_front_matter_are_no_places_of_texts() -> None:
    """A page finds its texts again by signs that it does not have otherwise."""
    source = f"---\ntitle: {MARKS[0]}0{MARKS[0]}\n---\n<p title='a b'>c"
    assert translated(source, "a.html", WordTranslator())[0] == source
