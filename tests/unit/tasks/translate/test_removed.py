"""Text that is removed from a line and put back into the translation of the rest."""

import re
from collections.abc import Sequence
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.removed import Shortened, _apart, directions, unseen, whole_words
from dragoman.text.spans import Span

LINES = st.text("ab ,苹\u0301", max_size=14)


@st.composite
def lines_with_spans(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """Return a line and visible spans of it, which may overlap."""
    line = draw(LINES)
    ends = st.tuples(st.integers(0, len(line)), st.integers(0, len(line)))
    spans = draw(st.lists(ends.map(lambda s: (min(s), max(s))), max_size=4))
    return line, [(a, b) for a, b in spans if line[a:b].strip()]


def linked(line: str, text: str, spans: tuple[Span, ...], written: tuple[Span, ...]) -> Translation:
    """Return a translation of a line with each span linked to a written one."""

    def align() -> tuple[Alignment, ...]:
        import torch

        return (
            Alignment(
                src_tokens=tuple(line[a:b] for a, b in spans),
                tgt_tokens=tuple(text[a:b] for a, b in written),
                weights_TS=torch.eye(len(spans)),
                src_spans=spans,
                tgt_spans=written,
            ),
        )

    sentences = ((0, len(line), 0, len(text)),) if line else ()
    return Translation(text=text, sentences=sentences).aligned_by(align)


def identity(line: str) -> Translation:
    """Return a line as its own translation, with each letter linked to itself."""
    spans = tuple((n, n + 1) for n, letter in enumerate(line) if not letter.isspace())
    return linked(line, line, spans, spans)


@given(lines_with_spans())
def test_what_is_taken_out_comes_back(drawn: tuple[str, list[Span]]) -> None:
    """With an identity translation the line is restored, except for adjacent white space."""
    line, spans = drawn[0], [*whole_words(*drawn)]
    left = Shortened(line, spans)
    found = left.restored(identity(left.text))
    assert "".join(found.text.split()) == "".join(line.split())
    for a, b, c, d in found.text_links:
        assert line[a:b] == found.text[c:d] != ""
    assert {(a, b) for a, b, *_ in found.copied} >= {
        (a + word.start(), a + word.end())
        for a, b in spans
        for word in re.finditer(r"\S+", line[a:b])
        if all((a, b) == other or b < other[0] or other[1] < a for other in spans)
        and not any(line[min(b, o[1]) : max(a, o[0])].strip() == "" for o in spans if o != (a, b))
    }
    for a, b, c, d in found.sentences:
        assert (a, b, c, d) == (0, len(line), 0, len(found.text))


@given(lines_with_spans(), lines_with_spans())
def test_other_places_move_with_their_text(
    drawn: tuple[str, list[Span]], others: tuple[str, list[Span]]
) -> None:
    """A place in the rest keeps its letters; a partly removed one is dropped."""
    line, spans = drawn
    left = Shortened(line, spans)
    inside = [(a, b) for a, b in others[1] if b <= len(line) and line[a:b].strip()]
    for place in inside:
        moved = left.moved([place])
        assert [left.text[a:b] for a, b in moved] in ([], [line[slice(*place)]])


def test_it_goes_where_the_words_before_it_went() -> None:
    """The links decide; it goes after a whole word and keeps its spaces."""
    assert [*whole_words("ein Novák!", [(7, 8)])] == [(4, 9)]
    left = Shortened("I love 🍕 pizza 😀😀", [(7, 8), (15, 16), (16, 17)])
    assert left.text == "I love pizza "
    spans = ((0, 1), (2, 6), (7, 12))
    written = ((0, 3), (4, 9), (10, 15))
    found = left.restored(linked(left.text, "Ich liebe Pizza", spans, written))
    assert found.text == "Ich liebe 🍕 Pizza 😀😀"


def test_a_word_is_looked_through_once() -> None:
    """This holds for any number of unknown letters in it, and of sentences in the line."""
    calls = 0

    class Counted(str):
        def __getitem__(self, place: SupportsIndex | slice) -> str:
            nonlocal calls
            calls += 1
            return super().__getitem__(place)

    line = Counted("Ж" * 500 + " a " + "Ж" * 500)
    spelt = [(n, n + 1) for n, letter in enumerate(line) if letter == "Ж"]
    assert [*whole_words(line, spelt)] == [(0, 500), (503, 1003)]
    assert calls < 5 * len(line)


WORDS = ("{n}", "%s", "词", "😀")


@pytest.mark.parametrize(
    ("line", "some", "beside", "written"),
    [
        ("a man ({}) sleeps", ["😀"], ("n", " "), " {}"),
        ("a man ({}) sleeps", ["😀"], ("(", ")"), "{}"),
        ("a man ({}) sleeps", ["😀"], ("人", "睡"), "{}"),
        ("a man ({}) sleeps", ["😀"], ("", ""), "{}"),
        ("喜欢{}。", WORDS, ("s", " "), " {}"),
        ("喜欢{}的书", WORDS, ("k", "b"), " {} "),
        ("喜欢{}。", WORDS, ("?", ""), " {}"),
        ("你好，{}。", WORDS, (",", " "), " {}"),
        ("ชอบ{}มาก", WORDS, ("s", "."), " {}"),
        ("{}님은", WORDS, ("", "w"), "{} "),
        ("喜欢{}。", WORDS, ("(", ")"), "{}"),
        ("un{}s", WORDS, ("n", "s"), "{}"),
        ("$5{}", WORDS, ("5", " "), "{}"),
        ("第3{}", WORDS, ("3", "."), "{}"),
        ("喜欢{}的", WORDS, ("と", "が"), "{}"),
        ("I like {} now", WORDS, ("买", "雨"), " {} "),
        ("we bought {}, and", WORDS, ("买", "雨"), " {} "),
        ("I like {}.", WORDS, ("欢", "。"), " {}"),
        ("I like {}.", WORDS, ("는", "을"), " {}"),
        ("Ich mag {}.", WORDS, ("g", "."), " {}"),
        ("I use {} daily", WORDS, ("，", "每"), "{} "),
        ("I use {} daily", WORDS, ("用", ""), " {}"),
        ("喜欢{}是", ["」", "！", "…", "？！"], ("s", " "), "{}"),
        ("grew 50{} last year", ["%", "——"], ("0", "年"), "{}"),
        ("it grew {} and fell", ["%", "——"], ("长", "也"), "{}"),
        ("it grew {} and fell", ["%", "——"], ("是", " "), " {}"),
        ("it grew {} and fell", ["%", "——"], ("е", "и"), " {} "),
        ("it grew {} and fell", ["%", "——"], ("다", "그"), " {} "),
    ],
)
def test_the_spaces_around_it_are_those_of_the_script_beside_it(
    line: str, some: Sequence[str], beside: tuple[str, str], written: str
) -> None:
    """Words of spaced scripts are separated from text that had no spaces, even at lost brackets.

    Ideographs have two spaces or none; punctuation has none next to them or in front.
    """
    start = line.index("{")
    for kept in some:
        text = line.replace("{}", kept)
        (gap,) = Shortened(text, [(start, start + len(kept))]).gaps
        assert _apart(gap, *beside) == written.replace("{}", kept)


@pytest.mark.parametrize(
    "line", ["增长了50%，——但是", "张三 (李四) 来了", "带上了 #话题", "“一” “二”"]
)
def test_a_line_has_no_new_spaces(line: str) -> None:
    """Text at the start of a word is put after the space before it."""
    for n, letter in enumerate(line):
        if not letter.isalnum() and not letter.isspace():
            left = Shortened(line, [(n, n + 1)])
            assert left.restored(identity(left.text)).text == line


def test_neighbours_share_a_space() -> None:
    """Two parts that are put back at the same place have one space between them."""
    left = Shortened("我用{a}和{b}", [(2, 5), (6, 9)])
    found = left.restored(linked(left.text, "I use", ((0, 1), (1, 2)), ((0, 1), (2, 5))))
    assert found.text == "I use {a} {b}"
    left = Shortened("use {a} and {b} now", [(4, 7), (12, 15)])
    found = left.restored(linked(left.text, "使用吧", ((0, 3),), ((0, 2),)))
    assert found.text == "使用 {a} {b} 吧"


def test_characters_that_do_not_show_are_no_part_of_words() -> None:
    """They are removed, except those around the whole line."""
    line = "\u2067\u200fso\xadlo \u2068a\u2069\u200b\u2069"
    left = Shortened(line, unseen(line))
    assert left.text == "solo a"
    found = left.restored(linked(left.text, "ein a", ((0, 4), (5, 6)), ((0, 3), (4, 5))))
    assert found.text == "\u2067ein a\u2069"
    assert {*found.text_links} >= {(2, 7, 1, 4), (9, 10, 5, 6)}
    line = "\u2067a\u2069 \u2067b\u2069"
    assert Shortened(line, unseen(line)).text == "a b"
    assert Shortened(line, unseen(line)).restored(identity("a b")).text == "a b"


def test_directions_are_those_of_the_whole_line() -> None:
    """Each pair that encloses the whole line counts, however many there are, in linear time."""
    for line, count in {
        "\u2067a b\u2069": 1,
        " \u2066\u202ba\u202c\u2069 ": 2,
        "\u2068a\u2069 and \u2068b\u2069": 0,
        "\u2068a \u2068b\u2069\u2069": 1,
        "\u2067a\u202c": 0,
        "\u2067a": 0,
        "\u2067\u2069": 1,
        "a\u2069": 0,
        "": 0,
        "\u2067" * 100_000 + "\u2069" * 100_000: 100_000,
    }.items():
        spans = [*directions(line)]
        assert len(spans) == 2 * count
        text = line.strip()
        assert Shortened(line, spans).text.strip() == text[count : len(text) - count]


def test_what_a_sentence_begins_with_is_a_part_of_it() -> None:
    """It belongs to the sentence in the line and in the translation."""
    given = Translation(text="x. y", sentences=((0, 2, 0, 2), (3, 4, 3, 4)))
    found = Shortened("a. 😀 b", [(3, 4)]).restored(given)
    assert (found.text, found.sentences) == ("😀 x. y", ((0, 2, 0, 4), (3, 6, 5, 6)))
