"""Markdown: what is read as a sentence, and what is left out of it."""

import pytest
from tests.word_translator import WordTranslator, in_capitals, translated

BREAKS = [
    ("a<br>b\n", "A<br>B\n", ["a b"]),
    ("a *b<br/>c* <wbr>d\n", "A *B<br/>C* <wbr>D\n", ["a b c d"]),
    ("|a|\n|-|\n|b<BR>c<br>d|\n", "|A|\n|-|\n|B<BR>C<br>D|\n", ["a", "b c d"]),
]
"""A line break of HTML is a space, as in a page; `<wbr>` is none."""
PICTURES = [
    ("![a b](u) c d.\n", "![A B](u) C D.\n", ["c d.", "a b"]),
    ("c![a *b*](u 't') d\n", "C![A *B*](u 'T') D\n", ["c d", "a b", "t"]),
    ("[![a](u)](v) ![](w) ![`x`](y)\n", "[![A](u)](v) ![](w) ![`x`](y)\n", ["a"]),
    ("> c ![a\n> b](u)\n", "> C ![A B](u)\n", ["c", "a b"]),
    ("|c|\n|-|\n|![a\\|b](u) d|\n", "|C|\n|-|\n|![A\\|B](u) D|\n", ["c", "d", "a|b"]),
    ("![a][b]\n\n[b]: /u 't'\n\n![d](u)\n", "![A][b]\n\n[b]: /u 'T'\n\n![D](u)\n",
     ["a", "t", "d"]),
    ("![a ![b](u 't') [c](u 't') <i title='t'>d</i>](v) e\n",
     "![A ![B](u 't') [C](u 't') <i title='t'>D</i>](v) E\n", ["e", "a b c d"]),
    ("![a <div> b](u) c\n", "![A <div> B](u) C\n", ["c", "a b"]),
    ("[![a](u)](v) [![a](u)](v) b c\n", "[![A](u)](v) [![A](u)](v) B C\n", ["b c", "a"]),
    ("# a [![b](u)][v w] c\n\n[v w]: x\n", "# A [![B](u)][v w] C\n\n[v w]: x\n",
     ["a c", "b"]),
    ("***![a](u)*** b [](v) c\n", "***![A](u)*** B [](v) C\n", ["b c", "a"]),
]  # fmt: skip
"""The picture is a tag of the sentence; what is in its text has no texts of its own."""
OF_OTHER_TOOLS = [
    ("a b [@c_d, p. 3].", "A B [@c_d, p. 3].", ["a b."]),
    ("a [see also @b; -@c] d [-@e]", "A [see also @b; -@c] D [-@e]", ["a d"]),
    ("@b_c [p. 3] says @fig-d.", "@b_c [p. 3] SAYS @fig-d.", ["@b_c [p. 3] says @fig-d."]),
    ("a ![[b.png|9]] [[c d]] [[e#f|g h]]", "A ![[b.png|9]] [[c d]] [[e#f|G H]]",
     ["a [[c d]] g h"]),
    ("a %%b%% c ^d-1", "A %%b%% C ^d-1", ["a c"]),
    ("H~2~O is 10^-3^ ~so~", "H~2~O IS 10^-3^ ~SO~", ["H~2~O is 10^-3^ so"]),
    ("a ==b *c*== d：==e==", "A ==B *C*== D：==E==", ["a b c d：e"]),
    ("a [b *c* [d]]{.e} f", "A [B *C* \\[D\\]]{.e} F", ["a b c [d] f"]),
    ("[a](b){.c} `d`{.e} ![f](g){h=9} i", "[A](b){.c} `d`{.e} ![F](g){h=9} I",
     ["a `d` i", "f"]),
    ("`<a>`{=html} b {{< c d >}} e", "`<a>`{=html} B {{< c d >}} E",
     ["`<a>` b {{< c d >}} e"]),
    ("a b.^[C *d* [e](f).] g", "A B.^[C *D* [E](f).] G", ["a b. g", "C d e."]),
    ("a^[![c](d)b] e", "A^[![C](d)B] E", ["a b e", "c"]),
    ("![a^[b]](c)", "![A^[B]](c)", ["a b"]),
    ("a [b](c){.d} :e-f: g :h:i", "A [B](c){.d} :e-f: G :H:I", ["a b g :h:i"]),
]  # fmt: skip
"""Citations, references, links of a wiki, notes and attributes stay as they are written."""


@pytest.mark.parametrize(("source", "expected", "lines"), [*BREAKS, *PICTURES, *OF_OTHER_TOOLS])
def test_what_is_a_sentence(source: str, expected: str, lines: list[str]) -> None:
    """Each is a text without what is no part of it, and what is not translated stays."""
    assert translated(source, "a.md")[:2] == (expected, lines)


NOTES = [
    '!!! note "«a»"\n    «b c»\n\n    «d»\n\n«e»\n',
    '??? tip inline "«a, b»"\n\n    !!! tip "«c»"\r\n        «d»\n',
    '=== "«a b»"\n\n    «c d»\n',
    "> [!info]- «a b»\n> «c»\n\n> [!NOTE]\n> «d»\n",
    ":::tip[«a b»]\n\n«c»\n",
    "::: Warning «a b»\n«c» ![«d»](e '«f»')\n",
    "«a»\n\n*[B]: «c d»\n[e]: f '«g»'\n*[H]: «i»\n",
]
OF_NO_NOTE = [
    '!!! note "a `b`"\n    «c»\n',
    ":::{note} a\n«b»\n",
    "::: {.note} a\n\n«b»\n",
    "::: note\n«b»\n",
    ":::code-group a\n«b»\n",
    '```\n!!! note "a"\n::: tip b\n```\n',
]


@pytest.mark.parametrize("marked", [*NOTES, *OF_NO_NOTE])
def test_titles_of_notes_and_tabs_are_translated(marked: str) -> None:
    """If they have no markup, and are not code; other lines of tools are told."""
    source, expected = in_capitals(marked)
    made, _, report = translated(source, "a.md")
    told = any("directives of other tools" in each for each in report.left)
    assert (made, told) == (expected, marked in OF_NO_NOTE[:-1])


def test_a_title_that_would_end_early_is_not_written() -> None:
    """The parser of the note's tool knows no escapes."""
    quote = WordTranslator(lambda word: f'{word}"')
    made, _, report = translated('!!! note "a"\n', "a.md", quote)
    assert made == '!!! note "a"\n'
    assert "read its translation as markup" in report.untranslated[0].what[0]


@pytest.mark.parametrize("written", ["![a b]", "![a b][]"])
def test_a_picture_that_is_found_by_its_text_keeps_its_name(written: str) -> None:
    """As a link does; one whose text does not change stays as it is."""
    source = f"{written} c\n\n[a b]: /u\n"
    assert translated(source, "a.md")[0] == "![A B][a b] C\n\n[a b]: /u\n"
    same = WordTranslator(lambda word: word.replace("c", "C"))
    assert translated(source, "a.md", same)[0] == f"{written} C\n\n[a b]: /u\n"


def test_signs_in_the_text_of_a_picture_end_nothing() -> None:
    """They have a backslash; damaged bytes are left and told."""
    signs = WordTranslator(lambda _: "1. x](y) ![`")
    assert translated("![a](u)\n", "a.md", signs)[0] == "![1\\. x\\](y) !\\[\\`](u)\n"
    source = b"a ![b \xff c](u)\n\n\xc3\xa4\xc3\xa4\n"
    data, _, report = translated(source, "a.md")
    assert data == source.replace(b"\xa4", b"\x84")
    damage = ("it has bytes that are not UTF-8",)
    assert [(each.where, each.what) for each in report.untranslated] == [
        ("line 1", damage), ("line 1, alt text", damage),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "a [b @ c] d", "joe@x.org a", "a [[ b", "50%% and 60%% b", "if a == b", "x==1 and y==2",
        "~5 and ~6 a", "2^10 a ^ b", "a^2", "a [1] b", "a \\[[b]]", "a \\^[b]", "a [b] {c}",
    ],
)  # fmt: skip
def test_text_that_only_looks_so_is_read(text: str) -> None:
    """All of it."""
    assert translated(text, "a.md")[1] == [text.replace("\\", "")]


@pytest.mark.parametrize(
    "inner",
    [
        "[![a](b)](c) d", "a [b][c]", "a `b`", "~~~\na\n~~~", "$$a$$", "a **b**", "|a|\n|-|",
        "# a", "- a", "1. a", "[a]: b", "<b onClick={() => c}>a</b>",
    ],
)  # fmt: skip
def test_markdown_or_a_component_in_an_html_block_is_left(inner: str) -> None:
    """With its block, once."""
    source = f"a\n\n<p>\n{inner}\n</p>\n\nb\n"
    made, lines, report = translated(source, "a.md")
    assert made == f"A{source[1:-2]}B\n"
    assert (lines, report.left) == (["a", "b"], ("HTML: line 3",))


def test_places_in_an_html_block_are_lines_of_the_file() -> None:
    """Each is told once."""
    source = "a\n\n<div>\n<p>b_c</p>\n<svg>d</svg>\n</div>\n\n<pre>e</pre>\n"
    report = translated(source, "a.md")[2]
    assert [each.where for each in report.untranslated] == ["line 4"]
    assert [each.split(":")[-1] for each in report.left] == [" line 5", " line 8"]
