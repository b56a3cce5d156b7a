"""XLIFF of translation tools: segments of units, their tags, and messages that choose a form."""

import re
from pathlib import Path

import pytest
from tests.unit.documents.test_bilingual import targets
from tests.word_translator import WordTranslator, backwards, translated

from dragoman.data.memory import memory_entries
from dragoman.documents.choices import LEFT
from dragoman.documents.formats import read_document

LOCKED = "units that are marked as not to be translated, or locked"
IN_PART = "units that are translated in part"


def cut_unit(target: str, said: str = "") -> str:
    """A unit of three segments, of which the second is a number, in a frame with tags."""
    marks = (f"<mrk mtype='seg' mid='{n}'>{t}</mrk>" for n, t in enumerate(("One.", "2", "Three.")))
    return (
        "<file source-language='en' target-language='de'><trans-unit id='u'><source>x</source>"
        f"<seg-source><g id='9'>{' '.join(marks)}</g> </seg-source>{target}"
        f"<seg-defs>{said}</seg-defs></trans-unit></file>"
    )


@pytest.mark.parametrize("target", ["", "<target/>", "<target state='new'></target>"])
def test_the_segments_of_a_unit_are_translated_one_by_one(target: str) -> None:
    """Words stay in their segments in any order, and what is around these is that of the source."""
    made, lines, _ = translated(cut_unit(target), "a.xlf", WordTranslator(str.upper, backwards))
    assert lines == ["One.", "Three."]
    assert made == cut_unit(
        "<target state=\"needs-review-translation\"><g id='9'><mrk mtype='seg' mid='0'>.ONE</mrk> "
        "<mrk mtype='seg' mid='1'>2</mrk> <mrk mtype='seg' mid='2'>.THREE</mrk></g> </target>"
    )


@pytest.mark.parametrize(
    ("locked", "expected"), [("0", [" 2 THREE. "]), ("2", ["ONE. 2  "]), ("02", [])]
)
def test_a_locked_segment_of_trados_stays(locked: str, expected: list[str]) -> None:
    """And it is told; the others are translated."""
    said = "".join(f"<seg id='{n}' locked='{str(n in locked).lower()}'/>" for n in "02")
    made, _, report = translated(cut_unit("", said), "a.sdlxliff")
    assert targets(made) == expected
    assert report.left == (f"{LOCKED}: {'; '.join(f'unit u, segment {n}' for n in locked)}",)


@pytest.mark.parametrize(
    ("first", "last", "said", "expected", "told"),
    [
        (">Eins.</mrk>", "/>", "", "Eins. THREE.", ""),
        (">Eins.</mrk>", "></mrk>", "<seg id='0' conf='Draft'/>", "Eins. THREE.", ""),
        (">One.</mrk>", ">Drei.</mrk>", "", "ONE. Drei.", ""),
        (">One.</mrk>", ">Drei.</mrk>", "<seg id='0' conf='Translated'/>", "One. Drei.", ""),
        (">One.</mrk>", ">Drei.</mrk>", "<seg id='0' conf='Draft'/>", "ONE. Drei.", ""),
        ("/>", "/>", "<seg id='0' locked='true'/>", " THREE.", "locked: unit u, segment 0"),
        ("/>", "/>", "<seg id='2' conf='Translated'/>", "ONE. ", "translation: unit u, segment 2"),
        (">Eins.<mrk mtype='x-sdl-location'/></mrk>", ">Drei.</mrk>", "", "Eins. Drei.", ""),
    ],
)
def test_a_unit_that_is_translated_in_part_gets_the_rest(
    first: str, last: str, said: str, expected: str, told: str
) -> None:
    """Segments that have a translation, or are locked or confirmed, stay as they are."""
    one, three = f"<mrk mtype='seg' mid='0'{first}", f"<mrk mtype='seg' mid='2'{last}"
    text = cut_unit(f"<target>{one} {three}</target>", said)
    made, _, report = translated(text, "a.sdlxliff")
    assert targets(made) == [expected]
    left = [why for why in report.left if "in part" not in why]
    assert bool(left) is bool(told)
    assert all(why.endswith(told) for why in left)


MESSAGE = (
    "{{n, plural, =1 {{{}}} other {{<x id='START_LINK'/>{}<x id='CLOSE_LINK'/> {} <x id='I'/>}} }}"
)


@pytest.mark.parametrize("name", ["a.xlf", "b.xlf"])
def test_the_branches_of_a_message_are_translated_in_xliff(name: str) -> None:
    """Each with the tags that are in it, which go with their words."""
    source = MESSAGE.format("one &amp; two", "dogs", "bark")
    unit = {"a.xlf": "trans-unit", "b.xlf": "segment"}[name]
    text = f"<file><{unit}><source>\n {source}\n</source></{unit}></file>"
    assert translated(text, name, WordTranslator(), languages=(None, None))[0] == text
    made, *_ = translated(text, name, WordTranslator(str.upper, backwards))
    expected = (
        "{n, plural, =1 {TWO &amp; ONE} other "
        "{BARK <x id='START_LINK'/>DOGS<x id='CLOSE_LINK'/> <x id='I'/>} }"
    )
    assert f"> {expected} </target></{unit}></file>" in made


@pytest.mark.parametrize(
    "kept", ["{n, plural, other {a}}", "www.a.com", "<mrk mtype='protected'>ACME</mrk>", "ONE"]
)
def test_a_segment_that_gets_no_translation_has_its_source_in_a_new_target(kept: str) -> None:
    """An empty one would be a text that is missing; what is a message is told."""
    text = cut_unit("").replace("One.", kept)
    made, _, report = translated(text, "a.xlf")
    assert made.partition("<target")[2].count(kept) == 1
    assert ">THREE.</mrk>" in made
    assert report.left == (f"{LEFT}: unit u, segment 0",) * kept.startswith("{")


SEGMENTS = "<mrk mtype='seg'{}>one</mrk> <mrk mtype='seg'{}>two</mrk>"


@pytest.mark.parametrize("element", ["source", "seg-source"])
@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        ("", "", ["one two"]),
        (" mid='1'", " mid='1'", ["one two"]),
        (" mid='1'", " mid='2'", ["one", "two"]),
    ],
)
def test_segments_that_cannot_be_told_apart_are_one_text(
    element: str, first: str, second: str, texts: list[str]
) -> None:
    """Without numbers, or with one twice."""
    cut = SEGMENTS.format(first, second)
    text = f"<file><trans-unit><{element}>{cut}</{element}></trans-unit></file>"
    text = text.replace("<seg-", "<source>one two</source><seg-")
    assert translated(text, "a.xlf", WordTranslator())[:2] == (text, texts)
    assert targets(translated(text, "a.xlf")[0]) == ["ONE TWO"]


SAID = "><source>a b</source><seg-defs><seg id='1' {}/></seg-defs>"
EMPTY = "><source>a b</source><target/>"
PARTS = "<mrk mtype='seg' mid='1'>B</mrk>", "<mrk mtype='seg' mid='2'/>"
TWO = f"{PARTS[0]} <mrk mtype='seg' mid='2'>C</mrk>"  # its target has no place for the second
CONFIRMED = "units that are confirmed without a translation"
MESSAGES = [
    "{n, plural, other {a\ufdd0 <x/>}}",
    "Now {n, plural, one {a} other {b}}",
    "{n, plural, one {a}",
    "<![CDATA[{n, select, x {a}}]]>",
]


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        (SAID.format("locked='true' conf='Draft'"), LOCKED),
        (SAID.format("conf='Translated'"), CONFIRMED),
        (f" mq:status='Proofread'{EMPTY}", CONFIRMED),
        (f" m:confirmed='1'{EMPTY}", CONFIRMED),
        (f" approved='yes'{EMPTY}", CONFIRMED),
        *((f"><source>{message}</source>", LEFT) for message in MESSAGES),
        (" translate='no'><source>a b</source>", LOCKED),
        (" mq:locked='locked'><source>a b</source>", LOCKED),
        (" translate='no'><source>1</source>", ""),
        ("><source>b</source><target>{} {}</target>".format(*PARTS), IN_PART),
        (f"><source>x</source><seg-source>{TWO}</seg-source><target>{PARTS[0]}</target>", IN_PART),
    ],
)
def test_a_unit_that_stays_is_told(unit: str, told: str) -> None:
    """What is said of segments holds where none is cut; a translation of a model would pass for
    one that a person has confirmed; words of a message that is not read may be names.
    """
    text = f"<file><trans-unit id='u'{unit}</trans-unit></file>"
    made, _, report = translated(text, "a.xlf")
    assert (made, report.left) == (text, (f"{told}: unit u",) * bool(told))


def test_only_files_that_are_translated_get_the_language() -> None:
    """Not others, comments and CDATA; a template into its own language is no longer one."""
    unit = "<trans-unit><source>a b</source><note><![CDATA[<file source-language='en'>]]></note>"
    places = {
        "<!-- <file source-language='en'> -->": "",
        "<file source-language='fr'>": "",
        "<file original='a>b' source-language='en'>": "de",
        "<file source-language='en' target-language='en'>": "de",
        "<file source-language='x-dev' target-language='und'>": "de",
    }
    text = "".join(f"{tag}{unit}</trans-unit></file>" for tag in places if tag[1] == "f")
    made, *_ = translated(f"<xliff>{next(iter(places))}{text}</xliff>", "a.xlf")
    for tag, into in places.items():
        assert (tag in made) is not bool(into)
        rest = re.sub(" target-language='\\w+'", "", tag.removeprefix("<file"))
        assert made.count(f'<file target-language="de"{rest}') == bool(into)
    assert made.count("<![CDATA[<file source-language='en'>]]>") == 4
    assert made.count("A B") == 3


def test_an_existing_target_keeps_its_name() -> None:
    """Its prefix may be another than that of the source."""
    spaces = "xmlns:x='u' xmlns:y='u'"
    text = f"<file {spaces}><trans-unit><x:source>a</x:source><y:target/></trans-unit></file>"
    assert ">A</y:target>" in translated(text, "a.xlf")[0]


def test_tags_are_pairs_around_elements_and_not_across_their_edges() -> None:
    """A tag that begins in an element and ends behind it has no partner."""
    source = "<bpt id='1'/>a <g id='2'>b <bpt id='3'/>c</g> d<ept id='1'/> e<ept id='3'/>"
    text = f"<file><trans-unit><source>{source}</source></trans-unit></file>"
    (segment,) = read_document(text.encode(), "a.xlf").segments
    kinds = [tag.kind for tag in segment.source.tags]
    assert kinds == ["open", "open", "void", "close", "close", "void"]


@pytest.mark.parametrize("ends", ["", "1", "2", "31", "12"])
def test_tags_without_their_ends_are_not_lost(ends: str) -> None:
    """Beside those that have them."""
    begun = "".join(f"<bpt id='{n}'>b</bpt>" for n in "123")
    ended = "".join(f"<ept id='{n}'>e</ept>" for n in ends)
    text = f"<file><trans-unit><source>see {begun}one{ended} now</source></trans-unit></file>"
    made = translated(text, "a.xlf")[0].partition("<target")[2]
    for n in "123":
        assert made.count(f"<bpt id='{n}'>") == 1
        assert made.count(f"<ept id='{n}'>") == (n in ends)


def test_a_unit_inside_a_unit_with_segments_is_translated() -> None:
    """In a broken file."""
    inner = "<trans-unit><source>inner</source></trans-unit>"
    mark = f"<mrk mtype='seg' mid='1'>outer <ph>{inner}</ph></mrk>"
    source = f"<source>x</source><seg-source>{mark}</seg-source>"
    text = f"<file><trans-unit>{source}</trans-unit></file>"
    assert read_document(text.encode(), "a.xlf").written(lambda _: None) == text.encode()
    assert ">INNER</target>" in translated(text, "a.xlf")[0]


@pytest.mark.parametrize("ends", ["123", "132", "213", "231", "312", "321"])
def test_tags_that_begin_side_by_side_are_nested_whatever_their_ends(ends: str) -> None:
    """As memoQ writes them: all go with their words, also where some pairs have another key."""
    tags = {
        "1": ("<bpt id='1'>{}</bpt>", "<ept id='1'>{}</ept>"),
        "2": ("<bpt id='2' rid='1'>a</bpt>", "<ept id='4' rid='1'>/a</ept>"),
        "3": ("<bpt id='3' rid='2'>b</bpt>", "<ept id='5' rid='2'>/b</ept>"),
    }
    begun, ended = "".join(tags[n][0] for n in "123"), "".join(tags[n][1] for n in ends)
    text = f"<file><trans-unit><source>see {begun}one{ended} now</source></trans-unit></file>"
    made, *_ = translated(text, "a.mqxliff", WordTranslator(str.upper, backwards))
    opened = "".join(tags[n][0] for n in reversed(ends))
    assert f">NOW {opened}ONE{ended} SEE</target>" in made


PHRASE = (
    "<file><trans-unit m:confirmed='1' id='1'>"
    "<source>Press {b>Save {1>now&lt;1}&lt;b} or {2}wait {0}</source>"
    "<target>Jetzt {1>speichern&lt;1} {2}oder {0}</target>"
    "<m:tunit-metadata><m:mark id='1'/><m:mark id='2'/></m:tunit-metadata></trans-unit></file>"
)


def test_markup_of_phrase_is_tags() -> None:
    """It stands in the text, as `{b>bold<b}`, and goes with its words."""
    text = re.sub("<target>.*</target>", "<target/>", PHRASE.replace("ed='1'", "ed='0'"))
    translator = WordTranslator(str.upper, backwards)
    assert translated(text, "a.mxliff")[1] == ["Press Save now or wait {0}"]
    made, *_ = translated(text.replace(" {0}", ""), "a.mxliff", translator)
    assert targets(made.replace("m:", "")) == ["WAIT OR {b>{1>NOW<1} SAVE<b} PRESS{2}"]
    crossed = text.replace("Save", "<g id='1'>Save").replace("or {2}wait {0}", "or</g>")
    made = translated(crossed, "a.mxliff", translator)[0].replace("&gt;", ">")
    assert [made.count(each) for each in ("{b>", "&lt;b}", "<g id='1'>", "{1>")] == [2] * 4
    plain = text.replace("<source>", "<source><![CDATA[").replace("</source>", "]]></source>")
    made, *_ = translated(plain.replace("&lt;", "<").replace(" {0}", ""), "a.mxliff")
    assert "<![CDATA[PRESS {b>SAVE {1>NOW<1}<b} OR {2}WAIT]]></target>" in made
    assert "{b>" in translated(text.replace("m:", "x-"), "a.xlf")[1][0]


def test_markup_of_phrase_is_no_text_of_a_pair(tmp_path: Path) -> None:
    """As that of other tools is not."""
    path = tmp_path / "a.mxliff"
    path.write_text(PHRASE)
    (entry,) = (each for each in memory_entries(path, ("en", "de")) if each.pairs)
    assert entry.pairs == [("Press Save now or wait {0}", "Jetzt speichern oder {0}")]
