"""Incremental text, and stop strings."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.tiny import make_tokenizer
from tests.unit.tasks.tiny_generator import DEFAULTS, make_generator

from dragoman.decode import Prefixes
from dragoman.errors import InputError
from dragoman.tasks.generate.prompts import PromptCodec, TextStream, cut_at, stop_at

TOKENIZER = make_tokenizer()
EMOJI = TOKENIZER.encode("😀")
BYTES = st.integers(4, 259)
PIECES = st.integers(260, TOKENIZER.vocab_size - 1)
IDS = st.lists(st.one_of(PIECES, BYTES, st.sampled_from(EMOJI)), max_size=25)
STOPS = st.lists(st.sampled_from(["the", "e", " c", "at ", "😀", "我", "zz", "\ufffd"]), max_size=3)


def pushed(ids: Sequence[int], stops: Sequence[str], *, begins_text: bool) -> list[str]:
    """Return everything that a stream emits, including the end."""
    stream = TextStream(TOKENIZER, stops, begins_text=begins_text)
    return [*map(stream.push, ids), stream.finish()]


def whole(ids: Sequence[int], *, begins_text: bool) -> str:
    """Return the text of all tokens at once."""
    return (TOKENIZER.decode if begins_text else TOKENIZER.decode_rest)(ids)


@given(IDS, STOPS, st.sampled_from(["begins", ""]))
def test_a_stream_adds_up_to_the_text(ids: list[int], stops: list[str], begins: str) -> None:
    """Piece by piece it is the text up to the first stop string, whatever the tokens are."""
    text = whole(ids, begins_text=bool(begins))
    cut = cut_at(text, stops)
    found = "".join(pushed(ids, stops, begins_text=bool(begins)))
    assert found == (text if cut is None else cut)


@given(st.lists(st.sampled_from(["the", " cat", "我", "😀", "é", "👩‍👧", "\n"])))
def test_no_character_comes_in_halves(words: list[str]) -> None:
    """Every prefix of what a stream hands out for real text is a prefix of that text."""
    text = "".join(words)
    ids = TOKENIZER.encode_rest([text])[0]
    so_far = ""
    for piece in pushed(ids, [], begins_text=False):
        so_far += piece
        assert text.startswith(so_far)
    assert so_far == text


def test_plain_pieces_come_at_once() -> None:
    """Only bytes and beginnings of stop strings are delayed."""
    ids = TOKENIZER.encode("the cat sees")
    pieces = pushed(ids, [], begins_text=True)
    assert "".join(pieces[: len(ids)]) == "the cat sees"
    assert all(pieces[: len(ids)])
    held = pushed(TOKENIZER.encode("the cat"), ["cats"], begins_text=True)
    assert "".join(held[:-1]) == "the "
    assert held[-1] == "cat"


@given(IDS, STOPS.filter(bool), st.sampled_from(["begins", ""]))
def test_a_row_ends_when_its_text_holds_a_stop_string(
    ids: list[int], stops: list[str], begins: str
) -> None:
    """From then on eos has probability 1; before that nothing changes."""
    rule = stop_at(TOKENIZER, TOKENIZER.eos_id, stops, begins_text=bool(begins))
    for length in range(len(ids) + 1):
        prefixes = Prefixes(torch.tensor([ids[:length]]).long(), torch.zeros(1).long())
        logits_NV = rule(torch.ones(1, 300), prefixes)
        text = whole(ids[:length], begins_text=bool(begins))
        if cut_at(text, stops) is None:
            assert bool((logits_NV == 1).all())
        else:
            assert int(logits_NV.softmax(dim=1)[0].argmax()) == TOKENIZER.eos_id
            assert float(logits_NV.softmax(dim=1)[0].max()) == 1.0
            return


@pytest.mark.parametrize("stop", ["a😀", "😀a", "😀😀", "a"])
def test_a_stop_string_may_take_many_tokens(stop: str) -> None:
    """A character that is encoded in bytes takes up to four tokens."""
    [ids] = TOKENIZER.encode_rest([f"the cat{stop}"])
    rule = stop_at(TOKENIZER, TOKENIZER.eos_id, [stop], begins_text=False)
    prefixes = Prefixes(torch.tensor([ids]), torch.zeros(1).long())
    assert float(rule(torch.ones(1, 300), prefixes).softmax(dim=1)[0, TOKENIZER.eos_id]) == 1.0


def test_the_first_stop_string_cuts() -> None:
    """The earliest stop string cuts; without any there is no cut."""
    assert cut_at("abcdef", ["e", "cd", "x"]) == "ab"
    assert cut_at("abc", ["x"]) is None
    assert cut_at("abc", []) is None


@given(st.text(max_size=12), st.text(max_size=12), st.sampled_from([None, "\n", "", "我"]))
def test_a_prompt_and_its_text_are_one_text(prompt: str, text: str, opening: str | None) -> None:
    """What a text encodes to behind a prompt decodes to it, whether or not the prompt is empty."""
    codec = PromptCodec(TOKENIZER, opening)
    if opening is None or prompt or opening:
        [ids] = codec.encode([prompt])
        assert len(ids) >= 1
        assert (ids[0] == TOKENIZER.bos_id) == (opening is None)
    [(_, text_ids)] = codec.encode_pairs([(prompt, text)])
    assert text_ids is not None
    decode = TOKENIZER.decode if codec.begins_text(prompt) else TOKENIZER.decode_rest
    assert decode(text_ids) == text


def test_an_empty_prompt_without_a_beginning_has_no_ids() -> None:
    """Without bos and opening, the model has no token to read, which is an error."""
    assert PromptCodec(TOKENIZER, "").encode([""]) == [[]]
    assert PromptCodec(TOKENIZER, None, ()).encode(["", "a"])[0] == []
    with pytest.raises(InputError, match="An empty prompt has nothing to continue"):
        make_generator(replace(DEFAULTS, opening="")).encode("")
