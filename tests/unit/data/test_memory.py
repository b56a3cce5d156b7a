"""Translation memories as data: all finished pairs, as lines; the others are counted."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.office import PO, TMX, XLIFF_1, XLIFF_2

from dragoman.data.corpus import CorpusConfig, numbered_pairs, read_pairs
from dragoman.data.prepare import prepare
from dragoman.errors import InputError
from dragoman.languages import LangCodes


def read_memory(
    path: Path, languages: LangCodes, left: Counter[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Return the pairs of a memory."""
    src_lang, tgt_lang = languages
    return read_pairs(CorpusConfig(tm=str(path), src_lang=src_lang, tgt_lang=tgt_lang), left=left)


SEGMENTS = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>One. <g id="3">Two.</g> Three. Four.</source>
<seg-source><mrk mtype="seg" mid="1">One.</mrk> <g id="3"><mrk mtype="seg" mid="2">Two <mrk \
mtype="x-sdl-comment">cats</mrk>.</mrk></g> <mrk mtype="seg" mid="3">Three.</mrk> <mrk mtype="seg" \
mid="4">Four.</mrk></seg-source>
<target><g id="3"><mrk mtype="seg" mid="2">Zwei Katzen.</mrk></g> <mrk mtype="seg" mid="1">Eins.\
</mrk> <mrk mtype="seg" mid="3"/></target></trans-unit>
<trans-unit id="2"><source>Five. Six.</source><seg-source><mrk mtype="seg" mid="1">Five.</mrk> \
<mrk mtype="seg" mid="2">Six.</mrk></seg-source><target>Fünf, sechs.</target></trans-unit>
</body></file></xliff>"""
FILES = {
    "a.tmx": TMX.replace("<seg></seg>", "<seg>eins\n <ph>{x}</ph>zwei</seg>"),
    "a.xlf": XLIFF_1,
    "b.xliff": XLIFF_2,
    "a.sdlxliff": SEGMENTS,
    "a.mqxliff": XLIFF_1,
    "a.mxliff": XLIFF_1,
    "a.po": PO
    + 'msgid "%d cat"\nmsgid_plural "%d cats"\nmsgstr[0] "eine"\nmsgstr[1] "%d Katzen"\n',
    "a.csv": 'id,DE,en\n1,"ein ""Wort"", zwei\nZeilen","a word, two"\n2,,nothing\n3\n',
    "b.csv": "one,eins\n",
    "c.csv": 'de;en\n"eins; zwei";one, two\n',
    "d.csv": "one; two,eins\nthree;3,drei\n",
    "a.tsv": 'source\ttarget\none "word\tein "Wort\n',
}
EXPECTED = {
    "a.tmx": ([("One two", "eins zwei"), ("Five", "fünf")], {"not in both languages": 1}),
    "a.xlf": ([("Done", "Fertig")], {"not finished": 5}),
    "b.xliff": ([("Done", "Fertig")], {"not finished": 3}),
    "a.sdlxliff": (
        [("One.", "Eins."), ("Two cats.", "Zwei Katzen."), ("Five. Six.", "Fünf, sechs.")],
        {"an empty side": 1, "not finished": 1},
    ),
    "a.mqxliff": ([("Done", "Fertig")], {"not finished": 5}),
    "a.mxliff": ([("Done", "Fertig")], {"not finished": 5}),
    "a.po": (
        [("Done", "Fertig"), ("%d cat", "eine"), ("%d cats", "%d Katzen")],
        {"not finished": 5},
    ),
    "a.csv": (
        [("a word, two", 'ein "Wort", zwei Zeilen')],
        {"an empty side": 1, "fewer columns than two": 1},
    ),
    "b.csv": ([("one", "eins")], {}),
    "c.csv": ([("one, two", "eins; zwei")], {}),
    "d.csv": ([("one; two", "eins"), ("three;3", "drei")], {}),
    "a.tsv": ([('one "word', 'ein "Wort')], {}),
}


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf", "a.sdlxliff", "a.csv"])
def test_codes_of_three_letters_mean_the_same(name: str, tmp_path: Path) -> None:
    """Three-letter codes are equivalent, in the file and in the requested languages."""
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    assert [*read_memory(path, ("eng", "deu"))] == EXPECTED[name][0]
    for two, three in (("en", "eng"), ("de", "ger"), ("DE", "deu")):
        path.write_text(
            re.sub(rf'(["\',]){two}(["\'\n])', rf"\1{three}\2", path.read_text("utf-8"))
        )
    assert [*read_memory(path, ("en", "de"))] == EXPECTED[name][0]


@pytest.mark.parametrize("name", FILES)
def test_the_finished_pairs_of_a_memory_are_read(name: str, tmp_path: Path) -> None:
    """Each format, compressed or not, gives single lines without markup."""
    pairs, reasons = EXPECTED[name]
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        data = FILES[name].encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        left = Counter[str]()
        assert [*read_memory(path, ("en", "de"), left)] == pairs
        assert left == reasons


def test_languages_are_matched_whatever_their_regions(tmp_path: Path) -> None:
    """An equal region goes first; TMX needs both languages, XLIFF declares its own."""
    path = tmp_path / "a.tmx"
    variants = {"pt": "a", "pt-BR": "b", "en_US": "c"}
    tuvs = (f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in variants.items())
    path.write_text(f"<tmx><tu>{''.join(tuvs)}</tu></tmx>", "utf-16")
    assert [*read_memory(path, ("en", "pt-br"))] == [("c", "b")]
    assert [*read_memory(path, ("EN", "pt-PT"))] == [("c", "a")]
    assert not [*read_memory(path, ("en", "de"))]
    with pytest.raises(InputError, match="name two by --src-lang and --tgt-lang"):
        next(read_memory(path, (None, "de")))
    path.write_text(FILES["a.tmx"], "utf-8")
    with pytest.raises(InputError, match=r"languages \(EN, de, en, en-US\); name two by"):
        next(read_memory(path, (None, "de")))
    other = tmp_path / "a.xlf"
    other.write_text(XLIFF_1, "utf-8")
    left = Counter[str]()
    assert not [*read_memory(other, ("fr", "de"), left)]
    assert left == {"not in both languages": 6}


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        ("<seg-source>{1}{2}{1}</seg-source>", "{1}{2}", [("a b", "n1 n2")]),
        ("<seg-source>{1}{2}</seg-source>", "{1}{2}", [("n1", "n1"), ("n2", "n2")]),
        ("", "{1}{0}", []),
    ],
)
def test_segments_are_pairs_where_they_are_the_same(
    tmp_path: Path, source: str, target: str, pairs: list[tuple[str, str]]
) -> None:
    """A duplicate segment number is not used, and an empty segment is not translated."""
    segments = ["<mrk mtype='seg' mid='0'/>"]
    segments += [f"<mrk mtype='seg' mid='{n}'>n{n} </mrk>" for n in (1, 2)]
    cut, done = source.format(*segments), target.format(*segments)
    path, unit = tmp_path / "a.xlf", f"<source>a b</source>{cut}<target>{done}</target>"
    languages = "source-language='en-GB' target-language='x-dev'"
    path.write_text(f"<file {languages}><trans-unit>{unit}</trans-unit></file>")
    assert [*read_memory(path, ("en", "de"))] == pairs


def test_a_memory_is_read_as_it_is_taken(tmp_path: Path) -> None:
    """Damage is reported when it is reached, and a unit that never ends has a limit."""
    path = tmp_path / "a.tmx"
    unit = '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>'
    path.write_text("<tmx>" + unit * 10_000 + "<oops", "utf-8")
    pairs = read_memory(path, ("en", "de"))
    assert next(pairs) == ("a", "b")
    with pytest.raises(InputError, match=r"a.tmx is not well-formed XML: .* \(line 1\)"):
        list(pairs)
    path.write_text("<tmx><tu>" + "x" * (1 << 25), "utf-8")
    with pytest.raises(InputError, match="has a tu of more than 16,777,216 bytes"):
        list(read_memory(path, ("en", "de")))


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.txt", b"", "is not a translation memory: its name does not end in .tmx, .xlf"),
        ("a.po", b'"charset=utf-8"\xff', "is not in the encoding that it declares"),
        ("a.csv", b'a,b\na,"b\nc,d\n', "line 2: a quote is opened and not closed; close it"),
        ("a.tsv", b"1\tone\t2\teins\n", "name the two columns in the first row, or keep only"),
        ("b.csv", b"a,b\rc,d\n", "line 1: a carriage return is within a cell; put"),
        ("a.tmx.gz", b"no gzip", "is damaged or not compressed as its name says"),
        ("a.tmx", b"<!DOCTYPE a [<!ENTITY b 'c'>]><tmx/>", "declares entities"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    """The error names the file."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=sentence):
        list(read_memory(tmp_path / name, ("en", "de")))


def test_a_cell_is_as_long_as_a_line_may_be(tmp_path: Path) -> None:
    """A longer cell may be an unclosed quote."""
    path = tmp_path / "a.csv"
    line = "x" * (1 << 20) + "\n"
    path.write_text(f'"{line}"y,z\n', "utf-8")
    assert [*read_memory(path, ("en", "de"))] == [(line.strip() + " y", "z")]
    path.write_text(f'a,b\n"{line * 16}"y,z\n', "utf-8")
    with pytest.raises(InputError, match=r"line 2: a quote .* more than 16,777,216 characters"):
        list(read_memory(path, ("en", "de")))


def test_a_run_says_what_it_left(make_encoder: Callable[..., Any], tmp_path: Path) -> None:
    """The counts are cached with the ids, and depend on the languages."""
    path = tmp_path / "a.tmx"
    path.write_text(FILES["a.tmx"], "utf-8")
    for src_lang, used, count in (("en", 2, 1), ("fr", 0, 3), ("en", 2, 1)):
        corpus = CorpusConfig(tm=str(path), src_lang=src_lang, tgt_lang="de")
        dataset = prepare(corpus, make_encoder(), make_encoder(), tmp_path / "cache")
        assert [*dataset.report(100)][:2] == [
            f"{path}: {used} of {used} pairs are used.",
            f"{path}: not in both languages, left out: {count}.",
        ]
    assert len([*read_pairs(corpus)]) == 2


STATES = {
    "Trados": ("<sdl:seg-defs><sdl:seg id='1' {}/></sdl:seg-defs>", "", ""),
    "memoQ, Phrase, XLIFF 1.2": ("", "{}", ""),
    "a target of XLIFF 1.2": ("", "", "{}"),
}


@pytest.mark.parametrize(
    ("tool", "said", "counts"),
    [
        *(("Trados", f"conf='{conf}'", True) for conf in ("Translated", "ApprovedSignOff")),
        ("Trados", "conf='ApprovedTranslation' origin='mt'", True),
        *(("Trados", f"conf='{conf}'", False) for conf in ("Draft", "RejectedTranslation")),
        ("Trados", "origin='mt'", False),
        *(("memoQ", f"mq:status='{s}'", True) for s in ("ManuallyConfirmed", "Proofread")),
        *(
            ("memoQ", f"mq:status='{s}'", False)
            for s in ("NotStarted", "Pretranslated", "Rejected")
        ),
        ("Phrase", "m:confirmed='0'", False),
        ("Phrase", "m:confirmed='2'", True),
        ("XLIFF 1.2", "approved='no'", False),
        ("XLIFF 1.2", "approved='yes'", True),
        ("target", "state='translated'", True),
        ("target", "state='needs-review-translation'", False),
        ("target", "state='new'", False),
        ("target", "state-qualifier='exact-match'", True),
        ("target", "state='translated' state-qualifier='leveraged-mt'", False),
        ("target", "state='final' state-qualifier='leveraged-mt'", True),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_what_nobody_has_confirmed_is_no_pair(
    tool: str, said: str, tmp_path: Path, *, counts: bool, cut: bool
) -> None:
    """Each tool marks confirmation in its own way, Trados for each segment."""
    after, of_unit, of_target = next(STATES[names] for names in STATES if tool in names)
    one, eins = ("<mrk mtype='seg' mid='1'>One</mrk>", "<mrk mtype='seg' mid='1'>Eins</mrk>")
    path = tmp_path / "a.xlf"
    path.write_text(
        f"<file><trans-unit {of_unit.format(said)}><source>One</source>"
        f"{f'<seg-source>{one}</seg-source>'}"
        f"<target {of_target.format(said)}>{eins if cut else 'Eins'}</target>"
        f"{after.format(said)}</trans-unit></file>"
    )
    left = Counter[str]()
    assert bool([*read_memory(path, ("en", "de"), left)]) is counts
    assert left == ({} if counts else {"not finished": 1})


def test_of_two_segments_the_confirmed_one_is_a_pair(tmp_path: Path) -> None:
    """Text deleted as a tracked change is left out."""
    one, two = (f"<mrk mtype='seg' mid='{n}'>{t}</mrk>" for n, t in ((1, "One"), (2, "Two")))
    drei = "<mrk mtype='seg' mid='2'><mrk mtype='x-sdl-deleted'>Drei</mrk>Zwei</mrk>"
    path = tmp_path / "a.sdlxliff"
    path.write_text(
        f"<file><trans-unit><source>One Two</source><seg-source>{one} {two}</seg-source>"
        f"<target>{one} {drei}</target><sdl:seg-defs><sdl:seg id='1' conf='Draft'/>"
        "<sdl:seg id='2' conf='Translated'/></sdl:seg-defs></trans-unit></file>"
    )
    assert [*read_memory(path, ("en", "de"))] == [("Two", "Zwei")]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("a.tmx", [1, 3]),
        ("b.xliff", [1]),
        ("a.sdlxliff", [1, 1, 2]),
        ("a.po", [23, 41, 41]),
        ("a.csv", [2]),
        ("c.csv", [2]),
        ("d.csv", [1, 2]),
    ],
)
def test_a_pair_has_the_number_of_its_line_or_unit(
    tmp_path: Path, name: str, numbers: list[int]
) -> None:
    """Headers, lines within cells and unusable units count, so that the pair can be located."""
    path = tmp_path / name
    path.write_text(FILES[name], "utf-8")
    corpus = CorpusConfig(tm=str(path), src_lang="en", tgt_lang="de")
    assert [number for number, _ in numbered_pairs(corpus)] == numbers
