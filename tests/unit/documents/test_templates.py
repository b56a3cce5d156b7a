"""Code of templates, JSX and formulas in text: it is restored letter for letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.word_translator import WordTranslator, backwards, in_capitals, translated

from dragoman.text.marked import merged, verbatim
from dragoman.text.putback import put_back

MARKDOWN = [
    ("a. {% if x %}B c.{% endif %}", "A. {% if x %}B C.{% endif %}", ["a. B c."]),
    ("a {{ b | c }} {{ $d }} ${e|f}", "A {{ b | c }} {{ $d }} ${e|f}", None),
    ("a {{ b_c_d * e * [f](g) }} h", "A {{ b_c_d * e * [f](g) }} H", None),
    ("a \\{{ b }} \\* {{ c|d }}", "A \\{{ B }} * {{ c|d }}", ["a {{ b }} * {{ c|d }}"]),
    ("`{{` a `}}` {{ b\n| c }} d", "`{{` A `}}` {{ b | c }} D", ["`{{` a `}}` {{ b | c }} d"]),
    ("```\n{{\n```\n\na }}", "```\n{{\n```\n\nA }}", ["a }}"]),
    ("a {--b--}\n\n# c {d\\}", "A {--B--}\n\n# C {D\\}", ["a {--b--}", "c {d}"]),
    ("|a|\n|-|\n|{{ b \\| c }} d|", "|A|\n|-|\n|{{ b \\| c }} D|", ["a", "{{ b \\| c }} d"]),
    ("[a](b '{{ c|d }} e')", "[A](b '{{ c|d }} E')", ["a", "{{ c|d }} e"]),
    ("a {{< b >}}c{{< /b >}} d {{< e >}}", "A {{< b >}}C{{< /b >}} D {{< e >}}",
     ["a c d {{< e >}}"]),
    ("a {# b\nc #} d {/* e */} {{!-- f --}}", "A {# b\nc #} D {/* e */} {{!-- f --}}", ["a d"]),
    ("{% a %} b {% c %} d {% else %} e", "{% a %} B {% c %} D {% else %} E", ["b {% c %} d e"]),
    ("dog{% if a %}s{% endif %}", "DOG{% if a %}S{% endif %}", ["dog{% if a %}s"]),
    ("a <kbd>{{ b }} c*d</kbd> e", "A <kbd>{{ b }} c*d</kbd> E", ["a {{ b }} c*d e"]),
    ("> a {{ b\n> c }} d", "> A {{ b c }} D", ["a {{ b c }} d"]),
    ("- a {{ b\n- c }} d", "- A \\{{ B\n- C }} D", ["a {{ b", "c }} d"]),
]  # fmt: skip
MYST = [
    (":::{a}\n:b-c: d\n:e:\nf g\n:::", ":::{a}\n:b-c: d\n:e:\nF G\n:::", ["f g"]),
    (":::a\n:b: c\n:::", ":::a\n:B: C\n:::", [":b: c"]),
    ("a {b:c}`d <e>` f ``{g}`h` ``", "A {b:c}`d <e>` F ``{g}`h` ``", None),
    ("a b\n\n$$\nc\n$$ (d)\n\n$$e$$ (f-g)", "A B\n\n$$\nc\n$$ (d)\n\n$$e$$ (f-g)", ["a b"]),
    ("a\n\n% b c\n% d\ne\n\n50\n% f", "A\n\n% b c\n% d\nE\n\n50 % F", ["a", "e", "50 % f"]),
    ("% a b\n\nc", "% A B\n\nC", ["% a b", "c"]),  # a title of Pandoc
]
FORMULAS = [
    ("a \\(b^2\\) \\(n\\) \\[\\alpha\\] c", "A \\(b^2\\) \\(n\\) \\[\\alpha\\] C", None),
    ("\\[\na = b\n\\]\n\nc\n\\[d_1\\]", "\\[\na = b\n\\]\n\nC \\[d_1\\]", ["c \\[d_1\\]"]),
    ("dog\\(s\\) \\[1\\] \\[x\\]", "DOG(S) \\[1\\] \\[X\\]", ["dog(s) [1] [x]"]),
    ("a \\(see below\\) \\(if b = c then dogs run\\)", "A (SEE BELOW) (IF B = C THEN DOGS RUN)",
     ["a (see below) (if b = c then dogs run)"]),
    ("a \\\\(b^2\\\\)", "A \\\\(B^2\\\\)", ["a \\(b^2\\)"]),
    ("a [b=5] \\[c=d\\]", "A \\[B=5\\] \\[c=d\\]", None),
]  # fmt: skip
TAGS = [
    ('a <C d={e("f")}>g h</C> i', 'A <C d={e("f")}>G H</C> I', ["a", "g h", "i"]),
    ('<C @d="e">f g.</C>', '<C @d="e">F G.</C>', ["f g."]),
    ("a <b :c='d' @e='f > g'>h</b> i", "A <b :c='d' @e='f > g'>H</b> I", ["a h i"]),
    ("a <b c={() => d} title='e'>f</b>", "A <b c={() => d} title='e'>F</b>", ["a f"]),
    ("a <B.C>d</B.C>", "A <B.C>D</B.C>", ["a", "d"]),
    ("a <b.c> d<B.C> e", "A \\<B.C> D\\<B.C> E", ["a <b.c> d<B.C> e"]),
]
OBSIDIAN = [
    (
        "- [/] a\n- [-] b\n- [?] c [-] d",
        "- [/] A\n- [-] B\n- [?] C \\[-\\] D",
        ["a", "b", "c [-] d"],
    ),
    ("a #b #c/d_e #1 f#g", "A #b #c/d_e #1 F#G", None),
    ("#A b #狗 c", "#A B #狗 C", ["#A b #狗 c"]),  # which others read as a heading
    ("<<< @/a.js{2}\n\n@import 'b c'\n\nd", "<<< @/a.js{2}\n\n@import 'b c'\n\nD", ["d"]),
    ("---\na: 1\n---\nimport B from 'b'\n\nd", "---\na: 1\n---\nimport B from 'b'\n\nD", ["d"]),
    ("+++\na = 1\n+++\nimport B from 'b'\n\nd", "+++\na = 1\n+++\nimport B from 'b'\n\nD", ["d"]),
]


@pytest.mark.parametrize(
    ("source", "expected", "lines"), [*MARKDOWN, *MYST, *FORMULAS, *TAGS, *OBSIDIAN]
)
def test_code_in_markdown(source: str, expected: str, lines: list[str] | None) -> None:
    """What is printed is a word that is copied; statements and comments are tags."""
    made, read, report = translated(source, "a.md")
    assert (made, read) == (expected, lines or [source])
    assert report.untranslated == ()


MDX = """---
a: b
---

import A from "b c";

export const a = {
  b: "c d",
};

# «a b» {#c}

{/* a b */}

«a» {b ? "c" : {d: 1}} \\{ «e» \\< 3 [«b»](./c.md) <>«d»</>

<A
  b={() => "c d"}
>

«a» <B.C d={"e f"}>«g»</B.C>

</A>
"""


def test_mdx() -> None:
    """It is Markdown, in which braces are code, and those of a text have a backslash."""
    source, expected = in_capitals(MDX)
    assert translated(source, "a.mdx", WordTranslator())[0] == source
    made, lines, _ = translated(source, "a.mdx")
    assert made == expected
    assert lines == ["a b", 'a {b ? "c" : {d: 1}} { e < 3 b d', "a", "g"]
    braces = WordTranslator(lambda _: "{<")
    assert translated("a\n", "a.mdx", braces)[0] == "\\{\\<\n"


HTML = [
    "{% extends 'a b' %}\n{% load c %}\n\n{% block d %}\n   «e» <b>«f»</b>\n{% endblock %}\n",
    "<p>«a»</p>{% if b %}<p>«c»</p>{% endif %}\n<a href='{% url b %}'>«d»</a> {% endwith %}\n",
    "<p>«a»</p>\n{# b c #}\n{#- b\nc -#}<p>{{!-- b --}}«d» {/* e */} «f»</p>\n",
    "<p>{{ a && b }} «c» <%= d < e %> «f» {{> g }} «h»",
    "<p>«a» {% if b > c %}«d»{% else %}«e»{% endif %} «f»",
    "<title>{% block a %}«b» &lt; «c»{% endblock %}</title>",
    "<img alt='«a» {{ b && \"c\" }}'>",
    "<p>«a» {{if .b}}«c»{{else}}«d»{{end}}",
    "<p>«from» {{ start }} «to» {{ end }}",
    "<ul>\n  {{#each a}}\n  <li>«b»\n  {{/each}}\n</ul>",
    "<p>«a»\n{% comment %} b <p>c {% endcomment %}\n«d»",
    "<p>«a» <code>{{</code> «b» <code>}}</code> «c» <kbd>${</kbd> «d» <kbd>}</kbd>",
    "<p>«a» {{ «b»</p>\n<p>«c» }} «d»</p>",
]


def test_code_in_a_page_in_a_string() -> None:
    """It has the escapes of the string, and none of HTML."""
    source = r'["<p>a {{ b && \"c\" }} d</p>\n{% e %}<p>f</p>"]'
    made, lines, _ = translated(source, "a.json")
    assert made == source.replace("a {{", "A {{").replace(" d<", " D<").replace("f<", "F<")
    assert lines == ['a {{ b && "c" }} d', "f"]


@pytest.mark.parametrize("source", HTML)
def test_code_in_html(source: str) -> None:
    """A statement at an edge of a sentence, or alone in its line, is no part of it."""
    source, expected = in_capitals(source)
    made, lines, report = translated(source, "a.html")
    assert (made, report.untranslated) == (expected, ())
    assert not any("{%" in line or "{#" in line for line in lines)


def test_a_statement_that_begins_a_line_of_a_sentence() -> None:
    """It is in the sentence; one that has the line for itself ends the text before it."""
    assert translated("a\n{% if b %}c{% endif %} d", "a.html")[1] == ["a c d"]
    assert translated("a\n{% if b %}\nc\n{% endif %} d", "a.html")[1] == ["a", "c d"]


CODE = [
    *(
        "{{ a|b }}",
        "{{ a_b }}",
        "{% if a %}",
        "{% endif %}",
        "{% else %}",
        "{% a 'b' %}",
        "{# a #}",
    ),
    *("{{< a >}}", "{{< /a >}}", "{{#if a}}", "{{/if}}", "<%= a %>", "${a|b}", "{{{ a }}}"),
]
texts = st.lists(
    st.sampled_from([*CODE, "dog", " ", "*dog*", "two dogs. ", "狗", "\n"]), max_size=12
)


@given(pieces=texts, name=st.sampled_from(["a.md", "a.html", "a.mdx"]))
def test_code_is_neither_changed_nor_lost(pieces: list[str], name: str) -> None:
    """Wherever it stands, and in whatever order the words come."""
    source = "".join(pieces)
    assert translated(source, name, WordTranslator())[0] == source
    for order in (list, backwards):
        made = translated(source, name, WordTranslator(str.upper, order))[0]
        assert {code: made.count(code) for code in CODE} == {
            code: source.count(code) for code in CODE
        }


def test_a_word_between_two_copies_is_none_of_them() -> None:
    """Though a model, or a memory, links it to one."""
    source = merged(["see ", *verbatim("{{a}}"), "dogs", *verbatim("{{b}}"), " now"])
    text = "siehe {{a}}Hunde{{b}} nun"
    links = [(4, 9, 6, 11), (4, 9, 11, 16), (13, 18, 16, 21)]
    assert put_back(source, text, links).text == text
