"""Lines to chunks and back to lines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.readers import make_classifier, make_tagger
from tests.unit.tasks.tiny import make_tokenizer, make_translator
from tests.unit.tasks.tiny_generator import make_generator

import dragoman
from dragoman.tasks.lines import joined, one_line, to_chunks

TOKENIZER = make_tokenizer()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(TEXTS, max_size=4), st.integers(1, 12))
def test_chunks_hold_the_whole_line(lines: list[str], limit: int) -> None:
    """Nothing but white space is lost, whatever the limit; blank lines have no chunk."""
    for line, chunks in zip(lines, to_chunks(lines, TOKENIZER, limit), strict=True):
        text = "".join(TOKENIZER.decode(ids) for ids in chunks)
        assert "".join(text.split()) == "".join(line.split())
        assert bool(chunks) == bool(line.strip())
        assert all(chunks)


@given(TEXTS)
def test_a_translation_is_one_line(text: str) -> None:
    """No reader, however it counts lines, sees two."""
    assert len(one_line(text).splitlines()) <= 1
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ([], ""),
        (["One.", "Two."], "One. Two."),
        (["我喜欢。", "你呢？"], "我喜欢。你呢？"),
        (["我喜欢。", "Yes."], "我喜欢。Yes."),
        (["One.", "", "Two."], "One. Two."),
        (["", "Two."], "Two."),
    ],
)
def test_parts_are_joined_as_their_script_writes(parts: list[str], line: str) -> None:
    """A space where words are spaced, none beside Chinese, none beside nothing."""
    assert joined(parts)[0] == line


def test_what_is_no_text_is_told() -> None:
    """Each task takes one str or an iterable of them, and a stream an iterable."""
    translator, generator = make_translator(), make_generator()
    classifier, tagger = make_classifier(), make_tagger()
    wrong: dict[str, Any] = {"1 is None": None, "2 is 5": ["a", 5], "1 is b'a'": b"a"}
    for ask in (translator.translate, generator.generate, classifier.classify, tagger.tag):
        for which, what in wrong.items():
            with pytest.raises(TypeError, match=f"Text {which}; give a str, or an iterable"):
                ask(what)
    for stream in (translator.stream, generator.each, classifier.stream, tagger.stream):
        with pytest.raises(TypeError, match="'the cat' is one str; give an iterable"):
            next(stream("the cat"))


def test_what_is_no_path_is_told() -> None:
    """Before anything is read."""
    with pytest.raises(TypeError, match="The model folder is None; give a str or a Path"):
        dragoman.load(None)  # type: ignore[arg-type]
