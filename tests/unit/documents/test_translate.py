"""Document translation: what the model is asked, and what becomes of its answers."""

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pptx import Presentation
from tests.word_translator import Linked, Places, WordTranslator, translated

from dragoman.documents.formats import FORMATS, format_of_name, read_document
from dragoman.documents.translate import Draft, translate_document
from dragoman.errors import InputError
from dragoman.tasks.results import TermUse, Translation

TEXT = b"\xef\xbb\xbf  One two.\r\n\r\n\tThree?\nOne two.\r42 + 1\n/usr/bin/env\nx\xff y\nlast"


def test_only_text_changes() -> None:
    """Line ends, white space, a byte order mark and what is no text stay; the report says why."""
    data, lines, report = translated(TEXT, "a.txt")
    expected = TEXT.replace(b"One two", b"ONE TWO").replace(b"Three", b"THREE")
    assert data == expected.replace(b"last", b"LAST")
    assert lines == ["One two.", "Three?", "last"], "equal texts are translated once"
    assert report.to_dict() | {"untranslated": None} == {
        "segments": 7, "translated": 4, "remembered": 0, "left": [], "untranslated": None,
        "flagged": [],
    }  # fmt: skip
    assert [(r.where, r.what) for r in report.untranslated] == [
        ("line 6", ("it looks like an address or a name",)),
        ("line 7", ("it has bytes that are not UTF-8",)),
    ]
    assert translated(TEXT, "a.txt", WordTranslator())[0] == TEXT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.tsv", "Nr\tText\r\n1\t{} 一切\r\n"),
        ("a.srt", "1\r\n00:00:01,000 --> 00:00:02,000\r\n{} 一切\r\n"),
        ("a.html", "<p>{} 你好</p>"),
    ],
)
def test_utf_16_needs_no_mark(name: str, source: str, encoding: str) -> None:
    """Its NULs tell it; a NUL in a text of single bytes does not."""
    made, expected = source.format("grüße"), source.format("GRÜSSE").replace("Text", "TEXT")
    data = translated(made.encode(encoding), name)[0]
    assert data.decode(encoding).lower() == expected.lower()
    assert "GRÜSSE" in data.decode(encoding)
    assert translated(b"foo\0 bar\n", "a.txt")[0] == b"FOO\0 BAR\n"


def test_a_full_line_goes_on_in_the_next() -> None:
    """Both are translated as one, and the line break is put back by alignment."""
    line = "This is a sentence of many words, which does not fit"
    made, lines, _ = translated(f"{line}\n   into a line.\nAnother\nword\n", "a.txt")
    assert lines[0] == f"{line} into a line."
    assert made == f"{line.upper()}\n   INTO A LINE.\nANOTHER\nWORD\n"


def test_the_numbers_of_a_list_are_copied() -> None:
    """Where they go on in the document; `2. x` alone may be an ordinal."""
    source = "<p><b>1.</b> one</p><p>2. Liga</p><p><code>3.</code> dog</p><p>2. Liga</p>"
    translator = WordTranslator(str.upper)
    made, _, _ = translated(source, "a.html", translator)
    assert translator.lines == ["1. one", "2. Liga", "3. dog", "2. Liga"]
    assert translator.kept == [((0, 3),), ((0, 3),), ((0, 2),), ()]
    assert made == source.replace("one", "ONE").replace("Liga", "LIGA").replace("dog", "DOG")


def test_what_is_copied_is_told_to_the_model() -> None:
    """The places, in the text without outer white space; what is all copied is not translated."""
    source = "<p>  Call <code>ls</code> now <p> <code>ls</code>!"
    translator = WordTranslator(str.upper)
    made, _, report = translated(source, "a.html", translator)
    assert (translator.lines, translator.kept) == (["Call ls now"], [((5, 7),)])
    assert made == source.replace("Call", "CALL").replace("now", "NOW")
    assert [each.text for each in report.untranslated] == ["ls!"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.html", '<p title="two">one %s</p>'),
        ("a.xhtml", '<p title="two">one %s</p>'),
        ("a.md", '[one](u "two") %s'),
        ("a.fodt", '<p><a title="two">one</a> %s</p>'),
    ],
)
@pytest.mark.parametrize(
    ("before", "mark"), [("", "\ue000"), ("", "\ufdd0"), ("\ufdd0", "\ufdd0"), ("\ufdd0", "\ufdd1")]
)
def test_no_text_takes_the_place_of_an_attribute(
    name: str, source: str, before: str, mark: str
) -> None:
    """Whatever the file has, and whatever the model writes."""
    data = (source % f"{before} &#{ord(mark)};1&#{ord(mark)};").encode()
    document = read_document(data, name)
    assert [*document.segments][-1].source.text == "two"
    made, _ = translate_document(document, WordTranslator(lambda word: f"{word}{mark}1{mark}"))
    assert made.count(b"two") == 1


IN_PO, IN_CSV = 'msgid "{}"\nmsgstr ""\n', "a\n{}\n"
HTML = "<p>Look <a>{}</a> {}"


@pytest.mark.parametrize(
    ("source", "word", "written", "expected"),
    [
        (HTML.format("here", "or <a>there</a><i></i>.<p><i></i>Now"), "here", "", "empty_tag"),
        (HTML.format("here!", "now"), "here", "", "empty_tag"),
        (HTML.format("!", "now"), "!", "", "empty_tag"),
        (HTML.format("!", "here"), "here", "", ""),
        ("Call `x.y` twice", "twice", "`x.y`", "kept"),
        ("Call `x.y` twice `x.y`", "twice", "`x.y`", "kept"),
        ("Call `x.y` once", "twice", "`x.y`", ""),
        ("Call <kbd>1</kbd> twice", "twice", "12", ""),
        ("Call <kbd>1</kbd> twice", "twice", "1.", "kept"),
        ("Call `x.y`", "Call", "", "no_output"),
        ("Call `x.y`", "Call", "!", "no_output"),
        ("Call `x.y`", "Call", "7", ""),
        (IN_CSV.format("a &b c"), "b", "", "empty_tag"),
        *(
            (form.format("one dog | two dogs"), "|", "x", "placeholders")
            for form in (IN_PO, IN_CSV)
        ),
        *((form.format("E&xit now"), "&", "x", "placeholders") for form in (IN_PO, IN_CSV)),
        (IN_PO.format("one dog | two dogs"), "", "", ""),
        (IN_CSV.format("AT&T & Tom"), "&", "", ""),
    ],
)
def test_what_a_translation_has_lost_is_told(
    source: str, word: str, written: str, expected: str
) -> None:
    """Or has twice: an element without its words, or without its sign if that was all; what is
    copied, beside itself or without any word beside it; signs of forms and of keys.
    """
    name = {"<": "a.html", "C": "a.md", "m": "a.po"}.get(source[0], "a.csv")
    change = WordTranslator(lambda each: written if each == word else each.upper())
    report = translated(source, name, change)[2]
    assert [each.what for each in report.flagged] == [(expected,)] * bool(expected)


@pytest.mark.parametrize("first", [(), ("retried",)])
def test_a_number_that_was_not_copied_at_first_is_flagged(first: tuple[str, ...]) -> None:
    """The number of a message may then stand there as a word, too."""

    class Searching(WordTranslator):
        def stream(self, *lines: Any, **options: Any) -> Iterator[Translation]:  # noqa: ANN401
            return (replace(each, flags=first) for each in super().stream(*lines, **options))

    source = '{"a": "{n, plural, other {Buy # apples}}"}'
    made, _, report = translated(source, "a.json", Searching(str.upper))
    assert made == '{"a": "{n, plural, other {BUY # APPLES}}"}'
    assert [each.what for each in report.flagged] == [("kept",)] * len(first)


def test_a_link_of_a_presentation_is_kept_without_its_words() -> None:
    """There it is among the properties of a run."""
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    paragraph = slide.shapes.add_textbox(0, 0, 100, 100).text_frame.paragraphs[0]
    for text, address in (("Look ", None), ("here", "http://a.b"), (" now", None)):
        run = paragraph.add_run()
        run.text, run.hyperlink.address = text, address
    presentation.save(file := io.BytesIO())
    drop = WordTranslator(lambda word: "" if word == "here" else word.upper())
    data, _, report = translated(file.getvalue(), "a.pptx", drop)
    shape = Presentation(io.BytesIO(data)).slides[0].shapes[0]
    runs = shape.text_frame.paragraphs[0].runs
    shown = [(run.text.strip(), run.hyperlink.address) for run in runs]
    assert shown == [("LOOK", None), ("", "http://a.b"), ("NOW", None)]
    assert ("empty_tag",) in {each.what for each in report.flagged}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a: |\n  one two\n", "a.yaml"),
        ("one two\n", "a.md"),
        ("<p>one <b>two</b></p>", "a.html"),
        ("x,y\none two,1\n", "a.csv"),
        ('{"a": "one two"}', "a.json"),
        ('msgid "one two"\nmsgstr ""\n', "a.po"),
    ],
)
def test_control_characters_that_a_model_writes_are_dropped(source: str, name: str) -> None:
    """In all formats; the end of a line becomes a space, and words keep their tags."""
    clean = WordTranslator(lambda word: f"{word[0]}x {word[1:]}")
    damaged = WordTranslator(lambda word: f"\x12{word[0]}\ufffe\x9bx\n{word[1:]}\x00")
    assert translated(source, name, damaged)[0] == translated(source, name, clean)[0]


@pytest.mark.parametrize("source", ["a: |\n  one two\n  three\n", "a: >-\n  one two\n\n  three\n"])
def test_white_space_around_a_translation_is_dropped(source: str) -> None:
    """A block of YAML would have another indent by it."""
    spaced = WordTranslator(lambda word: f"\t{word.upper()} ")
    expected = source.replace("one two", "ONE  \tTWO").replace("three", "THREE").replace("\t", " ")
    assert translated(source, "a.yaml", spaced)[0] == expected


def test_control_characters_of_the_source_stay() -> None:
    """They are its own; what a model makes of nothing else is nothing."""
    assert translated("a \x12b", "a.txt")[0] == "A \x12B"
    assert translated("a b", "a.txt", WordTranslator(lambda _: "\x12"))[0] == "a b"


def test_a_translation_that_is_the_same_but_for_control_characters_is_the_same() -> None:
    """So the report says, and a file of two languages stays."""
    source = 'msgid "one two"\nmsgstr ""\n'
    made, _, report = translated(source, "a.po", WordTranslator(lambda word: f"{word}\x00"))
    assert (made, report.translated) == (source, 0)
    assert report.untranslated[0].what == ("its translation is the same",)


def test_the_format_is_that_of_the_name() -> None:
    """Or the one that is given; what cannot be translated is refused with what to do."""
    assert [format_of_name(f"x.{s}") for each in FORMATS.values() for s in each.suffixes] == [
        name for name, each in FORMATS.items() for _ in each.suffixes
    ]
    assert format_of_name("x.foo") is None
    for name, known, match in (
        ("x.pdf", None, "the docx, odt or html that it was made from"),
        ("x.doc", None, "save it as docx"),
        ("x.xcstrings", None, "export its localizations from Xcode as XLIFF first"),
        ("x.properties", None, "convert it to XLIFF, PO or JSON first"),
        ("x", None, "; give one of: text"),
        ("x", "txet", "'txet' is not a format; did you mean text"),
    ):
        with pytest.raises(InputError, match=match):
            read_document(b"", name, known)
    with pytest.raises(InputError, match="damaged UTF-16; save it as UTF-8"):
        read_document(b"\xff\xfea", "x.txt")
    assert read_document(b"a", "x", "text").parts[0].text == "a"


PO = 'msgid "{}"\nmsgstr "{}"\n'


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.po", PO.format("a <b>c</b> e\\n", ""), PO.format("a <b>c</b> e\\n", "<b>X</b> y\\n")),
        ("a.json", '{"k": " a <b>c</b> e"}', '{"k": " <b>X</b> y"}'),
        ("a.html", "<p> <i>a <b>c</b> e</i></p>", "<p> <i><b>X</b> y</i></p>"),
        ("a.html", "<p> <b>a c</b> </p>", "<p> <b>Y</b> </p>"),
        ("a.html", "<p>a<br> c", "<p>X &amp;<br> Y"),
        ("a.md", "> a <b>c</b>\n  e\n", "> <b>X</b> y\n"),
        ("a.md", "a **c** *e* [a](b)\n", "*x* [Y](b) **z**\n"),
        ("a.md", "a <b>c</b>  \ne\n", "A <b>C</b>  \nE\n"),
        ("a.po", PO.format("a <b>c</b>\\ne", ""),
         PO.format("a <b>c</b>\\ne", '"\n"A <b>C</b>\\n"\n"E')),
        ("a.json", '{"k": "c <b>a</b>"}', '{"k": "C <b>A</b>"}'),
        ("a.json", '{"k": "a <i>c</i>"}', '{"k": "A <i>C</i>"}'),
        ("a.md", "a * c *e*\n", "A * C *E*\n"),
        ("a.md", "a `c_*` **e**\n", "**x** `c_*` Y\n"),
        ("a.html", "<p>{{ a && c }} <b>e</b>", "<p><b>x</b> {{ a && c }}"),
    ],
)  # fmt: skip
def test_a_memory_has_tags(name: str, source: str, expected: str) -> None:
    """The same ones, nested; else the model is asked, and for lines that are broken on purpose."""
    translator = WordTranslator(str.upper)
    translator.memory = {
        "a <b>c</b> e": "<b>X</b> y", "<b>a c</b>": "<b>Y</b>", "a<br> c": "X &<br> Y",
        "a **c** *e* [a](b)": "*x* [Y](b) **z**", "c <b>a</b>": "x", "a <i>c</i>": "</i>y<i>",
        "a * c *e*": "x * y *z*", "a `c_*` **e**": "**x** `c_*` Y",
        "{{ a && c }} <b>e</b>": "<b>x</b> {{ a && c }}",
    }  # fmt: skip
    made, lines, report = translated(source, name, translator)
    assert made == expected
    assert report.remembered == report.translated - len(lines)


def test_a_tag_does_not_take_all_of_what_a_memory_has() -> None:
    """It is empty, and told, unless little stands around it in the source."""
    source = b"<p>a man plays <b>it</b><p>the <b>dog</b>"
    draft = Draft(read_document(source, "a.html"))
    draft.put([("x y", [(12, 14, 0, 3)], ("memory",)), ("z", [(4, 7, 0, 1)], ("memory",))])
    assert draft.written() == b"<p><b></b>x y<p><b>z</b>"
    report = draft.report()
    assert [each.what for each in report.flagged] == [("empty_tag",)]
    assert report.remembered == 2


def test_terms_that_a_text_lacks_are_named() -> None:
    """Also of what was translated before an interruption."""

    class Missing(WordTranslator):
        def _translate(self, line: str, kept: Places) -> Linked:
            missed = TermUse(source="a", target="x", outcome="missed")
            terms = missed, replace(missed, source="b", outcome="applied")
            return replace(super()._translate(line, kept), terms=terms, flags=("terms_missed",))

    draft = Draft(read_document(b"a b\n\nc\n", "a.txt"))
    first, second = draft.stream(Missing())
    again = Draft(read_document(b"a b\n\nc\n", "a.txt"))
    assert [*again.stream(WordTranslator(), before=[first])] != [second]
    assert [each.missed for each in again.report().flagged] == [("a → x",)]
    assert [each.missed for each in draft.report().flagged] == [("a → x",)] * 2


def test_texts_with_one_hash_are_not_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only equal ones are one text."""
    monkeypatch.setattr("dragoman.documents.translate.hash", lambda _: 1, raising=False)
    draft = Draft(read_document(b"one a\n\ntwo b\n\none a\n", "a.txt"))
    assert [text for text, _ in draft.texts] == ["one a", "two b"]
    assert [*draft.places] == [[0, 2], [1]]


def test_the_number_of_texts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, however long the file goes on."""
    monkeypatch.setattr("dragoman.documents.document.MOST", 2)
    with pytest.raises(InputError, match=r"a\.html has more than 2 texts to translate; cut it"):
        read_document(b"<p>one<p>two<p>three", "a.html")
