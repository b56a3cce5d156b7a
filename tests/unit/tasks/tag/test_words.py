"""Words of a text and where they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.models.folder import Words
from dragoman.tasks.tag.tagger import join_words, split_words

KINDS = st.sampled_from(["spaced", "characters"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Anna lives in Basel.", ["Anna", "lives", "in", "Basel", "."]),
        ("U.S. shares (up 3.5%)", ["U.S.", "shares", "(", "up", "3.5", "%", ")"]),
        ("twenty-one, don't", ["twenty-one", ",", "don't"]),
        ("清华大学MBA", ["清", "华", "大", "学", "MBA"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_words_that_are_spaced(text: str, words: list[str]) -> None:
    """White space and punctuation part words; Chinese characters stand by themselves."""
    assert [place.text for place in split_words(text, "spaced")] == words


def test_words_that_are_characters() -> None:
    """Every character but white space."""
    found = split_words("3 岁 MBA", "characters")
    assert [place.text for place in found] == ["3", "岁", "M", "B", "A"]


@given(st.text(), KINDS)
def test_places_are_where_the_words_are(text: str, kind: Words) -> None:
    """Each is a stretch of the text, in order, and what no word has is white space."""
    end = 0
    for place in split_words(text, kind):
        assert text[place.start : place.end] == place.text
        assert not text[end : place.start].strip()
        end = place.end
    assert not text[end:].strip()


@given(st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1)), KINDS)
def test_joined_words_are_where_they_are(words: list[str], kind: Words) -> None:
    """In the text that joining gives, each word stands at its place."""
    text, places = join_words(words, kind)
    assert [place.text for place in places] == words
    assert [text[place.start : place.end] for place in places] == words
    assert len(text) == sum(map(len, words)) + max(0, len(words) - 1) * (kind == "spaced")
