"""Malformed documents, and content that is left alone."""

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.word_translator import WordTranslator, backwards, in_capitals, translated

from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError

CUE = "00:00:01.000 --> 00:00:02.000\n"


SHEET = '<a xmlns:office="o" xmlns:table="u" xmlns:text="t"><table:table-cell'
VALUE, TEXT = ' office:string-value="a b"', "<text:p>a b</text:p>"
CELL = f"{SHEET}{VALUE}>{TEXT}<!--", "--></table:table-cell></a>"
RST = "#: a.rst:1\nmsgid "
PIECES_OF_RST = ("", ":"), ("", ":a"), ("", "a-"), ("`a", " ")
COMMENT = f"{SHEET}{VALUE}>{TEXT}</table:table-cell><!--", "--></a>"


@pytest.mark.parametrize(
    ("name", "start", "piece", "end"),
    [
        *(("a.html", "", piece, "x") for piece in ("<!DOCTYPE[>", "<!DOCTYPE a[", "<![CDATA[")),
        ("a.html", "", "<li translate=no>a b", "x"),
        *(("a.xhtml", "", piece, "x") for piece in ("<!DOCTYPE a[]", "<![CDATA[")),
        *(("a.md", "", piece, "x") for piece in ("!!! a\n", "{%", "import from ", "export {\n")),
        *(
            ("a.md", "", piece, "x")
            for piece in ("> ", "]({{", "[a]: {%", "\\(a=", "<a b={", "{a}`")
        ),
        ("a.md", "a", "\t\t\t\t", "[b](c)"),
        *(("a.html", "", piece, "x") for piece in ("{{", "{#", "\n {%", "<%=", "{% comment %}")),
        *(("a.srt", CUE + start, piece, "x") for start, piece in ("( ", "<a")),
        ("a.md", ":::note", " ", "*"),
        ("a.html", "<meta ", "generator ", ">"),
        *(("a.po", f'{RST}"{start}', piece, '"\nmsgstr ""') for start, piece in PIECES_OF_RST),
        ("a.fods", COMMENT[0], f"<table:table-cell{VALUE}>", COMMENT[1]),
        ("a.fods", f"{COMMENT[0]}<table:table-cell", VALUE, f"/>{COMMENT[1]}"),
        ("a.fods", CELL[0], "<office:annotation>", CELL[1]),
    ],
)
def test_what_does_not_end_is_read_in_linear_time(
    name: str, start: str, piece: str, end: str
) -> None:
    """If each sign were sought to the end of the file, it would take minutes."""
    begin = thread_time()
    translated(f"{start}{piece * 40_000}{end}\n", name)
    assert thread_time() - begin < 8


def test_xhtml_is_read_as_xml() -> None:
    """In the encoding of its declaration, with sections and elements that close themselves."""
    source = '<?xml version="1.0" encoding="iso-8859-1"?><p><a id="x"/>é <![CDATA[<b>c d]]> e</p>'
    expected = source.replace("é", "É").replace(" e<", " E<")
    assert translated(source.encode("latin-1"), "a.xhtml")[0] == expected.encode("latin-1")
    with pytest.raises(InputError, match="is not in the encoding that it declares"):
        read_document("<p>é</p>".encode("latin-1"), "a.xhtml")


@pytest.mark.parametrize(
    ("source", "name"),
    [("a,b\ncafé,ça va\n", "a.csv"), ('{"a": "ça va"}', "a.json"), ("<p>ça va</p>", "a.html")],
)
def test_undeclared_windows_1252(source: str, name: str) -> None:
    """What is not UTF-8 is written in one encoding too, or refused."""
    made = translated(source.encode("cp1252"), name)[0].decode("cp1252")
    assert "ÇA VA" in made
    assert made == translated(source, name)[0]
    with pytest.raises(InputError, match=rf"{name} line \d is not UTF-8: byte 0xe\d at position"):
        read_document(source.encode("cp1252") + b"\x81", name)


@pytest.mark.parametrize("source", ["{}", "<p>{}</p>", "1\n00:01,000 --> 00:02,000\n{}\n"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("我喜欢喝绿茶。", "gb18030"),
        ("차를 마신다.", "euc-kr"),
        ("Я люблю чай.", "cp1251"),
    ],
)
def test_another_encoding_is_refused(text: str, encoding: str, source: str) -> None:
    """With what each reads, as lines of text are, and the likeliest to convert it from."""
    data = source.format(text).encode(encoding)
    name = "a.srt" if "-->" in source else "a.html" if "<" in source else "a.md"
    with pytest.raises(InputError, match=rf"{name} line \d is not UTF-8.*: iconv -f (\S+)") as told:
        read_document(data, name)
    assert f"iconv -f {encoding.upper()} -t" in str(told.value)
    assert text[:9] in str(told.value)


@pytest.mark.parametrize(("encoding", "text"), [("cp1256", "أحب الشاي"), ("cp1255", "שלום עולם")])
def test_an_encoding_that_is_not_known_is_refused(encoding: str, text: str) -> None:
    """Words of letters that are all accented are none of Western Europe."""
    data = text.encode(encoding)
    with pytest.raises(InputError, match=r"a\.md line 1 is not UTF-8"):
        read_document(data, "a.md")


@pytest.mark.parametrize(
    "text",
    [
        "It’s “5 €”.",
        "25 °C ± 2, ½ cup",
        "Größe",
        "Vi har verktøy på øyene, og søen er blå.",
        "La première pièce, où est le siècle ? Sœur.",
        "Força la proporció perquè coincideixi.",
        "Il va à la plage où il a été.",
        "Það er það sem þú þarft.",
        "Hää, tää on työ.",
        "¿Qué? ¡Sí, señor!",
        "ÜBERSICHT\x1a",
        "“",
        "AÇÃO E REAÇÃO",
        "RÉÉLECTION",
        "Öö on külm, töötajad jäävad.",
        "¶ I love it ¶",
        "99¢, ¥100, 35‰, ¬x †",
        "Ü30-Party",
        "ä, ö, ü und ß",
        "La letra ñ.",
        "Nããão! Nooooóóóó!",
        "—" * 16,
        "•" * 10,
    ],
)
def test_texts_of_western_europe_are_read(text: str) -> None:
    """Whatever they have beyond ASCII, and written with the same bytes."""
    data = f"{text}\n".encode("cp1252")
    document = read_document(data, "a.txt")
    assert translate_document(document, WordTranslator(str))[0] == data


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.md", "---\nx: y z\n---\n# ä 好\n"),
        ("b.md", "# ä 好\n"),
        ("a.html", "ä 好<p>"),
        ("a.txt", "ä 好\n"),
        ("a.tsv", "x\nä 好\n"),
        ("a.yaml", "x: ä 好\n"),
        ("a.json", '["ä 好"]'),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nä 好\n"),
        ("a.po", 'msgid "ä 好"\nmsgstr ""\n'),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_byte_order_mark_stays_first(name: str, source: str, encoding: str) -> None:
    """It is no text, hides no sign at the beginning, and tells the encoding, which stays."""
    translator = WordTranslator(str.upper, backwards)
    made, lines, _ = translated(f"\ufeff{source}".encode(encoding), name, translator)
    assert lines == ["ä 好"]
    changed = source.replace("ä 好", "好 Ä") if name != "a.po" else source.replace('""', '"好 Ä"')
    assert made == f"\ufeff{changed}".encode(encoding)


@pytest.mark.parametrize(
    ("name", "source", "encoding"),
    [
        ("a.html", '<meta charset="iso-8859-1"><p>{}</p>', "latin-1"),
        ("a.html", "<p>{}</p>", "cp1252"),
        ("a.vtt", f"WEBVTT\n\n{CUE}{{}}\n", "cp1252"),
        ("a.csv", "a\n{}\n", "cp1252"),
    ],
)
def test_letters_that_an_encoding_lacks(name: str, source: str, encoding: str) -> None:
    """They are references in HTML and WebVTT; other files cannot have them."""
    document = read_document(source.format("thé").encode(encoding), name)
    tea = WordTranslator(lambda _: "ä茶")
    if name == "a.csv":
        with pytest.raises(InputError, match="which lacks letters of the translation; save it as"):
            translate_document(document, tea)
    else:
        made = source.format("ä&#33590;").encode(encoding)
        assert translate_document(document, tea)[0] == made


def test_damaged_utf8_stays_utf8() -> None:
    """If most of what is not ASCII is right."""
    source = "a\nça va\nüb\n".encode()
    made = translated(source + b"x \xe9\n", "a.csv")[0]
    assert made == "a\nÇA VA\nÜB\n".encode() + b"x \xe9\n"


MARKDOWN = [
    "+++\nslug = 'a b'\n+++\n\n«c d»\n",
    "::: note\n«a» *«b»*\n:::\n",
    "«a»\n!!! note\n«b»\n",
    "!!! note\n\n    «a b»\n\n«c»\n",
    "!!! a\n\n    b c\n\n«d e»\n",  # too short a line
    "{{% a b %}}\n«c d»\n{{% /a %}} \n",
    '{{< a "b" >}}{{< c >}}\n{{< d >}} «e»\n',
    "«a b»\n{: .c d}\n* «toc»\n{:toc}\n",
    '--8<-- "a.md"\n«b»\n*[c]: «d e»\n',
    "*[A]: b \\*\n*[C]: d * e\n",
    "{% include 'a b' %}\n«a» {{ b }}\n",
    "|«a»|«b»|\r\n|-|-|\r\n{%- for c %}\r\n{% if d %}\r\n|«e»|«f»|\r\n{%- endfor %}\r\n«g»\r\n",
    "{% include a %}\n{% b %} «c»\n",
    "{% if a %}«b»{% endif %} «c»\n",
    "import A from 'b c'\n\n# «d»\n",
    "import {\n  a,\n} from 'b'\nexport const c = 1\n\n«d»\n",
    "```\n\nimport a from 'b'\n```\n\n> :::\n> «c»\n",
    "«a» [«b»](u 'c]({{ d }}') «e»\n",  # as the next ones, no link of other tools
    "[^1]: {% b c d %} «e»\n",
    "```\n[a]({{ b }})\n```\n«c»\n",
]
TOLD = [
    *(":::", "!!!", "===", "{% inc", "{%-", "{{%", "}}{{<", "toc", "--8<--", "[!info]", "import"),
    "*[A]",
]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        *map(in_capitals, MARKDOWN),
        ("[TOC]\n\n[[_toc_]]\n[toc] a\n", "[TOC]\n\n[[_toc_]]\n\\[TOC\\] A\n"),
        ("*[a]: b c*\n\n*[d]: e*  \r\n", "*\\[A\\]: B C*\n\n*\\[D\\]: E*  \r\n"),
        ("a]({{ b }} c\n", "A\\]({{ b }} C\n"),
        ("we\nexport class files\n", "WE EXPORT CLASS FILES\n"),
    ],
)
def test_lines_of_other_tools_in_markdown(source: str, expected: str) -> None:
    """They stay, and what is around them is translated."""
    made, _, report = translated(source, "a.md")
    assert made == expected
    told = any("directives of other tools" in remark for remark in report.left)
    assert told is any(sign in source for sign in TOLD)


ADDRESSES = [
    *('{{< ref "a b.md" >}}', "{{% ref 'a_b.md#c' %}}#d", "{% link _a/b c.md %}", "{{<a b>}}"),
    *("{{ site.url }}{% link a.md %}", "/a/{{ b | c: (d) }}/e.html", '<{{< ref "文" >}}>'),
]
LINKS = ["[w](ADDRESS)", "![w]( ADDRESS )", '[w *w*](ADDRESS "w")', "[![w](ADDRESS)](ADDRESS)"]
AROUND = ["{0}", "w {0} w.\n", "> w\n> {0}\n", "|w|\n|-|\n|{0}|\n", "`{0}` w"]
WITH_LINKS = [around.format(link) for around in AROUND for link in LINKS]


@given(
    address=st.sampled_from(ADDRESSES),
    source=st.sampled_from([*WITH_LINKS, "[w]\n\n> [w]: ADDRESS 'w'\n"]),
)
def test_links_of_other_tools_in_markdown(address: str, source: str) -> None:
    """They are links as any others, and their addresses stay."""
    for text in (source, source.replace("w", "w w")):
        made, _, report = translated(text, "a.md")
        assert made.count("ADDRESS") == text.count("ADDRESS")
        written = text.replace("ADDRESS", address)
        with_address, _, told = translated(written, "a.md")
        assert with_address == made.replace("ADDRESS", address)
        assert told.left == report.left
        assert translated(written, "a.md", WordTranslator())[0] == written


ARB = '{"@@x": "a b", "c": "«d e»", "@c": {"f": ["g h"], "i": "j"}, "l": [{"@m": "n"}, "«o p»"]}'


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.arb", *in_capitals(ARB)),  # what is told by keys
        ("a.json", *in_capitals('{"@c": "«d e»"}')),
        ("a.xhtml", *in_capitals("<title>«a» <i>«b»</i></title>")),
        ("a.html", "<title>a <i>b</i></title>", "<title>A &lt;I&gt;B&lt;/I&gt;</title>"),
        ("a.tsv", *in_capitals("a, b, c\td\n«e, f»\t«g h»\n")),
        ("a.csv", '"a, b"\nc, d\n', '"a, b"\n"C, D"\n'),
        ("a.csv", "text\nc d, e; f\n", 'text\n"C D, E; F"\n'),  # no sign in the first row
    ],
)
def test_each_format_has_its_own_text(name: str, source: str, expected: str) -> None:
    """By keys in ARB alone; tags in a title of XHTML alone; by the signs between cells."""
    assert translated(source, name)[0] == expected


NO_JSON = [
    *("", "{", '{"a"}', "[1,]", '{"a" "b"}', "[1 2]", '["a\nb"]', "nul", "]", '{"a": }', "x"),
]


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        (
            "a.po",
            'msgid "a"\nmsgstr "b"\nmsgstr "c"\n',
            "a.po line 3 has a second msgstr for one message",
        ),
        (
            "a.po",
            'msgid "a"\nmsgid "b"\nmsgstr ""\n',
            "a.po line 2 has a second msgid for one message",
        ),
        ("a.po", 'msgid "a"\nnonsense\n', "a.po line 2 is not a line of a message catalogue"),
        ("a.po", 'msgid "a" b\nmsgstr ""\n', "a.po line 1 is not a line of a message catalogue"),
        ("a.po", '\nmsgstr ""\n', "a.po line 2 does not begin a message: it has no msgid"),
        *(("a.json", text, r"a\.json line \d is not JSON; correct it") for text in NO_JSON),
        ("a.srt", "[Script Info]\nTitle: a\n", "has text and no cue .*convert it to SRT"),
        ("a.yaml", "a: b: c", r"is not YAML: .*line 1"),
        ("a.yaml", "[" * 100_000, "more than 200 levels"),
        *(
            ("a.csv", f'x,y\n"c\n""d",e\n{row}\nf,g\n', r"row 3 has a quote that does not end")
            for row in ('1,"a b', '"', '1,"a ""b')
        ),
    ],
)
def test_what_is_not_of_its_format_is_refused(name: str, source: str, sentence: str) -> None:
    """With the line, also where the rest of the file could be read as one text."""
    with pytest.raises(InputError, match=sentence):
        read_document(source.encode(), name)


CODE = "a b\n\n```\nc d\n```\n"
FRAME = "<iframe>, a page or a text of its own: line 1"
SUBTITLE = "00:00:01,000 --> 00:00:02,000\na b\n\n"
NO_CUE = "text outside any valid cue: line 4"
HEAD = "WEBVTT a title\nKind: captions\n\nNOTE a\nb\n\nSTYLE\nc {}\n\nname\n"


@pytest.mark.parametrize(
    ("name", "source", "left"),
    [
        ("a.md", CODE, ["code: line 3"]),
        (
            "a.md",
            f"::: a\n\n{CODE * 2}\n::: b\n",
            ["directives of other tools: line 1; line 14", "code: line 5; line 10"],
        ),
        ("a.html", "<p>a <iframe title='b' srcdoc='<p>c'></iframe>", [FRAME]),
        ("a.html", "<p>a <iframe title='b' src='c'></iframe>", []),  # an address
        ("a.srt", f"{SUBTITLE}2\n{SUBTITLE}name\n{SUBTITLE}", []),
        (
            "a.srt",
            f"{SUBTITLE}1s --> 2s\nc d\n\n{SUBTITLE}x -> y\r\n\r\nc d",
            [f"{NO_CUE}; line 10; line 12"],
        ),
        ("a.srt", f"{SUBTITLE}NOTE a\n\n{SUBTITLE}", [NO_CUE]),
        ("a.srt", SUBTITLE.replace("a b", ""), []),
        ("a.srt", "", []),
        ("a.vtt", HEAD + SUBTITLE.replace(",", "."), []),
        ("a.vtt", "WEBVTT\n\nNOTE a b\n", []),
    ],
)
def test_what_is_left_alone_is_told(name: str, source: str, left: list[str]) -> None:
    """With its lines: code, directives, pages in attributes, subtitles with invalid times or behind
    a blank line; not names of cues, nor what is no text.
    """
    assert [*read_document(source.encode(), name).left] == left


@pytest.mark.parametrize("end", [".", "؟", "۔", '."', "।"])
def test_marks_of_direction_around_lines_of_subtitles(end: str) -> None:
    """They stay. A sentence ends before one; speakers and sounds are seen behind one."""
    times = iter(range(1, 9))

    def cue(*lines: str) -> str:
        second = next(times)
        marked = "\n".join(f"\u202b{line}\u202c" for line in lines)
        return f"00:00:0{second},000 --> 00:00:0{second + 1},000\n{marked}\n\n"

    cues = [cue("a", f"b{end}"), cue("c"), cue(f"d{end}"), cue("e"), cue("- f", "- g"), cue("[h]")]
    made, texts, _ = translated("".join(cues), "a.srt")
    assert texts == [f"a b{end}", f"c d{end}", "e", "f", "g", "h"]
    assert made == "".join(cues).upper()
    assert translated(cue("a").replace("\u202ba", "- \u202ba"), "a.srt")[1] == ["a"]
    spaced = cue("a ", " b")
    assert translated(spaced, "a.srt")[0] == spaced.replace("a ", "A").replace(" b", "B")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.html", "<p title='{}'>a b {}</p>"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\na b {}\n"),
        ("a.fodt", "<a xmlns:form='f'><form:button form:label='a b {}'/></a>"),
        ("a.md", "[a]: x 'a b {}'\n\n[a] b {}\n"),
    ],
)
def test_a_reference_with_thousands_of_digits_is_text(name: str, source: str) -> None:
    """Python refuses to read such a number."""
    data = source.replace("{}", f"&#{'9' * 5000};").encode()
    document = read_document(data, name)
    assert [*document.segments]
    assert document.written(lambda _: None) == data
    assert translated(data, name, WordTranslator())[0] == data
