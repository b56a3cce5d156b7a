"""Lines to chunks and back to lines."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.processors import ROUNDING
from tests.unit.tasks.readers import make_classifier, make_tagger
from tests.unit.tasks.tiny import make_tokenizer, make_translator
from tests.unit.tasks.tiny_generator import make_generator

import dragoman
from dragoman.errors import InputError
from dragoman.tasks.lines import encode_each, is_blank, joined, one_line, to_chunks
from dragoman.text.unreadable import encode_or_reject

TOKENIZER = make_tokenizer()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(TEXTS, max_size=4), st.integers(1, 12))
def test_chunks_hold_the_whole_line(lines: list[str], limit: int) -> None:
    """Nothing that shows is lost, whatever the limit; blank lines have no chunk."""
    for line, chunks in zip(lines, to_chunks(lines, TOKENIZER, limit), strict=True):
        assert chunks is not None
        text = "".join(TOKENIZER.decode(ids) for _, ids in chunks)
        assert [c for c in text if not is_blank(c)] == [c for c in line if not is_blank(c)]
        assert bool(chunks) == (not is_blank(line))
        assert all(ids == TOKENIZER.encode(text) != [] for text, ids in chunks)
        assert all(len(ids) <= limit or len(text) == 1 for text, ids in chunks)


@pytest.mark.parametrize("text", ["\u200b", "\ufeff", "\u00ad \u200d", "\ufe0f", "\x00", "\u3164"])
def test_a_text_that_shows_nothing_is_empty(text: str) -> None:
    """Every task says so, with nothing invented and no NaN; beside others too."""
    lines = ["the cat", text, "a dog"]
    for ask in (make_translator().translate, make_classifier().classify, make_tagger().tag):
        before, empty, after = ask(lines)
        assert empty.flags == ("empty",)
        assert "NaN" not in json.dumps(empty.to_dict())
        assert [before, after] == ask([lines[0], lines[2]])


def test_a_text_that_cannot_be_encoded_refuses_itself_alone() -> None:
    """Its result is empty and flagged; those beside it are what they are without it."""
    lines = ["the cat", "a \ud800 dog", "a dog sees"]
    for ask in (make_translator().translate, make_classifier().classify, make_generator().generate):
        before, unreadable, after = ask(lines)
        assert (str(unreadable), unreadable.flags) == ("", ("unreadable",))
        assert str(before) == str(ask(lines[:1])[0])
        assert str(after)
    tagger = make_tagger()
    first, tagged, last = tagger.tag(lines)
    assert (tagged.flags, tagged.spans) == (("unreadable",), ())
    assert {word.tag for word in tagged.words} == {"O"}
    assert [first, last] == tagger.tag([lines[0], lines[2]])
    for scorer in (make_translator(), make_generator()):
        scored = scorer.score([("a cat", "a dog"), ("a", "\ud800"), ("a", "")])
        assert [one.flags for one in scored] == [(), ("unreadable",), ("empty",)]
        assert (scored[1].tokens, scored[1].log_prob) == ((), 0.0)
        (alone,) = scorer.score([("a cat", "a dog")])
        assert scored[0].tokens == alone.tokens
        assert scored[0].token_log_probs == pytest.approx(
            alone.token_log_probs, rel=0, abs=ROUNDING
        )


def test_a_library_that_panics_is_an_error_with_the_number_of_the_text() -> None:
    """A panic of Rust is a BaseException; Ctrl-C is none of the library's."""

    class PanicException(BaseException):
        pass

    def encode(error: BaseException, texts: Sequence[str]) -> list[list[int]]:
        if "bad" in texts:
            raise error
        return [[1] for _ in texts]

    for error in (PanicException("index out of bounds"), RuntimeError("INTERNAL")):
        failing = partial(encode, error)
        with pytest.raises(InputError, match="Text 2, 'bad', fails in the tokenizer's library"):
            encode_or_reject(failing, ["good", "bad", "good"])
        reading = partial(encode_or_reject, failing)
        assert encode_each(reading, ["good", "bad", "good"]) == [[1], None, [1]]
    for error_class in (KeyboardInterrupt, MemoryError):
        with pytest.raises(error_class):
            encode_or_reject(partial(encode, error_class()), ["bad"])


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
