"""Features of the form of words, as numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.word_features import COUNT, word_features, word_shape


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("Basel", "Xxx"),
        ("McDonald", "XxXxx"),
        ("U.S.", "X.X."),
        ("1999-2001", "dd-dd"),
        ("Örebro", "Xxx"),
        ("清华", "清华"),
        ("...!", "..!"),
        ("", ""),
    ],
)
def test_shapes(word: str, shape: str) -> None:
    """Runs of characters of one kind are shortened to two."""
    assert word_shape(word) == shape


def test_they_are_the_same_everywhere() -> None:
    """Folders move between machines: the hash does not depend on the process or platform."""
    expected = (17878, 4781, 17358, 17377, 16550, 8276, 7715, 3808, 5851, 7160)
    assert word_features("Basel", 20_000) == expected


@given(st.text(max_size=12), st.integers(2, 50))
def test_each_is_a_row_of_the_table(word: str, rows: int) -> None:
    """Any text has all of them; row 0 stands for no word."""
    found = word_features(word, rows)
    assert len(found) == COUNT
    assert all(0 < number < rows for number in found)


def test_what_is_alike_has_features_in_common() -> None:
    """Words that differ in case, suffix or prefix share features."""

    def common(first: str, second: str) -> int:
        pairs = zip(word_features(first, 1 << 20), word_features(second, 1 << 20), strict=True)
        return sum(a == b for a, b in pairs)

    assert common("Basel", "basel") == COUNT - 2
    assert common("Winterthur", "Winterberg") == 4
    assert common("Zollikon", "Pfaffikon") == 5
    assert common("Basel", "why") == 0
