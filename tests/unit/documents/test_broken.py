"""What is written otherwise than it should be, and what is left alone."""

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.word_translator import WordTranslator

from dragoman.documents import choices
from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError


def capitals(source: str | bytes, name: str) -> str | bytes:
    """A document in capitals, of the same type."""
    data = source.encode() if isinstance(source, str) else source
    made, _ = translate_document(read_document(data, name), WordTranslator(str.upper))
    return made.decode() if isinstance(source, str) else made


def remarks(source: str, name: str) -> tuple[str, ...]:
    """What the reader says that it leaves alone."""
    return read_document(source.encode(), name).left


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        *(("a.html", piece) for piece in ("<!DOCTYPE[>", "<!DOCTYPE a[", "<![CDATA[")),
        ("a.html", "<li translate=no>a b"),
        *(("a.xhtml", piece) for piece in ("<!DOCTYPE a[]", "<![CDATA[")),
        *(
            ("a.md", piece)
            for piece in ("!!! a\n", "{%", "import from ", "export {\n", "> ", "]({{", "[a]: {%")
        ),
    ],
)
def test_what_does_not_end_is_read_in_linear_time(name: str, piece: str) -> None:
    """If each sign were sought to the end of the file, it would take minutes."""
    start = thread_time()
    read_document(piece.encode() * 30_000, name)
    assert thread_time() - start < 5


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<ul><li class=notranslate>a b<li>c</ul>d", "<ul><li class=notranslate>a b<li>C</ul>D"),
        ("<ul><li translate=no>a b</ul><p>c", "<ul><li translate=no>a b</ul><p>C"),
        (
            "<li translate=no>a<ul><li>b<li>c</ul><li>d",
            "<li translate=no>a<ul><li>b<li>c</ul><li>D",
        ),
        ("<tr><td translate=no>a<td>b<tr><td>c", "<tr><td translate=no>a<td>B<tr><td>C"),
        ("<tr translate=no><th>a<td>b<tr><td>c", "<tr translate=no><th>a<td>b<tr><td>C"),
        ("<div><p translate=no>a <b>b</div>c", "<div><p translate=no>a <b>b</div>C"),
        ("<p translate=no>a <x-y>b</x-y> c<h1>d", "<p translate=no>a <x-y>b</x-y> c<h1>D"),
        ("<dt translate=no>a<dd>b<dt>c", "<dt translate=no>a<dd>B<dt>C"),
        (
            "<select><option translate=no>a<option>b</select>",
            "<select><option translate=no>a<option>B</select>",
        ),
        ("<p data-x='a translate=no b'>a b</p>", "<p data-x='a translate=no b'>A B</p>"),
        ("<p class='x-notranslate-y'>a b</p>", "<p class='x-notranslate-y'>A B</p>"),
        ("<p class='x NOTRANSLATE y'>a b</p>", "<p class='x NOTRANSLATE y'>a b</p>"),
        ("<p translate = 'No' id=a>a b</p>", "<p translate = 'No' id=a>a b</p>"),
    ],
)
def test_what_is_not_to_be_translated_ends(source: str, expected: str) -> None:
    """At the next of its kind, or at the end of what is around it, if it has no close tag."""
    assert capitals(source, "a.html") == expected


def test_xhtml_is_read_as_xml() -> None:
    """In the encoding of its declaration, with sections and elements that close themselves."""
    source = '<?xml version="1.0" encoding="iso-8859-1"?><p><a id="x"/>é <![CDATA[<b>c d]]> e</p>'
    expected = source.replace("é", "É").replace(" e<", " E<")
    assert capitals(source.encode("latin-1"), "a.xhtml") == expected.encode("latin-1")
    with pytest.raises(InputError, match="is not in the encoding that it declares"):
        capitals("<p>é</p>".encode("latin-1"), "a.xhtml")


@pytest.mark.parametrize(
    ("source", "name"),
    [("a,b\ncafé,ça va\n", "a.csv"), ('{"a": "ça va"}', "a.json"), ("<p>ça va</p>", "a.html")],
)
def test_undeclared_windows_1252(source: str, name: str) -> None:
    """What is not UTF-8 is written in one encoding too, or refused."""
    made = capitals(source.encode("cp1252"), name)
    assert isinstance(made, bytes)
    assert "ÇA VA" in made.decode("cp1252").upper()
    assert made.decode("cp1252") == capitals(source, name)
    with pytest.raises(InputError, match=rf"{name} is neither UTF-8 nor Windows-1252; save it as"):
        capitals(source.encode("cp1252") + b"\x81", name)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.md", "---\nx: y z\n---\n# a b\n"),
        ("b.md", "# a b\n"),
        ("a.html", "a b<p>"),
        ("a.txt", "a b\n"),
        ("a.tsv", "x\na b\n"),
        ("a.yaml", "x: a b\n"),
        ("a.json", '["a b"]'),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\na b\n"),
        ("a.po", 'msgid "a b"\nmsgstr ""\n'),
    ],
)
def test_a_byte_order_mark_stays_first(name: str, source: str) -> None:
    """It is no text, and hides no sign at the beginning."""
    document = read_document(f"\ufeff{source}".encode("utf-16-le"), name)
    assert [segment.source.text for segment in document.segments] == ["a b"]
    made, _ = translate_document(document, WordTranslator(str.upper, lambda order: order[::-1]))
    changed = source.replace("a b", "B A") if name != "a.po" else source.replace('""', '"B A"')
    assert made == f"\ufeff{changed}".encode("utf-16-le")


def test_letters_that_windows_1252_lacks() -> None:
    """They are references in HTML; other files cannot have them."""
    chinese = WordTranslator(lambda _: "茶")
    page = read_document("<p>thé</p>".encode("cp1252"), "a.html")
    assert translate_document(page, chinese)[0] == b"<p>&#33590;</p>"
    with pytest.raises(InputError, match="which lacks letters of the translation; save it as UTF"):
        translate_document(read_document("a\nthé\n".encode("cp1252"), "a.csv"), chinese)


def test_damaged_utf8_stays_utf8() -> None:
    """If most of what is not ASCII is right."""
    source = "a\nça va\nüb\n".encode()
    assert capitals(source + b"x \xe9\n", "a.csv") == "a\nÇA VA\nÜB\n".encode() + b"x \xe9\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("+++\ntitle = 'a b'\n+++\n\nc d\n", "+++\ntitle = 'a b'\n+++\n\nC D\n"),
        ("::: note\na *b*\n:::\n", "::: note\nA *B*\n:::\n"),
        ('!!! note "a"\n    b c\n\n    d\n\ne\n', '!!! note "a"\n    B C\n\n    D\n\nE\n'),
        ("a\n!!! note\nb\n", "A\n!!! note\nB\n"),
        ("!!! note\n\n    a b\n\nc\n", "!!! note\n\n    A B\n\nC\n"),
        ("!!! a\n\n    b c\n\nd e\n", "!!! a\n\n    b c\n\nD E\n"),  # too short a line
        ('=== "a b"\n\n    c d\n', '=== "a b"\n\n    C D\n'),
        ("{{% a b %}}\nc d\n{{% /a %}} \n", "{{% a b %}}\nC D\n{{% /a %}} \n"),
        ('{{< a "b" >}}{{< c >}}\n{{< d >}} e\n', '{{< a "b" >}}{{< c >}}\n{{< d >}} E\n'),
        ("a b\n{: .c d}\n* toc\n{:toc}\n", "A B\n{: .c d}\n* TOC\n{:toc}\n"),
        ("[TOC]\n\n[[_toc_]]\n[toc] a\n", "[TOC]\n\n[[_toc_]]\n\\[TOC\\] A\n"),
        ('--8<-- "a.md"\nb\n*[c]: d e\n', '--8<-- "a.md"\nB\n*[c]: d e\n'),
        ("*[a]: b c*\n\n*[d]: e*  \r\n", "*\\[A\\]: B C*\n\n*\\[D\\]: E*  \r\n"),
        ("*[A]: b \\*\n*[C]: d * e\n", "*[A]: b \\*\n*[C]: d * e\n"),
        ("> [!info]- a b\n> c\n\n> [!NOTE]\n> d\n", "> [!info]- a b\n> C\n\n> [!NOTE]\n> D\n"),
        ("{% include 'a b' %}\na {{ b }}\n", "{% include 'a b' %}\nA {{ B }}\n"),
        (
            "|a|b|\r\n|-|-|\r\n{%- for c in d %}\r\n{% if e %}\r\n|f|g|\r\n{%- endfor %}\r\nh\r\n",
            "|A|B|\r\n|-|-|\r\n{%- for c in d %}\r\n{% if e %}\r\n|F|G|\r\n{%- endfor %}\r\nH\r\n",
        ),
        ("{% include a %}\n{% b %} c\n", "{% include a %}\n{% B %} C\n"),
        ("{% if a %}b{% endif %} c\n", "{% IF A %}B{% ENDIF %} C\n"),
        ("import A from 'b c'\n\n# d\n", "import A from 'b c'\n\n# D\n"),
        (
            "import {\n  a,\n} from 'b'\nexport const c = 1\n\nd\n",
            "import {\n  a,\n} from 'b'\nexport const c = 1\n\nD\n",
        ),
        ("we\nexport class files\n", "WE EXPORT CLASS FILES\n"),
        (
            "```\n\nimport a from 'b'\n```\n\n> :::\n> c\n",
            "```\n\nimport a from 'b'\n```\n\n> :::\n> C\n",
        ),
    ],
)
def test_lines_of_other_tools_in_markdown(source: str, expected: str) -> None:
    """They stay, and what is around them is translated."""
    assert capitals(source, "a.md") == expected
    told = any("directives of other tools" in remark for remark in remarks(source, "a.md"))
    assert told is any(sign in source for sign in TOLD)


TOLD = (
    ":::",
    "!!!",
    "===",
    "{% inc",
    "{%-",
    "{{%",
    "}}{{<",
    "toc",
    "--8<--",
    "[!info]",
    "import",
    "*[A]",
)


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
        made = str(capitals(text, "a.md"))
        assert made.count("ADDRESS") == text.count("ADDRESS")
        written = text.replace("ADDRESS", address)
        assert capitals(written, "a.md") == made.replace("ADDRESS", address)
        assert remarks(written, "a.md") == remarks(text, "a.md")
        document = read_document(written.encode(), "a.md")
        assert translate_document(document, WordTranslator())[0].decode() == written


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a]({{ b }} c\n", None),
        ("a [b](u 'c]({{ d }}') e\n", "A [B](u 'c]({{ d }}') E\n"),
        ("[^1]: {% b *c* d %} e\n", "[^1]: {% B C D %} E\n"),
        ("```\n[a]({{ b }})\n```\nc\n", "```\n[a]({{ b }})\n```\nC\n"),
    ],
)
def test_what_only_looks_like_a_link_of_another_tool(source: str, expected: str | None) -> None:
    """It is not read as other letters than it has."""
    assert capitals(source, "a.md") == (expected or source)


def test_damaged_strings_that_choose_a_form_are_left() -> None:
    """With a remark; what has braces only is not."""
    source = '{"a": "{n, plural, one {# file} other {# files}",\n"b": "hello {name}, you"}'
    assert capitals(source, "a.json") == source.replace("hello", "HELLO").replace(
        "{name}, you", "{NAME}, YOU"
    )
    where = 'line 1, "a"'
    assert remarks(source, "a.json") == (f"{choices.LEFT}: {where}",)


ARB = '{"@@x": "a b", "c": "d e", "@c": {"f": ["g h"], "i": "j"}, "l": [{"@m": "n"}, "o p"]}'


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.arb", ARB, ARB.replace("d e", "D E").replace("o p", "O P")),  # what is told by keys
        ("a.json", '{"@c": "d e"}', '{"@c": "D E"}'),
        ("a.xhtml", "<title>a <i>b</i></title>", "<title>A <i>B</i></title>"),
        ("a.html", "<title>a <i>b</i></title>", "<title>A &lt;I&gt;B&lt;/I&gt;</title>"),
        ("a.tsv", "a, b, c\td\ne, f\tg h\n", "a, b, c\td\nE, F\tG H\n"),
        ("a.csv", '"a, b"\nc, d\n', '"a, b"\n"C, D"\n'),
        ("a.csv", "text\nc d, e; f\n", 'text\n"C D, E; F"\n'),  # no sign in the first row
    ],
)
def test_each_format_has_its_own_text(name: str, source: str, expected: str) -> None:
    """By keys in ARB alone; tags in a title of XHTML alone; by the signs between cells."""
    assert capitals(source, name) == expected


@pytest.mark.parametrize("row", ['1,"a b', '"', '1,"a ""b'])
def test_a_quote_that_does_not_end_is_refused(row: str) -> None:
    """With its row, instead of the rest of the file being a cell."""
    with pytest.raises(InputError, match=r"a\.csv row 3 has a quote that does not end"):
        capitals(f'x,y\n"c\n""d",e\n{row}\nf,g\n', "a.csv")


def test_blocks_of_code_are_told() -> None:
    """With their lines, as directives are."""
    code = "a b\n\n```\nc d\n```\n"
    assert remarks(code, "a.md") == ("code: line 3",)
    assert remarks(f"::: a\n\n{code * 2}\n::: b\n", "a.md") == (
        "directives of other tools: line 1; line 14",
        "code: line 5; line 10",
    )


def test_subtitles_in_no_cue_are_told() -> None:
    """Those with invalid times, and behind a blank line; not names of cues, nor what is no text."""
    cue = "00:00:01,000 --> 00:00:02,000\na b\n\n"
    assert remarks(f"{cue}2\n{cue}name\n{cue}", "a.srt") == ()
    assert remarks(f"{cue}1s --> 2s\nc d\n\n{cue}x -> y\r\n\r\nc d", "a.srt") == (
        "text outside any valid cue: line 4; line 10; line 12",
    )
    assert remarks(f"{cue}NOTE a\n\n{cue}", "a.srt") == ("text outside any valid cue: line 4",)
    head = "WEBVTT a title\nKind: captions\n\nNOTE a\nb\n\nSTYLE\nc {}\n\nname\n"
    assert remarks(head + cue.replace(",", "."), "a.vtt") == ()


@pytest.mark.parametrize("line", [f"({' ' * 40_000}x", f"<{'a' * 40_000}"])
def test_signs_in_cues_are_found_in_linear_time(line: str) -> None:
    """Those that do not end."""
    start = thread_time()
    read_document(f"00:00:01,000 --> 00:00:02,000\n{line}\n".encode(), "a.srt")
    assert thread_time() - start < 5


def test_signs_in_cues_that_are_no_tags() -> None:
    """They are text; times in a cue stay in it."""
    cue = "00:00:01.000 --> 00:00:02.000\n"
    read = read_document(f"{cue}a <3 b > c <i>d</i>\n".encode(), "a.srt")
    assert read.parts[0].segments[0].source.text == "a <3 b > c d"
    following = cue.replace("02", "03").replace("01", "02")
    source = f"WEBVTT\n\n{cue}a <00:01.500>b\n\n{following}c <00:00:02.500>d\n"
    made = read_document(source.encode(), "a.vtt")
    assert [segment.source.text for segment in made.parts[0].segments] == ["a b", "c d"]


@pytest.mark.parametrize("end", [".", "؟", "۔", '."', "।"])
def test_marks_of_direction_around_lines_of_subtitles(end: str) -> None:
    """They stay. A sentence ends before one; speakers and sounds are seen behind one."""
    times = iter(range(1, 9))

    def cue(*lines: str) -> str:
        second = next(times)
        marked = "\n".join(f"\u202b{line}\u202c" for line in lines)
        return f"00:00:0{second},000 --> 00:00:0{second + 1},000\n{marked}\n\n"

    cues = [cue("a", f"b{end}"), cue("c"), cue(f"d{end}"), cue("e"), cue("- f", "- g"), cue("[h]")]
    read = read_document("".join(cues).encode(), "a.srt")
    texts = [each.source.text for each in read.segments]
    assert texts == [f"a b{end}", f"c d{end}", "e", "f", "g", "h"]
    assert capitals("".join(cues), "a.srt") == "".join(cues).upper()
    behind = cue("a").replace("\u202ba", "- \u202ba")
    [segment] = read_document(behind.encode(), "a.srt").segments
    assert segment.source.text == "a"
    spaced = cue("a ", " b")
    assert capitals(spaced, "a.srt") == spaced.replace("a ", "A").replace(" b", "B")


def test_references_in_webvtt() -> None:
    """For letters that its encoding lacks."""
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    read = read_document(f"{cue}thé\n".encode("cp1252"), "a.vtt")
    made, _ = translate_document(read, WordTranslator(lambda _: "茶"))
    assert made.decode() == f"{cue}&#33590;\n"


def test_a_page_inside_an_attribute_is_told_of() -> None:
    """It is seen, and left alone; a frame with the address of a page has nothing to translate."""
    assert remarks("<p>a <iframe title='b' srcdoc='<p>c'></iframe>", "a.html") == (
        "<iframe>, a page or a text of its own: line 1",
    )
    assert remarks("<p>a <iframe title='b' src='c'></iframe>", "a.html") == ()
