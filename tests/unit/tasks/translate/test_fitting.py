"""Copied text next to words of another script."""

import pytest

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.fitting import fitted
from dragoman.tasks.translate.line import Line
from dragoman.text.glossary import Glossary


@pytest.mark.parametrize(
    ("copied", "text", "expected"),
    [
        ("北京", "I work北京.", "I work 北京."),
        ("北京", "at the北京", "at the 北京"),
        ("北京", "北京is (北京) 北京", "北京 is (北京) 北京"),
        ("서울", "in서울", "in 서울"),
        ("ไทย", "a ไทยword", "a ไทย word"),
        ("Berlin", "in Berlin.", "in Berlin."),
        ("50", "有 50美元吗？", "有50美元吗？"),
        ("50", "有50 美元吗？", "有50美元吗？"),
        ("50", "有 50 美元吗？", "有 50 美元吗？"),
        ("book", "地方， book。", "地方，book。"),
        ("book", "我喜欢 book。", "我喜欢 book。"),
        ("book", "book 很好", "book 很好"),
        ("東京", "나는東京에", "나는東京에"),
        ("茶", "喝 Java茶吗", "喝 Java茶吗"),
    ],
)
def test_what_is_copied_has_the_spaces_of_the_script_beside_it(
    copied: str, text: str, expected: str
) -> None:
    """This holds for kept text, forced text and terms; correct spacing is unchanged."""
    line = Line(copied, [], kept=[(0, len(copied))])
    given = Translation(text=text)
    fit = fitted(given, line, [])
    assert (fit.text, fit is given) == (expected, text == expected)
    plain, term = Line(copied, []), Line(copied, [], glossary=Glossary({copied: ""}))
    assert fitted(given, plain, [(0, len(copied))]).text == expected
    assert fitted(given, term, []).text == expected
    assert fitted(given, plain, []) is given


def test_places_move_with_the_text() -> None:
    """The places of sentences, copied text and alignments move too."""
    line = Line("北京的１", [], kept=[(0, 2)])
    text = "in北京a １"
    given = Translation(text=text, sentences=((0, 4, 0, 7),), copied=((0, 2, 2, 4), (3, 4, 6, 7)))
    found = fitted(given, line, [])
    assert (found.text, found.sentences) == ("in 北京 a 1", ((0, 4, 0, 9),))
    assert [found.text[c:d] for _, _, c, d in found.text_links] == ["北京", "1"]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("他买了１２３本书。", "He bought １２３ books.", "He bought 123 books."),
        ("茶。　书。", "Tea.　A book.", "Tea. A book."),
        ("１２３本", "１２３冊", "１２３冊"),
        ("１２３本", "１２３권", "123권"),
        ("123 books", "Wide １", "Wide １"),
        ("〈１〉茶", "〈１〉 tea １", "〈１〉 tea 1"),
    ],
)
def test_wide_digits_and_spaces_are_of_wide_scripts(source: str, text: str, expected: str) -> None:
    """In other scripts, wide characters of the source become ordinary ones, except kept text."""
    kept = [(0, 3)] if source[0] == "〈" else []
    assert fitted(Translation(text=text), Line(source, [], kept=kept), []).text == expected
