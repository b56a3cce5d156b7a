"""Paragraphs of docx and pptx: fields, spaces and tabs where runs meet."""

import re

import pytest
from tests.archives import unpacked
from tests.office import W
from tests.unit.documents.test_office import docx_of, sources
from tests.word_translator import WordTranslator, translated
from tests.word_translator import in_capitals as marked_in_capitals


def run(text: str) -> str:
    """A run with a text."""
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def half(kind: str) -> str:
    """What begins or ends a field, or parts what it computes from what it has computed."""
    return f'<w:fldChar w:fldCharType="{kind}"/>'


def field(code: str, shown: str) -> str:
    """A field as Word writes it: a row of runs."""
    begin, separate, end = (f"<w:r>{half(kind)}</w:r>" for kind in ("begin", "separate", "end"))
    return f"{begin}<w:r><w:instrText> {code} </w:instrText></w:r>{separate}{shown}{end}"


def field_in_a_run(code: str, shown: str) -> str:
    """A field as other tools write it: in one run."""
    begin, separate, end = map(half, ("begin", "separate", "end"))
    text = f'<w:t xml:space="preserve">{shown}</w:t>' if shown else ""
    return f"<w:r>{begin}<w:instrText>{code}</w:instrText>{separate}{text}{end}</w:r>"


def document_of(paragraph: str) -> bytes:
    """A docx whose first text is this paragraph."""
    return docx_of(f'<w:body {W} xmlns:m="m"><w:p>{paragraph}</w:p></w:body>')


def in_capitals(paragraph: str) -> str:
    """This paragraph in a docx whose texts are translated."""
    data, *_ = translated(document_of(paragraph), "a.docx")
    found = re.search(r"<w:p>(.*)</w:p>", unpacked(data)["word/document.xml"].decode())
    assert found is not None
    return found[1]


def without_runs(paragraph: str) -> str:
    """Without the tags of runs, which may be more or fewer."""
    return re.sub("</?w:r>", "", paragraph)


DATE, PAGE = field("DATE", run("Monday")), field("NUMPAGES", run("twelve"))
BEGIN, SEPARATE, END = (f"<w:r>{half(kind)}</w:r>" for kind in ("begin", "separate", "end"))
CODE = "<w:r><w:instrText>IF</w:instrText></w:r>"
NESTED = BEGIN + CODE + field("DATE", run("Monday")) + SEPARATE + run("no ") + DATE + END
FIRST = BEGIN + CODE + DATE + run("no") + END
ONE = field_in_a_run("DATE", "Monday")


@pytest.mark.parametrize("of", [DATE, PAGE, NESTED, FIRST, ONE, field_in_a_run("PAGE", "")])
@pytest.mark.parametrize(
    "paragraph", ["{}{}", "a {}", "{} a", "a {} b", "{} a {}", "{}", "{} a {} b {}"]
)
def test_a_field_is_copied_wherever_it_stands(of: str, paragraph: str) -> None:
    """At the edges of a paragraph too, and in other fields: all of it, and in one piece."""
    before, after = (
        of.join(part and run(part) for part in each.split("{}"))
        for each in (paragraph, paragraph.upper())
    )
    assert without_runs(in_capitals(before)) == without_runs(after)


@pytest.mark.parametrize(
    "of", [field("HYPERLINK x", run("link")), field_in_a_run("HYPERLINK x", "link")]
)
def test_the_text_of_a_link_that_is_a_field_is_translated(of: str) -> None:
    """It is no result of a computation."""
    source = f"{run('a ')}{of}"
    expected = source.replace(">a <", ">A <").replace(">link<", ">LINK<")
    assert without_runs(in_capitals(source)) == without_runs(expected)


def test_a_field_that_shows_nothing_is_a_tag() -> None:
    """Of the spaces around it one is read, as around other tags."""
    of = field_in_a_run("PAGE", "")
    inside = re.sub("</?w:r>", "", run("page ") + of + run(" of it"))
    for source in (run("page ") + of + run(" of it"), f"<w:r>{inside}</w:r>"):
        assert text_of(source)[0] == "page of it"


FORMULA = "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{run('a ')}{FORMULA}{run(' b')}", f"{run('A ')}{FORMULA}{run(' B')}"),
        (
            f"{run('a ')}{FORMULA}{FORMULA}{run(' b ')}{FORMULA}{run(', c')}",
            f"{run('A ')}{FORMULA}{FORMULA}{run(' B ')}{FORMULA}{run(', C')}",
        ),
        (f"{run('a')}{FORMULA}{run(' b')}", f"{run('A')}{FORMULA}{run(' B')}"),
    ],
)
def test_spaces_around_a_formula_stay(source: str, expected: str) -> None:
    """On both sides; of the two, one is read."""
    assert "  " not in text_of(source)[0]
    assert in_capitals(source) == expected


TAB, BREAK = "<w:r><w:tab/></w:r>", "<w:r><w:br/></w:r>"
BOLD = "<w:r><w:rPr><w:b/></w:rPr>{}</w:r>"
LINK = '<w:hyperlink w:anchor="x">{}</w:hyperlink>'


def text_of(source: str) -> list[str]:
    """The texts of a paragraph."""
    texts = sources(document_of(source), "a.docx")
    return texts[: texts.index("The header")]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (run("a b") + TAB + run("c"), ["a b", "c"]),
        (TAB + run("a b") + TAB, ["a b"]),
        (run("a b") + TAB + run("c") + BREAK + run("d"), ["a b", "c d"]),
        (run("a b") + BREAK + run("c") + TAB + run("d"), ["a b", "c", "d"]),
        (run("a b") + BREAK + run("c"), ["a b c"]),
        (run("a b") + BREAK + BREAK + run("c"), ["a b", "c"]),
        (run("a b") + BREAK + run("- c"), ["a b", "- c"]),
        (run("1. a b") + BREAK + run("2. c"), ["1. a b", "2. c"]),
        (run("ነው።") + BREAK + run("3. ውሃ"), ["ነው።", "3. ውሃ"]),  # an end of any script
        (run("ነው") + BREAK + run("3. ውሃ"), ["ነው 3. ውሃ"]),
        (run("a b") + '<w:r><w:br w:type="page"/></w:r>' + run("c"), ["a b", "c"]),
        (LINK.format(run("a b") + TAB + field("PAGEREF", run("12"))), ["a b"]),
        (LINK.format(run("a b") + TAB + run("c")) + run(" d"), ["a b c d"]),
        (run("a b\tc"), ["a b", "c"]),
        (BOLD.format("<w:t>a</w:t><w:tab/><w:t>c</w:t>") + run(" d e f"), ["a", "c d e f"]),
        (BOLD.format("<w:t>a</w:t><w:tab/>") + run("d e f"), ["a", "d e f"]),
        (BOLD.format("<w:tab/><w:t>a</w:t>") + run(" d e f"), ["a d e f"]),
        (run("d e f ") + BOLD.format("<w:tab/><w:t>a</w:t>"), ["d e f", "a"]),
    ],
)
def test_tabs_and_empty_lines_part_texts(source: str, texts: list[str]) -> None:
    """Each is translated by itself; what parts them stays between them, with its properties."""
    assert [text.strip() for text in text_of(source)] == texts
    made = in_capitals(source)
    assert flat(made) == flat(source)
    assert "".join(texts).upper().replace(" ", "") in re.sub("<.*?>|\\s|12|PAGEREF", "", made)


def flat(paragraph: str) -> list[tuple[bool, str]]:
    """What a reader sees, in order: letters, tabs, breaks, fields and links; and which are bold."""
    shown = list[tuple[bool, str]]()
    for part in re.findall("<w:r>.*?</w:r>|</?w:hyperlink", paragraph):
        each = re.findall(r"<w:(?:tab|br|fldChar)[^>]*|</?w:hyperlink|[^<>](?=[^<>]*</w:t>)", part)
        shown += [("<w:b/>" in part, one.lower()) for one in each]
    return shown


def test_a_hyphen_in_a_run_of_its_own_is_part_of_its_word() -> None:
    """As one between two texts of a run is."""
    hyphen = "<w:noBreakHyphen/>"
    expected = run("TWENTY\u2011ONE")
    assert in_capitals(run("twenty") + f"<w:r>{hyphen}</w:r>" + run("one")) == expected
    assert in_capitals(f"<w:r><w:t>twenty</w:t>{hyphen}<w:t>one</w:t></w:r>") == expected


NEXT = '</w:instrText></w:r> <w:r w:rsidR="1"><w:rPr><w:b/></w:rPr><w:instrText>'
ENTRIES = [
    'XE "«a b»"',
    "XE &quot;«a» &amp; «b»:«c»:2&quot; \\b",
    f'XE "{NEXT}«a»:«b»{NEXT}" \\i',
    'XE "a \\"b\\""',
    f'XE "a{NEXT}b"',
    'XE "</w:instrText></w:r><w:r><w:fldChar/></w:r><w:r><w:instrText>a"',
    'REF "a"',
]


@pytest.mark.parametrize("code", ENTRIES)
def test_entries_of_an_index_are_translated(code: str) -> None:
    """If all words of one are in a run, as Word and LibreOffice write it; fields are told of."""
    source, expected = marked_in_capitals(f"{field(code, '')}{run('«x»')}")
    made, _, report = translated(document_of(source), "a.docx")
    assert expected in unpacked(made)["word/document.xml"].decode()
    assert report.left[0].startswith("What fields show, such as page numbers and indexes;")


def test_a_translated_entry_has_no_other_levels() -> None:
    """Its colons and quotation marks are text."""
    colon = WordTranslator(lambda word: f'{word}:"')
    data, *_ = translated(document_of(field('XE "a"', "")), "a.docx", colon)
    assert 'XE "a\\:\\"" ' in unpacked(data)["word/document.xml"].decode()
