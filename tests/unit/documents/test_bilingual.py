"""XLIFF, TMX and PO: units without a translation get one, and others are unchanged."""

import re
from contextlib import nullcontext
from xml.etree import ElementTree as ET

import polib
import pytest
from tests.office import PO, TMX, XLIFF_1, XLIFF_2
from tests.word_translator import WordTranslator, backwards, translated

from dragoman.documents.formats import read_document
from dragoman.errors import InputError


def targets(text: str) -> list[str | None]:
    """The text of each target of XLIFF, or that of each German variant of TMX."""
    found = ET.fromstring(text)  # noqa: S314 -- what a test wrote
    names = ["{*}target", "{*}tuv[@{http://www.w3.org/XML/1998/namespace}lang='de']/seg"]
    return ["".join(each.itertext()) for name in names for each in found.iterfind(f".//{name}")]


def test_xliff_1_gets_targets() -> None:
    """Where there is none, or one to do; tags are copied, protected text is not translated."""
    made, *_ = translated(XLIFF_1, "a.xlf")
    assert targets(made) == [
        "HELLO BOLD WORLD.", "Fertig", "NEW ONE", "SOME <b>TEXT</b> & MORE",
        "PRESS <b>OK</b> ACME NOW",
    ]  # fmt: skip
    review = 'state="needs-review-translation"'
    assert (
        f'\n        <target {review}>HELLO <g id="1">BOLD</g> WORLD<x id="2"/>.</target>\n' in made
    )
    assert f"<target {review}><![CDATA[SOME <b>TEXT</b> & MORE]]></target>" in made
    assert f"<source>New one</source><target {review}>NEW ONE</target>" in made
    assert made.count(review) == 4
    assert '<file target-language="de" original="a"' in made
    changed = re.compile("<target state|<file|CDATA")
    rest, before = ([x for x in t.split("\n") if not changed.search(x)] for t in (made, XLIFF_1))
    assert rest == before


def test_xliff_2_gets_targets() -> None:
    """Its segments say that they are translated; finished and kept units stay."""
    made, *_ = translated(XLIFF_2, "a.xliff")
    assert targets(made) == ["HELLO WORLD X Y", "Fertig", "TO DO"]
    assert '<segment state="translated" id="s1">\n    <source>' in made
    assert '<target>HELLO <pc id="1">WORLD</pc> <sc id="2"/>X Y<ec startRef="2"/></target>' in made
    assert 'trgLang="de"' in made


def test_a_unit_inside_a_unit_has_its_target() -> None:
    """A broken file is written with both, and with its language."""
    inner = "<segment><source>inner</source></segment>"
    outer = f"<segment><source>outer <ph id='1'/><ph id='2'>{inner}</ph> end</source></segment>"
    made, *_ = translated(
        XLIFF_2.replace('<segment id="s1">', f'{outer}<segment id="s1">'), "a.xliff"
    )
    assert 'trgLang="de"' in made
    assert made.count("<target>OUTER") == 1
    assert "<target>INNER</target>" in made


@pytest.mark.parametrize(
    ("unit", "target", "stays"),
    [
        ("", "", False),
        ("", "state='needs-translation'", False),
        ("approved='yes'", "", True),
        ("", "state='final'", True),
        ("", "state='signed-off'", True),
    ],
)
def test_a_target_like_its_source_is_open_unless_it_is_finished(
    unit: str, target: str, *, stays: bool
) -> None:
    """A name, say, that a person has left as it is; in XLIFF 2 the segment says so."""
    old = f"<trans-unit {unit}><source>Ok</source><target {target}>Ok</target></trans-unit>"
    new = f"<segment {target}><source>Ok</source><target>Ok</target></segment>"
    for each in (old, new) if not unit else (old,):
        text = f"<file>{each}</file>"
        assert (translated(text, "a.xlf")[0] == text) is stays


@pytest.mark.parametrize(
    ("source", "target", "is_left"),
    [
        ("en-GB", "de_CH", False),
        ("eng", "deu", False),
        ("en", "en", False),
        ("en", "fr-FR", True),
        ("fr", "de", True),
    ],
)
@pytest.mark.parametrize("names", [("source-language", "target-language"), ("srcLang", "trgLang")])
def test_files_in_other_languages_are_left(
    names: tuple[str, str], source: str, target: str, *, is_left: bool
) -> None:
    """One file may have several; a template is into the language that it is from."""
    unit = "<segment id='u'><source>a b</source></segment>"
    file = f"<file {names[0]}='{source}' {names[1]}='{target}'>{unit}</file>"
    text = f"<xliff>{file}<file {names[0]}='en'>{unit}</file></xliff>"
    document = read_document(text.encode(), "a.xlf", languages=("en", "de"))
    told = f"units of a file in other languages: {source}, {target}: unit u"
    assert document.left == (told,) * is_left
    assert document.firsts[-1] == 2 - is_left
    assert len([*read_document(text.encode(), "a.xlf").segments]) == 2
    with pytest.raises(InputError, match=f"only {told}") if is_left else nullcontext():
        read_document(f"<xliff>{file}</xliff>".encode(), "a.xlf", languages=("en", "de"))
    done = text.replace("</segment></file></xliff>", "<target>c</target></segment></file></xliff>")
    assert read_document(done.encode(), "a.xlf", languages=("en", "de")).left == (told,) * is_left


def test_what_says_more_of_a_state_goes_with_it() -> None:
    """It was said of the target that is replaced."""
    one = "<trans-unit><source>a b</source><target state-qualifier='fuzzy-match'/></trans-unit>"
    two = "<segment state='initial' subState='x:y'><source>c d</source></segment>"
    made, *_ = translated(f"<file>{one}{two}</file>", "a.xlf")
    assert '<target state="needs-review-translation">A B<' in made
    assert '<segment state="translated"><source>' in made


@pytest.mark.parametrize(
    "code",
    [
        "<ph id='1'>&lt;br/&gt;</ph>", "<x id='1' ctype='lb'/>", "<ph id='1' disp='&lt;BR&gt;'/>",
        "<x id='1' equiv-text='&lt;br class=\"a\"&gt;'/>",
        "<ph id='1' type='fmt' subType='xlf:lb'/>",
    ],
)  # fmt: skip
def test_a_code_for_a_line_break_is_a_space(code: str) -> None:
    """In whichever of the ways that tools have to say so; other codes are nothing."""
    source = f"a{code}b <ph id='2'>&lt;b&gt;</ph>c"
    text = f"<file><trans-unit><source>{source}</source></trans-unit></file>"
    made, lines, _ = translated(text, "a.xlf")
    assert lines == ["a b c"]
    assert f">A{code}B <ph id='2'>&lt;b&gt;</ph>C</target>" in made


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a\n  b", "A B"),
        ("<![CDATA[<p>One <b>two</b><br>x</p>]]>", "<![CDATA[<p>ONE <b>TWO</b><br>X</p>]]>"),
        (
            "&lt;i>one&lt;/i> &lt;two> <g id='1'>x</g>",
            "&lt;i&gt;ONE&lt;/i&gt; &lt;TWO&gt; <g id='1'>X</g>",
        ),
        ("&lt;size=9>a&lt;/size> b", "&lt;size=9&gt;A&lt;/size&gt; B"),
        ("in the <ph id='1'>{0}</ph> park", "IN THE <ph id='1'>{0}</ph> PARK"),
        (
            "a <sm id='1' translate='no'/>b c<em startRef='1'/> d",
            "A <sm id='1' translate='no'/>b c<em startRef='1'/> D",
        ),
    ],
)
def test_elements_and_white_space_of_units(source: str, target: str) -> None:
    """Elements are tags, those of HTML too, written as the text is; what has no partner is text.

    Spaces around a tag stay, as it may stand for a word; what is between two that say so is copied.
    White space is layout, unless the file says that it is preserved.
    """
    text = f"<file><trans-unit><source>{source}</source></trans-unit></file>"
    assert f">{target}</target>" in translated(text, "a.xlf")[0]
    kept = text.replace("<file>", "<file xml:space='preserve'>")
    assert f">{target.replace('A B', source.upper())}</target>" in translated(kept, "a.xlf")[0]


@pytest.mark.parametrize("depth", [20, 40, 80])
def test_deep_elements_of_a_unit_stay_nested(depth: int) -> None:
    """Whatever the order of the words, also where they are deeper than is told apart."""
    inner = f"{'<g>a <mrk>' * depth}b c{'</mrk> d</g>' * depth}"
    text = f"<file><trans-unit><source>Press {inner} now</source></trans-unit></file>"
    made, *_ = translated(text, "a.xlf", WordTranslator(str.upper, backwards))
    (target,) = targets(made)
    assert (target or "").split() == ["NOW", *["D"] * depth, "C", "B", *["A"] * depth, "PRESS"]


def test_a_memory_has_the_same_code_for_all_its_units() -> None:
    """That of those that it has, where another is asked for; a unit without a source is told."""
    text = TMX.replace('xml:lang="de"', 'xml:lang="de-DE"').replace("en-US", "fr")
    made, _, report = translated(text, "a.tmx")
    assert 'xml:lang="de"' not in made
    assert report.left == ("units without a text in en: unit 1",)


def test_a_memory_gets_variants() -> None:
    """By language, whatever its region; white space as before the source's variant."""
    made, *_ = translated(TMX, "a.tmx")
    assert targets(made) == ["ONE {b}TWO{/b}", "THREE & FOUR", "fünf"]
    added = '\n  <tuv xml:lang="de"><seg>THREE &amp; FOUR</seg></tuv>\n </tu>'
    assert added in made
    assert (
        made.replace(added, "\n </tu>").replace(
            'ONE <bpt i="1">{b}</bpt>TWO<ept i="1">{/b}</ept>', ""
        )
        == TMX
    )


def test_a_unit_inside_a_text_of_a_memory_is_written_where_it_is() -> None:
    """The translation of the text around it stands behind it, and has a copy."""
    inner = '<tu><tuv xml:lang="en"><seg>two</seg></tuv></tu>'
    outer = f'<tu><tuv xml:lang="en"><seg>One <ph>{inner}</ph> three</seg></tuv></tu>'
    made, *_ = translated(f'<tmx><header srclang="en"/>{outer}</tmx>', "a.tmx")
    filled = inner.replace("</tu>", '<tuv xml:lang="de"><seg>TWO</seg></tuv></tu>')
    assert made == (
        f'<tmx><header srclang="en"/><tu><tuv xml:lang="en"><seg>One <ph>{filled}</ph> three</seg>'
        f'</tuv><tuv xml:lang="de"><seg>ONE <ph>{filled}</ph> THREE</seg></tuv></tu></tmx>'
    )


def test_a_unit_before_the_text_of_another_keeps_its_place() -> None:
    """Both texts hold what may hold units; the inner one is first in the file, and read last."""
    holding = "<seg>two<ph><tu/></ph></seg>"
    inner = f'<tu><tuv xml:lang="en">{holding}</tuv></tu>'
    outer = f'<tmx><header srclang="en"/><tu><tuv xml:lang="en">{inner}{holding}</tuv></tu></tmx>'
    document = read_document(outer.encode(), "a.tmx", languages=("en", "de"))
    assert document.written(lambda _: None) == outer.encode()


def test_a_text_inside_a_code_is_reported() -> None:
    """Such as the alternative of a picture, which stays; formulas of HTML and numbers are none."""
    memory = '<tmx><header srclang="en"/><tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu></tmx>'
    picture, other = (
        "<ph>alt='<sub>two</sub>'</ph>",
        "H&lt;sub&gt;i&lt;/sub&gt; <ph><sub>2</sub></ph>",
    )
    for name, file in (
        ("a.tmx", memory),
        ("a.xlf", "<xliff><trans-unit><source>{}</source></trans-unit></xliff>"),
    ):
        made, _, report = translated(file.format(f"one {picture}"), name)
        assert report.left == ("texts inside codes (<sub>): unit",)
        assert made.count(picture) == 2
        assert translated(file.format(other), name)[2].left == ()


@pytest.mark.parametrize("text", ["one", "{n, plural, one {a dog} other {# dogs}}"])
def test_a_unit_after_the_text_of_another_is_translated(text: str) -> None:
    """Also if the branches of that text are texts of their own."""
    inner = '<tu><tuv xml:lang="en"><seg>two</seg></tuv></tu>'
    outer = f'<tu><tuv xml:lang="en"><seg>{text}</seg></tuv>{inner}</tu>'
    made, *_ = translated(f'<tmx><header srclang="en"/>{outer}</tmx>', "a.tmx")
    assert '<tuv xml:lang="de"><seg>TWO</seg></tuv></tu></tu>' in made


def test_a_memory_tells_its_languages() -> None:
    """Where there are two; else they are asked for."""
    document = read_document(TMX.encode(), "a.tmx")
    assert [segment.source.text for segment in document.segments] == ["One two", "Three & four"]
    with pytest.raises(InputError, match="has texts in en, de, fr; say from and into which"):
        read_document(TMX.replace("EN", "fr").replace("en-US", "en").encode(), "a.tmx")


def test_a_catalogue_gets_messages() -> None:
    """Plural forms too; fuzzy ones are translated anew; polib reads the same as before."""
    written, *_ = translated(PO, "a.po")
    made, before = polib.pofile(written), polib.pofile(PO)
    assert [(e.msgid, e.msgctxt, e.occurrences) for e in made] == [
        (e.msgid, e.msgctxt, e.occurrences) for e in before
    ]
    assert [entry.msgstr or entry.msgstr_plural for entry in made] == [
        "HELLO", "NEW %D", {0: "%D FILE", 1: "%D FILES"}, "Fertig",
        "A LONG TEXT THAT GOES OVER SEVERAL LINES BECAUSE IT IS LONG ENOUGH FOR THAT, IS IT NOT?\n"
        'AND A "SECOND" LINE\n', 'ONE OF:\n  -A  THE FIRST\n\n- "B"\n', "alt",
    ]  # fmt: skip
    assert [entry.flags for entry in made] == [[], ["c-format"], ["c-format"], *[[]] * 4]
    assert made[1].previous_msgid is None
    assert made.metadata == before.metadata
    assert max(map(len, written.split("\n"))) <= 79


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (r"Two\n\nA man", ["Two", "A man"]),
        (r"- Two\n- A man", ["- Two", "- A man"]),
        (r"Two:\n  -x  A man\n  long", ["Two:", "-x  A man", "long"]),
        (r"Two\tA man", ["Two", "A man"]),
        (r"Two\nlines", ["Two lines"]),
        (r"Two\n\n12", ["Two"]),
        (
            r"  -f, --a=B  read the\n      named\n      file\n  -g  c",
            ["-f, --a=B  read the named file", "-g  c"],
        ),
        (r"-f\tRead the\n\tnamed file\n  -g  c", ["-f", "Read the named file", "-g  c"]),
        (r"- An item\n  goes on\n  - in\n    it\n- c", ["- An item goes on", "- in it", "- c"]),
        (r"Two:\n  a\n    c", ["Two:", "a", "c"]),
        (r"am\n3. Oktober", ["am 3. Oktober"]),
        (r"- am\n  3. Oktober", ["- am 3. Oktober"]),
        (r"Am:\n3. Oktober", ["Am:", "3. Oktober"]),
        (r"Am\n3. Oktober\n4. Mai", ["Am", "3. Oktober", "4. Mai"]),
        (r"a\tC that\ngoes on", ["a", "C that goes on"]),
        (r"Two\na\tc\nd\te", ["Two", "a", "c", "d", "e"]),
        (r"Two\na\nc\td", ["Two a", "c", "d"]),
        (r"  -f  A\n  c", ["-f  A", "c"]),
    ],
)
def test_the_texts_of_a_message_are_translated_one_by_one(source: str, texts: list[str]) -> None:
    """Those that an empty line, a list, an indent or a tab parts; the message is written whole."""
    text = f'#, fuzzy\nmsgid "{source}"\nmsgstr "alt"\n\nmsgid "b"\nmsgstr ""\n'
    made, lines, _ = translated(text, "a.po", WordTranslator(str.lower))
    message, _ = polib.pofile(made)
    assert lines == [*texts, "b"]
    assert message.msgstr == source.lower().encode().decode("unicode_escape")
    assert "fuzzy" not in message.flags


def test_a_translation_like_its_source_is_not_written_and_told() -> None:
    """A fuzzy one, which may be wrong, stays; the report counts neither as translated."""
    text = '#, fuzzy\nmsgid "Paris"\nmsgstr "Pairs"\n\nmsgid "Hotel"\nmsgstr ""\n'
    made, _, report = translated(text, "a.po", WordTranslator())
    assert (made, report.translated) == (text, 0)
    assert [remark.what for remark in report.untranslated] == [("its translation is the same",)] * 2


@pytest.mark.parametrize(
    ("name", "text", "copied"),
    [
        ("a.po", 'msgid "%1 of %L2, 5%, %3d and %20\\n(%1)"\nmsgstr ""\n', ["%1 %L2 %20 %1"]),
        (
            "a.json",
            '{"a": {"message": "a $1, $2.50 b", "x": "c $1"}, "message": "d $1"}',
            ["$1", "", ""],
        ),
    ],
)
def test_arguments_are_copied(name: str, text: str, copied: list[str]) -> None:
    """Of Qt and KDE, and of Chrome: numbers behind a percent sign, and `$1`, are none elsewhere."""
    translator = WordTranslator(str.upper)
    _, lines, _ = translated(text, name, translator)
    found = zip(lines, translator.kept, strict=True)
    assert [" ".join(line[a:b] for a, b in kept) for line, kept in found] == copied


def test_a_language_with_one_form_gets_the_plural() -> None:
    """msgstr[0] stands for any number then."""
    made, *_ = translated(
        PO.replace("nplurals=2", "nplurals=1").replace('msgstr[1] ""\n', ""), "a.po"
    )
    assert 'msgstr[0] "%D FILES"' in made


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_and_encodings_of_a_catalogue_stay(end: str) -> None:
    """As they are declared; what an encoding lacks is refused."""
    text = PO.replace("UTF-8", "ISO-8859-1").replace("Hello", "h\xe4llo").replace("\n", end)
    data = text.encode("latin-1")
    made = translated(data, "a.po")[0].decode("latin-1")
    assert 'msgstr "H\xc4LLO"' in made
    assert made.count("\n") == made.count(end)
    with pytest.raises(InputError, match="letters of the translation; convert it with msgconv"):
        translated(data, "a.po", WordTranslator(lambda word: word + "好"))
