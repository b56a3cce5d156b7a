"""Text formats: what is translated, and how a translation is written."""

import json

import pytest
import yaml
from tests.word_translator import WordTranslator, in_capitals, translated

from dragoman.documents import signs, subtitles
from dragoman.text.marked import Tag, merged

HTML = [
    "<p>«One»<br>«two»<p>«three»",
    "<ul><li>«a» <li>«b»</ul>",
    "<p> <b> «in» </b> </p>",
    "<p><i></i> «a» <b><i></i><img></b> «b» <code></code> «c»",
    "<p>«see» <code>ls</code> «now»",
    "<p>«by» <i translate=no>Ann Lee</i>",
    "<div class='a notranslate'>x<div>y</div></div>«z»",
    "<pre>a b</pre><textarea>c d</textarea><svg><text>e</text></svg>",
    "<script>'<p>a</p>'</script><style>a b</style><!-- <p>c</p> -->",
    "<img alt='«it is»' title=\"«a b»\">",
    "<textarea placeholder='«a b»'>c d</textarea>",
    "<p>«a» <iframe title='«b»' srcdoc='<p>c'></iframe>",
    "<meta name=description content='«a b»'>",
    "<meta property='og:image:alt' content='«a b»'>",
    "<input type=submit value='«go on»'>",
    "<input value='a b'><input type=hidden value='a b'>",
    "<optgroup label='«a b»'>",
    "«a» <b>«c» <i>«d»</b> «e»</i> «f»",
]
NOT_TRANSLATED = [
    "<ul><li class=notranslate>a b<li>«c»</ul>«d»",
    "<ul><li translate=no>a b</ul><p>«c»",
    "<li translate=no>a<ul><li>b<li>c</ul><li>«d»",
    "<tr><td translate=no>a<td>«b»<tr><td>«c»",
    "<tr translate=no><th>a<td>b<tr><td>«c»",
    "<div><p translate=no>a <b>b</div>«c»",
    "<p translate=no>a <x-y>b</x-y> c<h1>«d»",
    "<dt translate=no>a<dd>«b»<dt>«c»",
    "<select><option translate=no>a<option>«b»</select>",
    "<p data-x='a translate=no b'>«a b»</p>",
    "<p translate = 'No' id=a>a b</p>",
    "<p translate=yes translate=no>«a b»</p>",
]
OF_LANGUAGES = [
    "<p>«a» <i lang=fr title='b'>b c</i> «d»",
    "<ul><li lang='de-AT'>a b<li lang=en-GB>«c»</ul>«d»",
    "<body lang=de><p lang=''>«a»<p lang='{{ x }}'>«b»<p lang=und>«c»<p data-lang=de>«d»",
    '<meta name="generator" content="LibreOffice 24.2"/><p lang=de>«a»',
    "<meta content='Microsoft Word 15' name=Generator><p lang=de>«a»",
]
"""What declares another language than that of the page is left, unless an office program did."""
NOT_TRANSLATED += OF_LANGUAGES
"""What is not to be translated ends at the next of its kind, or at the end of what is around it, if
it has no close tag."""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        *map(in_capitals, [*HTML, *NOT_TRANSLATED]),
        ("<p>x\n   <b>y\n z</b></p>", "<p>X <b>Y Z</b></p>"),
        ("<p>a %<b>(nam)s</b> c</p>", "<p>A <b>%(NAM)S</b> C</p>"),
        ("<title>a <b></title>", "<title>A &lt;B&gt;</title>"),
        ("<p>a <img alt='b c'> d<p>e<wbr>f", "<p>A <img alt='B C'> D<p>EF<wbr>"),
        ("<a title='&lt;it&#39;s&gt; x'>y</a>", "<a title='&lt;IT&#39;S&gt; X'>Y</a>"),
        ("<a title='&lt_ x &ltb'>y</a>", "<a title='&lt;_ X &amp;LTB'>Y</a>"),
        ("<img alt=a&amp;b id=c><img title=d>", '<img alt="A&amp;B" id=c><img title="D">'),
        ("if a < b and c > d", "IF A &lt; B AND C &gt; D"),
    ],
)
def test_html(source: str, expected: str) -> None:
    """Text and what is shown of attributes; entities are decoded, tags are as they were."""
    assert translated(source, "a.html")[0] == expected


def test_data_for_search_engines_is_told() -> None:
    """They show it to readers; nobody sees other scripts."""
    data = '{"description": "a b"}</script>'
    source = f"<script type='application/ld+json'>{data}<script>c d</script>"
    made, _, report = translated(source, "a.html")
    assert (made, report.left) == (source, ("<script>, data for search engines: line 1",))


def test_what_is_in_another_language_is_told() -> None:
    """If that of the page is known; a chapter of a book declares it as XML does."""
    source = "<p xml:lang='fr'>a b</p><p lang='nb'>c</p>"
    made, _, report = translated(source, "a.xhtml", languages=("no", "en"))
    assert (made, report.left) == (
        source.replace("c<", "C<"),
        ("<p>, in another language: line 1",),
    )
    assert translated(source, "a.xhtml", languages=(None, "en"))[0] == source.replace(
        "a b", "A B"
    ).replace("c<", "C<")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# a *b* #\n\nc\nd\n===\n", "# A *B* #\n\nC D\n===\n"),
        ("> a\n> b\n", "> A B\n"),
        ("a  \n  b\\\nc\n", "A  \n  B\\\nC\n"),
        ("[a b](u 't') [c] `d e` <http://x> $y$\n\n[c]: /u\n", None),
        ("![a b](u) __c__ ~~d~~ <b>e</b>\n", "![A B](u) **C** ~~D~~ <b>E</b>\n"),
        ("a[^1]\n\n[^1]: note\n", "A[^1]\n\n[^1]: NOTE\n"),
        ("| a b | `c` |\n|---|---|\n| d\\|e | f |\n", "| A B | `c` |\n|---|---|\n| D\\|E | F |\n"),
        ("- [ ] a\n  1. b\n\n```\nc\n```\n", "- [ ] A\n  1. B\n\n```\nc\n```\n"),
        ("---\na: b\n---\n<!-- c -->\n\n    d\n", None),
        (
            "<h1 id=a> b &amp; <i>c\nd</i></h1>\ne\n\nf\n",
            "<h1 id=a> B &amp; <i>C D</i></h1>\nE\n\nF\n",
        ),
        ("- <p>a\n  b</p>\n\n1. <p>c</p>\n", "- <p>A B</p>\n\n1. <p>C</p>\n"),
        ("> <p>a\n> b</p>\n\n<Tab>\nc\n</Tab>\n\n<p markdown>\nd\n</p>\n\n<b>\ne\n</b>\n", None),
        ("a \\_\\_b\\_\\_ c\n", "A \\_\\_B\\_\\_ C\n"),
        ("# a {#b\\}\n", "# A {#B\\}\n"),
        ("a\n:   b\n    c\n\n    d\n\ne\n\n: f\n: g\n", "A\n:   B C\n\n    D\n\nE\n\n: F\n: G\n"),
        ("a\nb\n: c\n\nd\n:ee:\n\n:ff: g\n", "A\nB\n: C\n\nD :ee:\n\n:ff: G\n"),
        ("a\n\n\\: b\n", "A\n\n\\: B\n"),
        ("|a|\n|-|\n\n: b\n", "|A|\n|-|\n\n: B\n"),
        ("a|b\n:--|--:\nc|d\n", "A|B\n:--|--:\nC|D\n"),
        ("> a|b\r\n> :-: | :-:\r\n> c|d\r\n", "> A|B\r\n> :-: | :-:\r\n> C|D\r\n"),
        (':**"a" b** c \x1a\n\n:*(d)* e\n', '\\:**"A" B** C \x1a\n\n\\:*(D)* E\n'),
        ("a\n:-\nb\n", "A\n:-\nB\n"),
        ("a b\n:--|\nc\r\n  :-: \r\n> d\n> :-|\n", "A B\n:--|\nC\r\n  :-: \r\n> D\n> :-|\n"),
        ("|a|\r\n:-|\r\n|b|\r\n|c|\r\n", "|A|\r\n:-|\r\n|B|\r\n|C|\r\n"),
        ("a :-|\n:-| b\n", "A :-\\| :-\\| B\n"),
        (":a b: \ufe13 \ufe55\n", ":A B: \ufe13 \ufe55\n"),
        ("a\n:bc: d; e\n", "A :bc: D; E\n"),
        ("a&#10;&#35; b&#9;c &#32;&#10;d\n", "A&#10;# B&#9;C&#32;&#10; D\n"),
        ("&#32;&#32;&#32;&#32;a b\n", "&#32;&#32;&#32;&#32;A B\n"),
        ("a \\*b\\* & c_d_e 2 * 3\n", "A \\*B\\* & C_D_E 2 * 3\n"),
        ("a <kbd>b</kbd> <i translate=no>c</i> d\n", "A <kbd>b</kbd> <i translate=no>c</i> D\n"),
        ("a <img alt='b &amp;c' id=d> e\n", "A <img alt='B &amp;C' id=d> E\n"),
        ("|a|\n|-|\n|<b title='c'>d</b>|\n", "|A|\n|-|\n|<b title='C'>D</b>|\n"),
        ('a [b](c){.d #e}: f{:g="h_i"}\n', 'A [B](c){.d #e}: F{:g="h_i"}\n'),
        ("a https://b.c/d_(e) f_\n", "A https://b.c/d_(e) F\\_\n"),
        ('a\n\n[b]: /c "d \\"e\\" &amp; f"\n', 'A\n\n[b]: /c "D \\"E\\" \\& F"\n'),
        ("> a\n\n> [b]: <c d>\n>   (e f)\n\ng\n", "> A\n\n> [b]: <c d>\n>   (E F)\n\nG\n"),
        ("```\n[a]: b 'c d'\n```\n\ne\n", "```\n[a]: b 'c d'\n```\n\nE\n"),
        ("a\n[b]: c 'd'\n", "A \\[B\\]: C 'D'\n"),
    ],
)
def test_markdown(source: str, expected: str | None) -> None:
    """Paragraphs and what is in them; a link that is found by its text keeps its name."""
    if expected is None:
        expected = source.replace("[a b]", "[A B]").replace(" [c]", " [C][c]").replace("'t'", "'T'")
    assert translated(source, "a.md")[0] == expected


def test_a_translation_that_markdown_would_misread_is_left_out() -> None:
    """Its letters would be others: the signs of emphasis that began before a tag of HTML."""
    made, _, report = translated("**a<string>**, d e\n", "a.md")
    assert made == "**A<string>**, d e\n"
    misread = ("Markdown would read its translation as markup",)
    assert [each.what for each in report.untranslated] == [misread]
    made, _, report = translated("a**b c<script>d**e f\n", "a.md")
    assert made == "a**b c<script>d**e f\n"
    assert [each.what for each in report.untranslated] == [misread, misread]
    _, _, report = translated("*a^[b* c] d\n", "a.md")  # or before a note
    assert [each.what for each in report.untranslated] == [misread]


def test_titles_of_links() -> None:
    """They go with their links; signs in them have a backslash."""
    source = 'a [b](<u "v"> "the \\"title\\"") c\n\n![](x.png (a\nb))![d.png]( /u\n\'e &lt; f\' )\n'
    translator = WordTranslator(lambda word: f"{word}'")
    made, texts, _ = translated(source, "a.md", translator)
    assert texts == ["a b c", 'the "title"', "e < f"]
    first, last = made.split("\n\n")
    assert first == """a' [b'](<u "v"> "the' \\"'title'\\"'") c'"""
    assert last == "![](x.png (a\nb))![d.png]( /u\n'e\\' \\<\\' f\\'' )\n"


@pytest.mark.parametrize("text", ["1. x", "# x", "- x", "+", "> x", "* * *", "12) x", "---"])
def test_text_does_not_become_markdown(text: str) -> None:
    """What would be a heading or an item at the beginning of a line."""
    data, _, _ = translated("word\n", "a.md", WordTranslator(lambda _: text))
    again = translated(data, "a.md")[1]
    assert again in ([text], []), data
    assert data.replace("\\", "") == f"{text}\n"


def test_emphasis_without_spaces() -> None:
    """In Chinese: beside a sign it is written as HTML, where it would be read as text."""
    bold = Tag("**", "open"), Tag("**", "close")
    for inner, written in (
        ("重要", "注意**重要**请"),
        ("重要：", "注意<strong>重要：</strong>请"),
        ("", "注意请"),
    ):
        marked = merged(["注意", bold[0], inner, bold[1], "请"])
        assert signs.written(marked) == written
    marked = merged([*bold[:1], "a", bold[1], *bold[:1], "b", bold[1]])
    assert signs.written(marked) == "**a**<strong>b</strong>"


CUES, CUES_IN_CAPITALS = in_capitals("""1
00:00:01,000 --> 00:00:03,000
«We» <i>«think»</i>
«of a»

2
00:00:03,000 --> 00:00:05,000 X1:1
«house».

3
00:00:06,000 --> 00:00:07,000
- «Who»?
- «Me
too».
""")


def test_a_sentence_runs_over_cues() -> None:
    """It is translated as one; two who speak are two."""
    data, lines, _ = translated(CUES, "a.srt")
    assert lines == ["We think of a house.", "Who?", "Me too."]
    assert data == CUES_IN_CAPITALS


def test_cues_are_read_in_their_times() -> None:
    """What would be too fast is shared by time, and long lines are broken."""
    data, _, _ = translated(CUES, "a.srt", WordTranslator(lambda w: w if w in "<i>." else w * 4))
    texts = [block.split("\n", 2)[2].rstrip() for block in data.split("\n\n")]
    assert texts[0] == "WeWeWeWe\n<i>thinkthinkthinkthink</i>"
    assert texts[1] == "ofofofof aaaa househousehousehouse."
    assert max(map(len, data.split("\n"))) <= subtitles.LONGEST + len("<i></i>")


def test_webvtt() -> None:
    """Headers, notes, styles and settings stay; text has entities."""
    source = (
        "WEBVTT x\n\nNOTE a\nb\n\nSTYLE\n::cue { c: d }\n\nid\n01:00.000 --> 01:02.000 align:end\n"
    )
    data, lines, _ = translated(f"{source}<v Ann>a &amp; b\n", "a.vtt")
    assert data == f"{source}<v Ann>A &amp; B\n"
    assert lines == ["a & b"]


def test_json() -> None:
    """Values only, line by line; escapes stay as the file has them."""
    source = '{"a b": ["c d\\n\\te \\u00e4", 1, {"f": "g\\"h\\/"}], "u": "http://x"}'
    data, lines, report = translated(source, "a.json")
    assert data == '{"a b": ["C D\\n\\tE \\u00c4", 1, {"f": "G\\"H\\/"}], "u": "http://x"}'
    assert lines == ["c d", "e ä", 'g"h/']
    assert [remark.where for remark in report.untranslated] == ['line 1, "u"']
    slashes = '["<b>a</b> c", "d\\/e f", "<i>g<\\/i> h", "x"]'
    translator = WordTranslator(lambda word: {"x": "y/"}.get(word, word.upper()))
    expected = '["<b>A</b> C", "D\\/E F", "<i>G<\\/i> H", "y\\/"]'
    assert translated(slashes, "a.json", translator)[0] == expected
    assert translated('["hello {name}, you"]', "a.json")[1] == ["hello {name}, you"]
    assert translated('{"a": "ä"}\n{"a": "b"}\n', "a.jsonl")[0] == '{"a": "Ä"}\n{"a": "B"}\n'


def test_names_of_programs_are_left() -> None:
    """Of keys, kinds of data and languages, and addresses; not what only looks so."""
    names = ["app.title", "user.name", "errors.required", "form-a.isNew", "en-US", "zh-Hant-TW"]
    names += ["text/html", "image/*", "video/mp4", "image/svg+xml", "application/x.y+json"]
    names += ["https://b.c/d", "https://b.c/文档", "https://b.c/w/Übung_(e)"]
    names += ["isNew", "iPhone", "HH:mm", "dd.MM.yyyy", "MM/DD/YYYY"]
    words = [
        "IsNew",
        "d.h.",
        "https://b.c/d请",
        "请 a",
        "audio/video",
        "text/image",
        "he/she",
        "z.B.",
        "a.m",
        "Yes.No",
        "to-Do",
        "my-Page",
        "eMail",
        "m/s",
        "d.h",
    ]
    made, lines, report = translated(json.dumps([*names, *words]), "a.json")
    assert lines == words
    assert json.loads(made)[: len(names)] == names
    assert {each.what for each in report.untranslated} == {("it looks like an address or a name",)}


@pytest.mark.parametrize(
    "string",
    [r"b \ud83d", r"<i>b</i> <\ud83d/>", r"<p>b</p><\ude00>", r"{n, plural, other {b <\ud83d/>}}"],
)
def test_half_a_character_stays_in_its_string(string: str) -> None:
    """In a tag too, and in a file with letters that are written as they are."""
    data, lines, report = translated(f'["{string}", "ä"]', "a.json")
    assert data == f'["{string}", "Ä"]'
    assert lines == ["ä"]
    assert [remark.what for remark in report.untranslated] == [("it has half of a character",)]


YAML = """# c
a: «one two» # c
b: &x '«it''s»'
c: "«d»\\t«e»"
d: |
  «line one»

  «line two»
e: >-
  «folded
  text»

  «more»
f: [«g h», 12, yes, !t x]
g: 2020-01-01
"""


def test_yaml() -> None:
    """Strings that are values, in their style; the others stay."""
    source, expected = in_capitals(YAML)
    data, lines, _ = translated(source, "a.yaml")
    assert lines == [
        *("one two", "it's", "d\te", "line one", "line two", "folded text", "more", "g h")
    ]
    assert data == expected


FULL = "This line is about as full as it can be and"
BLOCKS = f"""a: >\r
  {FULL}\r
  goes on.\r
\r
  More\r
    deeper\r
b: |2
  1 {FULL}
  goes on with more words than one line can hold,
  and ends.\x20

  2 {FULL}
  let x = 1

  3 {FULL}
   deepest
  short lines
  of a poem

  4 {FULL}
  Apples

  5 {FULL}
  has lines after it
  that had room.
"""


def test_a_block_of_yaml_is_read_by_paragraphs() -> None:
    """Lines that stay are one where all are full prose, and the next begins with a small letter."""
    data, lines, _ = translated(BLOCKS, "a.yaml")
    folded = [f"{FULL} goes on.", "More", "deeper"]
    prose = [f"1 {FULL} goes on with more words than one line can hold, and ends."]
    code, poem = [f"2 {FULL}", "let x = 1"], [f"3 {FULL}", "deepest", "short lines", "of a poem"]
    short = [f"4 {FULL}", "Apples", f"5 {FULL}", "has lines after it", "that had room."]
    assert lines == [*folded, *prose, *code, *poem, *short]
    assert data == BLOCKS.upper().replace("A:", "a:").replace("B:", "b:")


@pytest.mark.parametrize("word", ["x", "a much longer word", "---", "y" * 60])
def test_folded_lines_are_about_as_long_in_the_translation(word: str) -> None:
    """Whatever the words, the value is the translation."""
    data, _, _ = translated(BLOCKS, "a.yaml", WordTranslator(lambda _: word))
    expected = " ".join([word] * (len(FULL.split()) + 2)) + word
    assert yaml.safe_load(data)["a"] == f"{expected}\n{word}\n  {word}\n"
    lines = data[: data.index("b:")].splitlines()[1:]
    assert max(map(len, lines)) <= 2 + max(len(FULL), 2 * len(word))


@pytest.mark.parametrize(
    ("word", "written"),
    [("no", '"no"'), ("a: b", '"a: b"'), ("12", '"12"'), ("- a", '"- a"'), ("a b", "a b")],
)
def test_a_plain_string_stays_one(word: str, written: str) -> None:
    """It is quoted where it would be read as something else."""
    assert translated("a: x\n", "a.yaml", WordTranslator(lambda _: word))[0] == f"a: {written}\n"
