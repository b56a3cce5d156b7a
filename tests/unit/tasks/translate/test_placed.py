"""Lines with placeholders of the vocabulary, and their restoration."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.tiny import make_tokenizer, make_translator
from tests.unit.tasks.translate.conftest import Write
from tests.unit.tasks.translate.test_removed import identity

from dragoman.decoding import Decoding
from dragoman.tasks.results import Translation
from dragoman.tasks.translate import course
from dragoman.tasks.translate.line import Line
from dragoman.tasks.translate.rewriting import Placed
from dragoman.text.glossary import Glossary
from dragoman.text.placeholders import PLACEHOLDERS
from dragoman.text.spans import Span
from dragoman.text.train import with_specials

PIECES = [
    *("the cat", " ", ", ", "{name}", "%s", "<b>", "</b>", "www.x.org/{id}", "😀", "我", "(", "7"),
    *(PLACEHOLDERS[0], PLACEHOLDERS[5]),
]
FIRST, SECOND = PLACEHOLDERS[0], PLACEHOLDERS[1]


@st.composite
def lines_with_kept(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """Return a line and kept places, which may begin or end in white space."""
    line = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=14)))
    ends = draw(st.lists(st.integers(0, len(line)), max_size=4, unique=True).map(sorted))
    return line, [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False) if line[a:b].strip()]


@given(lines_with_kept())
def test_what_placeholders_stand_for_comes_back(drawn: tuple[str, list[Span]]) -> None:
    """A line that is its own translation is itself, links and all; what was copied is told."""
    line, kept = drawn
    placed = Placed.of(line, kept)
    found = placed.restored(replace(identity(placed.text), tokens=tuple(placed.text)))
    assert found.text == "".join(found.tokens) == line
    assert found.flags == ()
    assert all((a, b) == (c, d) for a, b, c, d in found.text_links)
    assert found.sentences == (((0, len(line)) * 2,) if line else ())
    for span, (start, _) in zip(placed.spans, placed.places, strict=True):
        copied = [(a, b) for a, b, *_ in found.copied if span[0] <= a < b <= span[1]]
        words = [line[a:b] for a, b in copied]
        assert words == line[slice(*span)].split()
        assert placed.text[start] in PLACEHOLDERS


def test_what_has_placeholders() -> None:
    """Kept and protected text except emoji; overlaps are merged; all get one, or none."""
    line = "see {name} at www.x.org/{id} 😀 now"
    assert Placed.of(line, [(0, 4)]).text == "\ufdd0 \ufdd1 at \ufdd2 😀 now"
    assert Placed.of("{a}" * 8, []).text == PLACEHOLDERS
    for plain in ("{a}" * 9, f"{'{a}' * 8} {SECOND}"):
        assert Placed.of(plain, []).text == plain
        assert Placed.of(plain, []).restored(identity(plain)).text == plain


def test_the_way_back_of_what_a_model_writes() -> None:
    """Moved, lost, duplicated and invented ones are handled in each of the n best, with flags."""
    placed = Placed.of("a {x} b %s", [])
    other = Translation(text=f"{FIRST}{PLACEHOLDERS[4]} c")
    found = Translation(
        text=f"c {SECOND} {FIRST}.", flags=("split", "numbers"), alternatives=(other,)
    ).each(placed.restored)
    assert found.text == "c %s {x}."
    assert found.flags == ("split",)
    assert found.copied == ((8, 10, 2, 4), (2, 5, 5, 8))
    assert found.alternatives[0].text == "{x} c"
    assert found.alternatives[0].flags == ("placeholders",)
    own = Placed.of(f"a {SECOND} {FIRST}", [])
    written = own.restored(Translation(text=f"{FIRST}{PLACEHOLDERS[4]} {SECOND}{FIRST}"))
    assert written.text == f"{SECOND} {FIRST}"
    tokens = ("c", f" {SECOND}", " ", FIRST, FIRST, PLACEHOLDERS[4])
    assert placed.restored(Translation(text="", tokens=tokens)).tokens == (
        *("c", " %s", " ", "{x}"),
        *("", ""),
    )


@pytest.fixture(autouse=True)
def ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat each retry as no worse than the attempt before it."""
    monkeypatch.setattr(course, "severity", lambda _: 0)


TRANSLATOR = make_translator(tokenizer=with_specials(make_tokenizer(), PLACEHOLDERS))
"""Random weights and a vocabulary with placeholders."""


@pytest.mark.parametrize("line", ["the {name} sees", "the www.x.org/{id}, (<b>cat</b>) 😀"])
def test_a_translation_keeps_what_placeholders_stand_for(line: str) -> None:
    """The model reads them; those that it does not write are forced or put back."""
    spans = Placed.of(line, []).spans
    found = TRANSLATOR.translate(line)
    for start, end in spans:
        assert found.text.count(line[start:end]) == 1
    assert {"urls", "tags", "placeholders", "symbols"}.isdisjoint(found.flags)
    assert not {*found.text}.intersection(PLACEHOLDERS)
    first = TRANSLATOR.translate(line, options=Decoding(retry=False))
    read = first.alignments[0]
    places = zip(read.src_tokens, read.src_spans, strict=True)
    shown = {line[start:end]: (start, end) for start, end in spans}
    assert [span for token, span in places if token in shown] == [*spans]
    assert all(shown.get(token, span) == span for token, span in places)
    assert not {*"".join((*first.tokens, *read.tgt_tokens))}.intersection(PLACEHOLDERS)


@pytest.mark.parametrize("lost", ["", f"{FIRST} {FIRST}"])
@pytest.mark.parametrize("helps", ["forced", "out", "plain"])
def test_what_is_lost_or_doubled_is_tried_again(
    attempts: Callable[[Write], None], lost: str, helps: str
) -> None:
    """Retries force it, then remove and put it back, then translate without placeholders."""
    tried = list[str]()

    def write(line: Line, out: Sequence[Span], forced: Sequence[Span]) -> str:
        way = "plain" if not line.placed else "out" if out else "forced" if forced else "first"
        tried.append(way)
        return "b {x}" if way == "plain" else f"b {FIRST}" if way == helps else lost

    attempts(write)
    ways = ["first", "forced", "out", "plain"]
    assert TRANSLATOR.translate("a {x}").text == "b {x}"
    assert tried == ways[: ways.index(helps) + 1]
    tried.clear()
    first = TRANSLATOR.translate("a {x}", options=Decoding(retry=False))
    assert first.text == lost.replace(FIRST, "{x}", 1).replace(FIRST, "")
    assert tried == ["first"]
    TRANSLATOR.translate("a {x}", kept=[(2, 5)], options=Decoding(retry=False))
    assert tried == ["first", "first", "plain"]


def test_what_is_kept_has_placeholders_too() -> None:
    """Names and code are copied; a glossary does not affect them."""
    found = TRANSLATOR.translate("the cat sees big houses", kept=[(4, 7)])
    assert "cat" in found.text
    assert "kept" not in found.flags
    assert (4, 7) in {(a, b) for a, b, *_ in found.copied}


@pytest.mark.parametrize("line", ["{x}", "www.x.org, {a}{b} <br>!", FIRST, "😀", "...", "{a}" * 9])
def test_what_has_nothing_to_translate_is_copied(
    line: str, attempts: Callable[[Write], None]
) -> None:
    """The model is not called; lines with other words or a prefix are translated."""
    tried = list[str]()

    def write(line: Line, *_: object) -> str:
        tried.append(line.text)
        return line.text

    attempts(write)
    found = TRANSLATOR.translate(f" {line}")
    assert (found.text, found.flags, tried) == (line, (), [])
    assert {line[a - 1 : b - 1] for a, b, *_ in found.copied} == {*line.split()}
    assert TRANSLATOR.translate("the cat", kept=[(0, 7)]).text == "the cat"
    assert tried == []
    TRANSLATOR.translate(line, options=Decoding(retry=False))
    TRANSLATOR.translate(line, prefix="the")
    TRANSLATOR.translate(f"{line} cat")
    TRANSLATOR.translate(f"{line} 7")
    assert TRANSLATOR.translate("😀", glossary=Glossary({"😀": "cat"})).text == "cat"
    assert len(tried) >= 4


def test_a_prefix_goes_without() -> None:
    """A prefix is plain text; no placeholder of the model is left."""
    found = TRANSLATOR.translate("the {name} sees", prefix="big {name}")
    assert found.text.startswith("big {name}")
    assert not {*found.alignments[0].src_tokens}.intersection(PLACEHOLDERS)
    assert not {*found.text}.intersection(PLACEHOLDERS)
