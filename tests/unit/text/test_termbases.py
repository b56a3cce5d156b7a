"""Termbases in TBX: which terms are read, and how they are joined."""

import re
import warnings
from contextlib import suppress
from pathlib import Path
from time import thread_time

import pytest

from dragoman import Glossary
from dragoman.errors import InputError

BASIC = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><text><body>
<termEntry id="1"><descrip type="definition">It moves heat.</descrip>
<langSet xml:lang="en-US"><tig><term>heat <hi>pump</hi></term></tig>
<ntig><termGrp><term>HP</term></termGrp></ntig></langSet>
<langSet xml:lang="de"><tig><term>Wärmer</term>
<termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig>
<tig><term>Heizung</term></tig><tig><term>Wärmepumpe</term>
<termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></tig></langSet>
</termEntry></body></text></martif>"""
VERSION_3 = """<tbx style="dct" type="TBX-Basic" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"
 xmlns:min="http://www.tbxinfo.net/ns/min" xmlns:basic="http://www.tbxinfo.net/ns/basic"><text><body>
<conceptEntry id="1"><langSec xml:lang="en"><termSec><term>heat pump</term></termSec>
<termSec><term>HP</term></termSec></langSec><langSec xml:lang="de">
<termSec><term>Wärmer</term><basic:administrativeStatus>supersededTerm-admn-sts</basic:administrativeStatus>
</termSec><termSec><term>Heizung</term></termSec><termSec><term>Wärmepumpe</term><min:administrativeStatus>
preferredTerm-admn-sts</min:administrativeStatus></termSec></langSec></conceptEntry>
</body></text></tbx>"""
MIN = """<?xml version="1.0"?><TBX dialect="TBX-Min"><header><languages source="en" target="de"/>
</header><body><entry id="1"><langGroup xml:lang="en"><termGroup><term>heat pump</term></termGroup>
<termGroup><term>HP</term></termGroup></langGroup><langGroup xml:lang="de">
<termGroup><term>Wärmer</term><termStatus>obsolete</termStatus></termGroup>
<termGroup><term>Heizung</term><termStatus>admitted</termStatus></termGroup>
<termGroup><term>Wärmepumpe</term><termStatus>preferred</termStatus></termGroup></langGroup></entry>
</body></TBX>"""


def _tbx(*concepts: str) -> bytes:
    """Return a termbase with a concept for each text, such as `en=tea de=Tee`."""
    each = (
        "".join(
            f'<langSet xml:lang="{code}"><tig><term>{term}</term></tig></langSet>'
            for code, term in (pair.split("=") for pair in concept.split())
        )
        for concept in concepts
    )
    return f"<martif>{''.join(f'<termEntry>{one}</termEntry>' for one in each)}</martif>".encode()


def _read(content: bytes, *languages: str | None) -> list[str]:
    found = Glossary.parse(content, "g.tbx", languages=languages or ("en", "de"))  # type: ignore[arg-type]
    return ["=".join((term.source, term.target, *term.forms)) for term in found]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("written", [BASIC, VERSION_3, MIN])
def test_a_termbase_of_each_version_is_read(tmp_path: Path, written: str, encoding: str) -> None:
    """The preferred target is first, another is as correct, and one to be avoided is not read.

    An abbreviation is found only in capitals.
    """
    if written is not BASIC:
        encoding = "utf-8"
    (path := tmp_path / "g.tbx").write_bytes(written.format(encoding=encoding).encode(encoding))
    pump, short = Glossary.read(path, ("en", "de"))
    assert (pump.source, pump.target, pump.forms) == ("heat pump", "Wärmepumpe", ("Heizung",))
    assert (short.source, short.target, short.forms) == ("HP", "Wärmepumpe", ("Heizung",))
    assert (pump.case, short.case) == (False, True)
    assert Glossary.read(path).content_hash == Glossary.read(path, ("en", "de")).content_hash


def test_targets_of_the_same_term_in_other_concepts_are_as_correct() -> None:
    """A termbase has homonyms; as a table of two columns it would contradict itself."""
    found = _read(_tbx("en=bank de=Bank", "en=tea de=Tee", "en=Bank de=Ufer", "en=bank de=Bank"))
    assert found == ["bank=Bank=Ufer", "tea=Tee"]


@pytest.mark.parametrize(
    ("languages", "found"),
    [
        (("en", "pt-BR"), ["bus=ônibus"]),
        (("eng_Latn", "pt_PT"), ["bus=autocarro"]),
        (("pt-PT", "en"), ["autocarro=bus"]),
        (("fr", "en"), ["car=bus"]),
    ],
)
def test_terms_are_read_in_the_languages_asked_for(
    languages: tuple[str, str], found: list[str]
) -> None:
    """By their codes, in any form; a variety is not another."""
    content = _tbx("en-GB=bus pt-PT=autocarro pt-BR=ônibus fr=car")
    assert _read(content, *languages) == found


@pytest.mark.parametrize(
    ("src", "found"), [("en", ["truck=Lkw", "lorry=Lkw"]), ("en-GB", ["lorry=Lkw"])]
)
def test_a_language_stands_for_its_regions(src: str, found: list[str]) -> None:
    """A text may have the words of any; one that names its region has those of no other."""
    assert _read(_tbx("en-US=truck en-GB=lorry de=Lkw"), src, "de") == found


@pytest.mark.parametrize("languages", [(None, None), ("en", None), ("en", "it"), ("it", "de")])
def test_languages_that_are_not_clear_or_not_there_are_refused(
    languages: tuple[str | None, str | None],
) -> None:
    """The message names those of the file."""
    with pytest.raises(InputError, match=r"^g.tbx has terms in en, fr, de; give a source and"):
        _read(_tbx("en=tea fr=thé de=Tee"), *languages)


def test_concepts_without_a_term_in_both_languages_are_counted() -> None:
    """They are not terms without a target, which would be copied."""
    content = _tbx("en=tea de=Tee", "en=ice fr=glace", "de=Eis")
    with pytest.warns(UserWarning, match=r"^g.tbx has 2 concepts not read, .* not in them\.$"):
        assert _read(content) == ["tea=Tee"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"<martif>\n<termEntry>", r"^g.tbx is not well-formed XML: .* \(line 2\)"),
        (b'<!DOCTYPE martif [<!ENTITY a "b">]><martif/>', r"^g.tbx declares entities"),
        (b"<martif>" + b"<a>" * 300, r"^g.tbx has more than 200 elements"),
        (b"<martif/>", r"^g.tbx has terms in no language"),
        (
            _tbx("en=tea de=Tee").replace(b"><", b">\n\n<", 1).replace(b"tea", b"x" * 1100),
            r"^g.tbx line 3: .* at most 1,024 can be a term",
        ),
    ],
)
def test_a_hostile_termbase_is_refused(content: bytes, told: str) -> None:
    """With the file, the fault and the line."""
    with pytest.raises(InputError, match=told):
        _read(content)


def test_sections_of_one_language_are_joined() -> None:
    """And one that names none is not read."""
    content = _tbx("en=tea en=chai de=Tee").replace(b"</termEntry>", b"<langSet/></termEntry>")
    assert _read(content, None, None) == ["tea=Tee", "chai=Tee"]


@pytest.mark.parametrize(
    "content", [_tbx(*(f"en=tea de=Tee{n}" for n in range(4000))), b"a\tb" + b"\tc" * 50_000]
)
def test_a_large_termbase_is_read_in_linear_time(content: bytes) -> None:
    """Also if its concepts have the same term, and a table with many columns."""
    begin = thread_time()
    with suppress(InputError):
        _read(content)
    assert thread_time() - begin < 8


def test_a_concept_with_very_many_terms_is_refused() -> None:
    """Each of its sources would get all of its targets."""
    content = _tbx(" ".join(("en=tea", *(f"de=Tee{n}" for n in range(101)))))
    with pytest.raises(InputError, match=r"^g.tbx line 1: the concept has more than 100 terms"):
        _read(content)


@pytest.mark.parametrize(
    ("rows", "unread"),
    [
        (
            "Entry_ID;English_United_States_Def;English_United_States;Term_Info;German_Def;German;"
            "Term_Info;German;Term_Info\n0;;tea;CasePermissive;;Tee;;Aufguss;\n1;;ice;;;;;;\n",
            "'Entry_ID', 'English_United_States_Def', 'Term_Info', 'German_Def', ",
        ),
        (
            '"Term [en]","Description [en]","Term [de]"\n"tea","hot","Tee"\n"ice","",""\n',
            r"'Description \[en\]', are not",
        ),
    ],
)
def test_tables_of_memoq_and_crowdin_are_read(rows: str, unread: str) -> None:
    """The first term of each language; a concept that is not translated is no term."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        (tea,) = Glossary.parse(rows.encode(), "g.csv", csv=True, languages=("en", "de"))
    told = " ".join(str(each.message) for each in raised)
    assert (tea.source, tea.target, tea.forms, tea.case) == ("tea", "Tee", (), False)
    assert re.search(f"{unread}.* has 1 line not read", told)


def test_a_term_like_a_column_of_memoq_is_a_term() -> None:
    """A table without names of columns is read as it is."""
    assert _read(b"a_b\ta_b_Def\n") == ["a_b=a_b_Def"]
