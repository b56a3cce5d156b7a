"""Splitting lines into chunks and joining the results."""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.processors import ROUNDING
from tests.unit.tasks.readers import make_classifier, make_tagger
from tests.unit.tasks.tiny import make_tokenizer, make_translator
from tests.unit.tasks.tiny_generator import make_generator

import dragoman
from dragoman.documents.formats import read_document
from dragoman.errors import InputError
from dragoman.evaluate import evaluate
from dragoman.tasks.lines import encode_each, is_blank, joined, one_line, to_chunks
from dragoman.text.glossary import Glossary
from dragoman.text.unreadable import encode_or_reject
from dragoman.train.device import choose_device

TOKENIZER = make_tokenizer()
NONE: Any = None
STR: Any = "<p>a</p>"
PAIRS: list[Any] = [("a", "b")]
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
    """It is flagged in every task, without invented output or NaN, also next to other texts."""
    lines = ["the cat", text, "a dog"]
    for ask in (make_translator().translate, make_classifier().classify, make_tagger().tag):
        before, empty, after = ask(lines)
        assert empty.flags == ("empty",)
        assert "NaN" not in json.dumps(empty.to_dict())
        assert [before, after] == ask([lines[0], lines[2]])


def test_a_text_that_cannot_be_encoded_refuses_itself_alone() -> None:
    """Its result is empty and flagged; its neighbours are unaffected."""
    lines = ["the cat", "a \ud800 dog", "a dog sees"]
    generate: Any = partial(make_generator().generate, seed=0)
    for ask in (make_translator().translate, make_classifier().classify, generate):
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
    """Rust panics are BaseExceptions and are converted; Ctrl-C is not."""

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
        (["안녕하세요.", "학생입니다."], "안녕하세요. 학생입니다."),
        (["One.", "", "Two."], "One. Two."),
        (["", "Two."], "Two."),
    ],
)
def test_parts_are_joined_as_their_script_writes(parts: list[str], line: str) -> None:
    """Parts are joined by a space, also in Korean, except next to Chinese or empty parts."""
    assert joined(parts)[0] == line


def test_what_is_no_text_is_told() -> None:
    """Tasks take a str or an iterable of them, and streams take an iterable."""
    translator, generator = make_translator(), make_generator()
    classifier, tagger = make_classifier(), make_tagger()
    wrong: dict[str, Any] = {"1 is None": None, "2 is 5": ["a", 5], "1 is b'a'": b"a"}
    wrong["1 is {'en': 'a'}"] = {"en": "a"}  # its items are the names of its columns
    for ask in (translator.translate, generator.generate, classifier.classify, tagger.tag):
        for which, what in wrong.items():
            with pytest.raises(TypeError, match=f"Text {which}; give a str, or an iterable"):
                ask(what)
    streams = translator.stream, generator.each, classifier.stream, tagger.stream
    for stream in (*streams, tagger.stream_words):
        with pytest.raises(TypeError, match="'the cat' is one str; give an iterable"):
            next(stream("the cat"))
        windows: tuple[Any, ...] = (0, -1, 1.5, "x")
        for window in windows:
            with pytest.raises(InputError, match=f"window is {window!r}; it must be"):
                next(stream(["the cat"], window=window))
    for stream in streams:
        with pytest.raises(TypeError, match="Text 3 is None; give a str"):
            [*stream(["the", "cat", NONE], window=2)]
    for answering in (translator, generator, classifier, tagger):
        with pytest.raises(TypeError, match="'the cat' is one str; give an iterable"):
            answering.submit("the cat")
    for wrong_prompt in (lambda: next(generator.stream(NONE)), lambda: generator.fill("a", NONE)):
        with pytest.raises(TypeError, match="Text 1 is None; give a str"):
            wrong_prompt()


@pytest.mark.parametrize("sentence", [["b", NONE], "the cat", iter(["the"]), NONE])
def test_what_is_no_sentence_of_words_is_told(sentence: Any) -> None:  # noqa: ANN401
    """The error has the number of the sentence, in a stream as well. A text is not split."""
    tagger, message = make_tagger(), f"Sentence 2 is {sentence!r:.40}; give a list of words"
    for ask in (tagger.tag_words, lambda words: [*tagger.stream_words(words, window=1)]):
        with pytest.raises(TypeError, match=re.escape(message)):
            ask([["a"], sentence])


@pytest.mark.parametrize("pair", ["ab", ("a", None), ("a",), None, ("a", "b", "c")])
def test_what_is_no_pair_is_told(pair: Any) -> None:  # noqa: ANN401
    """A str of two letters is not a pair either."""
    for answering in (make_translator(), make_generator()):
        with pytest.raises(TypeError, match=f"Pair 2 is {re.escape(repr(pair))}; give two str"):
            answering.score([("the", "cat"), pair])


WRONG_ARGUMENTS: list[tuple[Callable[[], object], str]] = [
    (lambda: Glossary({"dog": NONE}), "A term has None for a source or a target; give a str"),
    (lambda: Glossary([*PAIRS]), r"A term is \('a', 'b'\); give GlossaryTerm, or a mapping"),
    (lambda: evaluate([NONE], ["a"]), "Line 1 is None; give a list of texts, each a str"),
    (lambda: evaluate(["ab"], "ab"), "Line 1 is 'a'; give a list of texts, each a str"),
    (lambda: read_document(STR, "a.html"), "a.html is given as a str; give its bytes"),
    (lambda: choose_device(NONE), 'The device is None; give "cpu", "cuda" or "auto"'),
    (lambda: dragoman.train_model("town", "out=a"), r"are 'out=a'; give a list, as \['out=a'\]"),
    (lambda: dragoman.train_model(NONE), "The recipe is None; give its name, its path or a"),
    (lambda: dragoman.load(NONE), "The model folder is None; give a str or a Path"),
]


@pytest.mark.parametrize(("ask", "message"), WRONG_ARGUMENTS)
def test_an_argument_of_another_type_is_told(ask: Callable[[], object], message: str) -> None:
    """The error says what it is and what to give."""
    with pytest.raises(TypeError, match=message):
        ask()


def test_what_is_nearly_of_the_type_is_taken() -> None:
    """A torch device and a one-time iterator of lines are accepted."""
    assert choose_device(torch.device("cpu")) == torch.device("cpu")
    assert evaluate(iter(["a"]), iter(["a"])).exact == 100
