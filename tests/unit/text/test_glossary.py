"""Glossaries: what a file says, where a text has terms, and what became of them."""

import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import InputError
from dragoman.text import glossary
from dragoman.text.glossary import Glossary, GlossaryTerm
from dragoman.text.judging import judge

TERMS = Glossary(
    [
        GlossaryTerm("heat pump", "Wärmepumpe", ("Wärmepumpen",)),
        GlossaryTerm("heat", "Hitze"),
        GlossaryTerm("Apple", case=True),
        GlossaryTerm("apple", "Apfel"),
        GlossaryTerm("苹果", "apple"),
        GlossaryTerm(".NET", ".NET"),
        *(GlossaryTerm("DOG", "Köter"), GlossaryTerm("STREET", "Straße")),
        *(GlossaryTerm("berry", "浆果"), GlossaryTerm("ice", "冰")),
    ]
)


def read(tmp_path: Path, content: str | bytes, name: str = "terms.tsv") -> Glossary:
    """Write a file, and read it."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Glossary.read(path)


def test_a_file_is_read_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte more is refused before it is read."""
    (path := tmp_path / "a.tsv").write_text("a\tb\n")
    monkeypatch.setattr(glossary, "LARGEST", 4)
    assert len(Glossary.read(path)) == 1
    monkeypatch.setattr(glossary, "LARGEST", 3)
    with pytest.raises(InputError, match="larger than 3 bytes"):
        Glossary.read(path)


def test_a_file_has_terms_forms_and_case(tmp_path: Path) -> None:
    """Columns are source, target, further forms, `case`; blank lines and a BOM are nothing."""
    glossary = read(
        tmp_path, "\ufeffheat pump\tWärmepumpe\tWärmepumpen | Pumpe\n\n Apple \t\t\tcase\r\n"
    )
    assert [*glossary] == [
        GlossaryTerm("heat pump", "Wärmepumpe", ("Wärmepumpen", "Pumpe")),
        GlossaryTerm("Apple", case=True),
    ]
    assert [term.kept for term in glossary] == [False, True]
    assert [*read(tmp_path, 'a,b\n"x, y","u ""v"""\n', "terms.csv")] == [
        GlossaryTerm("a", "b"),
        GlossaryTerm("x, y", 'u "v"'),
    ]
    assert [*read(tmp_path, "1,5 kg;1,5 Kilo\na;b\n", "terms.csv")] == [
        GlossaryTerm("1,5 kg", "1,5 Kilo"),
        GlossaryTerm("a", "b"),
    ]
    assert [*Glossary({"a": "b"})] == [GlossaryTerm("a", "b")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a\tb\nA\tb\n", "terms.tsv line 2: the term repeats line 1; remove one of them."),
        (
            "x\ty\na\tb\n\na\tc\n",
            "line 4: the term contradicts line 2, where 'a' becomes 'b'; remove one",
        ),
        ("\tb\n", "line 1: the source is empty; write one, or remove the term."),
        ("a\tb\nc\n", "line 2: it has 1 column; give source, target, and"),
        ("a\tb\tc\tcase\te\n", "line 1: it has 5 columns"),
        ("a\tb" + " " * 200_000 + "c\n", "has 200,002 bytes"),
        ("a" + " " * 200_000 + "b\tc\n", "has 200,002 bytes"),
        ("a\tb\t\tfall\n", "line 1: the column for case has 'fall'; write case, or nothing, and"),
        ("a" * 1025 + "\tb\n", "has 1,025 bytes, and at most 1,024 can be a term; shorten it."),
        ("a\t" + "ü" * 513 + "\n", "has 1,026 bytes"),
        ("a\x01\tb\n", "line 1: 'a\\x01' has a control character; remove it."),
        ("\n\n", "has no terms; write a source, a tab and a target in a line."),
        (b"a\tb\xff\n", "line 1 is not UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_the_line(
    tmp_path: Path, content: str | bytes, sentence: str
) -> None:
    """One sentence, with the file, the line, and what to do."""
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert sentence in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "terms.tsv"))


def test_a_glossary_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone surrogate cannot be written to a file, but given; and too many terms are refused."""
    with pytest.raises(InputError, match="unpaired surrogate"):
        Glossary({"a": "\ud800"})
    monkeypatch.setattr("dragoman.text.glossary.MOST", 2)
    with pytest.raises(InputError, match="line 3: there are more than 2 terms"):
        read(tmp_path, "a\tb\nc\td\ne\tf\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Heat pumps heat a heat pump.", ["heat", "heat", "heat pump"]),
        ("preheat reheated heat_pump", []),
        ("An Apple is no apple.", ["Apple", "apple"]),
        ("APPLE", ["apple"]),
        ("我爱苹果。苹果手机", ["苹果", "苹果"]),
        ("İİ heat", ["heat"]),
        ("ASP.NET and .NET", [".NET", ".NET"]),
        ("hea\u0301t heat\u0301", []),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words(text: str, found: list[str]) -> None:
    """The longest first, in small or capital letters unless `case` says otherwise."""
    occurrences = TERMS.find(text)
    assert [each.term.source for each in occurrences] == found
    assert all(text[each.start : each.end] == each.written for each in occurrences)


@pytest.mark.parametrize(
    ("source", "text", "written"),
    [
        ("café au lait", "Un cafe\u0301\u00a0au  lait.", ["cafe\u0301\u00a0au  lait"]),
        ("cafe\u0301", "Un café, cafe", ["café"]),
        ("a b", "a \u200b b", ["a \u200b b"]),
        ("rock 'n' roll", "a rock ’n’ roll!", ["rock ’n’ roll"]),
        ("l’eau", "l'eau", ["l'eau"]),
        (" heat  pump ", "a heat pump", ["heat pump"]),
        ("e\u2011mail", "an e-mail, e\u2010mail", ["e-mail", "e\u2010mail"]),
        ("heat\u200b pump\ufeff", "\u200fhe\xadat pump\u200e.", ["he\xadat pump\u200e"]),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"]),
    ],
)
@pytest.mark.parametrize("case", [False, True])
def test_terms_are_found_as_they_are_usually_written(
    source: str, text: str, written: list[str], *, case: bool
) -> None:
    """Composed or decomposed, with any apostrophe, hyphen and spaces, and invisible characters."""
    found = Glossary([GlossaryTerm(source, "x", case=case)]).find(text)
    assert [each.written for each in found] == written
    assert all(text[each.start : each.end] == each.written for each in found)


def test_a_kept_term_has_no_invisible_characters() -> None:
    """No model writes those."""
    (found,) = Glossary({"iPhone": ""}).find("an i\xadPhone")
    assert (found.target, found.forms, found.alone) == ("iPhone", ("iPhone",), "iPhone")


def test_no_form_has_invisible_characters() -> None:
    """Nor is one left of these alone."""
    assert GlossaryTerm("heat", "Hi\xadtze", ("Hit\xadze", "\u200b")).forms == ("Hitze",)


def test_a_part_of_what_is_protected_is_no_term() -> None:
    """The whole of it is, and what it is a part of."""
    text, spans = "see {name} of name", [(4, 10)]
    assert [each.start for each in Glossary({"name": "x"}).find(text, spans)] == [14]
    assert [each.start for each in Glossary({"{name}": ""}).find(text, spans)] == [4]
    assert [each.start for each in Glossary({"see {name}": "x"}).find(text, spans)] == [0]


@given(
    st.text("aA .苹\u0301İß’\u00a0", max_size=12), st.text("aA .苹\u0301İß", min_size=1, max_size=3)
)
def test_occurrences_are_apart_and_in_order(text: str, source: str) -> None:
    """Whatever the text is."""
    if not source.strip():
        return
    found = Glossary({source: "x"}).find(text)
    places = [place for each in found for place in (each.start, each.end)]
    assert places == sorted(places)
    assert all(text[each.start : each.end] == each.written for each in found)


@pytest.mark.parametrize(
    ("source", "translation", "outcomes"),
    [
        ("heat pump", "Die Wärmepumpe läuft.", ["applied"]),
        ("heat pump", "Die Wärmepumpen laufen.", ["applied"]),
        ("two heat pumps, heat pump", "Wärmepumpenmotor", ["missed", "missed"]),
        ("heat pump and heat pump", "Wärmepumpe, Wärmepumpe", ["applied", "applied"]),
        ("heat pump and heat pump", "eine Wärmepumpe", ["applied", "missed"]),
        ("HEAT pump", "des Wärmepumpes", ["inflected"]),
        ("heat", "Hitzewell", ["inflected"]),  # an ending of four letters is the longest
        ("heat", "Hitzewelle", ["missed"]),
        ("an apple", "Äpfel", ["missed"]),
        ("an apple", "apfel", ["inflected"]),
        ("Apple", "Apple!", ["applied"]),
        ("Apple", "Apples", ["missed"]),
        ("苹果", "Apple pie", ["applied"]),
        ("A HEAT PUMP RUNS", "EINE WÄRMEPUMPE LÄUFT", ["applied"]),
        ("A heat PUMP runs", "eine WÄRMEPUMPE läuft", ["inflected"]),
        ("A DOG IN THE STREET.", "EIN KÖTER AUF DER STRAẞE.", ["applied", "applied"]),
        ("A DOG IN THE STREET.", "Ein KÖTER auf der STRAẞE.", ["inflected", "inflected"]),
        ("berry ice", "浆果冰", ["applied", "applied"]),  # the end of one begins the next
        ("berry ice", "冰浆果", ["applied", "applied"]),
    ],
)
def test_what_became_of_terms(source: str, translation: str, outcomes: list[str]) -> None:
    """Listed forms are applied, words with their stem inflected; each place counts once.

    A form in capitals is applied in capitals alone, also where the source has some.
    """
    assert judge(TERMS.find(source), translation) == outcomes


def test_a_hostile_glossary_is_no_burden() -> None:
    """Terms that begin alike, and the same term thousands of times: seconds become hours else."""
    glossary = Glossary({"a " + "b " * n + "c": "x" for n in range(1, 500)})
    assert glossary.find("a b " * 10_000) == []
    assert len(glossary.find("a b b c " * 10_000)) == 10_000
    found = Glossary({"a": "x", "b": "tree"}).find("a b " * 5_000)
    translation = "x " * 4_000 + "trees " * 6_000
    outcomes = judge(found, translation)
    counts = [outcomes.count(each) for each in ("applied", "inflected", "missed")]
    assert counts == [4_000, 5_000, 1_000]


@pytest.mark.parametrize(
    "names",
    [
        "原文,译文",
        "术语,译文",
        "源语言,目标语言",
        "中文,英文",
        "英语,中文",
        "Source,Target",
        "Quelle,Ziel",
        "English,German",
        "English (US),Deutsch",
        "en,de",
        "Term,Translation",
        "Source term,target_text",
        "术语,翻译",
    ],
)
def test_a_first_row_of_names_is_no_term(names: str) -> None:
    """It is said; in other rows the same words are one."""
    rows = f"{names}\ntea,Tee\n".encode()
    with pytest.warns(UserWarning, match="^g.csv line 1, '.*' with '.*', is read as the names of"):
        assert [term.source for term in Glossary.parse(rows, "g.csv", csv=True)] == ["tea"]
    rows = f"tea,Tee\n{names}\n".encode()
    assert len(Glossary.parse(rows, "g.csv", csv=True)) == 2
    rows = f"sep=,\n{names}\ntea,Tee\n".encode()
    with pytest.warns(UserWarning, match=r"^g.csv line 1, .* is read as the names of"):
        assert len(Glossary.parse(rows, "g.csv", csv=True)) == 1


@pytest.mark.parametrize(
    ("names", "languages", "source"),
    [
        ("中文\t英文", ("en", "zh"), "tea"),
        ("Chinese\tEnglish (US)", ("eng_Latn", "zho_Hans"), "tea"),
        ("中文\t英文", ("zh", "en"), "茶"),
        ("中文\t英文", (None, None), "茶"),
        ("原文\t译文", ("en", "zh"), "茶"),
    ],
)
def test_columns_are_read_in_the_order_of_the_languages(
    tmp_path: Path, names: str, languages: tuple[str | None, str | None], source: str
) -> None:
    """Where the first row names both languages of the translation."""
    (path := tmp_path / "g.tsv").write_text(f"{names}\n茶\ttea\n", "utf-8")
    with pytest.warns(UserWarning, match="line 1, .* is read as the names of"):
        assert [term.source for term in Glossary.read(path, languages)] == [source]


@pytest.mark.parametrize(
    ("rows", "terms", "told"),
    [
        ("tea,Tee,en,de\nTee,tea,de,EN\n", "tea=Tee", "has 1 line not read, .* is not in it.$"),
        ("tea,Tee,EN,DE\n", "tea=Tee", ""),  # DeepL
        ("en,de,pos,description\ntea,Tee,noun,hot\n", "tea=Tee", "'pos', 'description', are not"),
        ("en,fr,de\ntea,thé,Tee\nice,glace,\n", "tea=Tee", "has 1 line not read, "),  # Google
        ("ID;English;English_Def;German\n1;tea;hot;Tee\n", "tea=Tee", "'ID', 'English_Def', are"),
        ("source,context,target\ntea,x,Tee\n", "tea=Tee", "other columns, 'context', are not"),
        ("en,de,other forms\ntea,Tee,Tees|Tee-\n", "tea=Tee=Tees=Tee-", "names of the columns"),
        ("en,de\ntea,Tee,Tees,case\n", "tea=Tee=Tees", "names of the columns"),
        (
            "source,target,source_lang,target_lang\ntea,Tee,en,de\nice,glace,en,fr\n",
            "tea=Tee",
            "write it in another line. g.csv has 1 line not read, ",
        ),
        ("tea,Tee,,,,\n", "tea=Tee", ""),
        ("sep=\t\ntea\tTee\n", "tea=Tee", ""),
        ("it,es\ntea,Tee\n", "it=es tea=Tee", ""),
        ("tea\tTee\n", "tea=Tee", ""),
        ('"green\n tea","grüner\tTee"\n', "green tea=grüner Tee", ""),
        ("tea,Tee\rice,Eis\r", "tea=Tee ice=Eis", ""),
    ],
)
def test_files_of_other_tools_are_read(rows: str, terms: str, told: str) -> None:
    """By the names of their columns, and never a note, a language or a word class as a form."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        found = Glossary.parse(rows.encode(), "g.csv", csv=True, languages=("en", "de"))
    assert " ".join("=".join((t.source, t.target, *t.forms)) for t in found) == terms
    assert bool(raised) == bool(told)
    assert re.search(told, " ".join(str(each.message) for each in raised))


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        ("English,French", ("en", "de")),
        ("中文,英文", ("en", "de")),
        ("en,fr", ("en", "de")),
        ("en,fr,es", ("en", "de")),
        ("en,de-AT,de-DE", ("en", "de")),
        ("en-US,en-GB,de", ("en", "de")),
        ("source,target,term", ("en", "de")),
        ("en,de,fr", (None, None)),
    ],
)
def test_names_of_columns_give_one_for_each_side(
    names: str, languages: tuple[str | None, str | None]
) -> None:
    """Terms in a third language would be forced otherwise."""
    src, tgt = languages[0] or "source", languages[1] or "target"
    told = f"^g.csv line 1 names columns, .* name one column {src} and one {tgt}, or if it is a"
    with pytest.raises(InputError, match=told):
        Glossary.parse(f"{names}\ntea,x,y\n".encode(), "g.csv", csv=True, languages=languages)


def test_a_row_has_the_columns_that_the_first_row_names() -> None:
    """A term without a target is not translated; its cell is empty, not absent."""
    names = "source,pos,target\npump,noun"
    with pytest.warns(UserWarning, match="names of"), pytest.raises(InputError, match="2 columns;"):
        Glossary.parse(f"{names}\n".encode(), "g.csv", csv=True)
    with pytest.warns(UserWarning, match="names of"):
        (term,) = Glossary.parse(f"{names},\n".encode(), "g.csv", csv=True)
    assert term.kept


def test_quotes_of_spreadsheets_are_no_part_of_a_term() -> None:
    """In a TSV too, whose other quotes are read as they are; in a CSV each must be closed."""
    found = Glossary.parse(b'"a ""b"", c"\td\n5" disk\t"\n', "g.tsv")
    assert [each.source for each in found] == ['a "b", c', '5" disk']
    with pytest.raises(InputError, match=r"^g.csv line 2: a quote is opened and not closed"):
        Glossary.parse(b'a,b\nc,"d\ne,f\n', "g.csv", csv=True)


def test_a_first_row_that_names_one_language_is_told() -> None:
    """It may name the columns by a language that is not known, and is a term all the same."""
    rows = b"English,Upper Sorbian\nman,mu\xc5\xbe\n"
    with pytest.warns(
        UserWarning, match=r"^g.csv line 1, 'English' with 'Upper Sorbian', is read as a"
    ):
        assert len(Glossary.parse(rows, "g.csv", csv=True)) == 2


@pytest.mark.parametrize("rest", ["case\tcase", "case|cases", "\tcase", "cases"])
def test_a_form_that_may_be_the_word_case_is_told(rest: str) -> None:
    """Alone in the third column it may be meant for the fourth; elsewhere it is what it says."""
    with pytest.warns(UserWarning, match="^g.tsv line 2 has case in the third column, where it"):
        glossary = Glossary.parse(b"tea\tTee\nFall\tinstance\tcase\n", "g.tsv")
    assert [term.forms for term in glossary] == [(), ("case",)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Glossary.parse(f"Fall\tinstance\t{rest}\n".encode(), "g.tsv")) == 1
