"""Further special tokens, tokenizers of characters, and texts that go on after other text."""

import pytest

from dragoman.errors import InputError
from dragoman.text.tokenizer import BYTES, MASK, SPECIALS, Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer

TEXTS = ["The <mask> dog sees the small dog, 12 <mask>s.", "我喜欢学习人工智能。\n他也喜欢。"] * 5
MODELS = ["bpe", "unigram", "characters"]


def trained(model: str, *specials: str, vocab_size: int = 400) -> Tokenizer:
    """A small tokenizer with further special tokens."""
    config = TokenizerConfig(model=model, vocab_size=vocab_size, specials=specials)  # type: ignore[arg-type]
    return train_tokenizer(TEXTS, config)


@pytest.mark.parametrize("model", MODELS)
def test_specials_come_between_bytes_and_pieces(model: str) -> None:
    """They take the ids from 260 on and are known by name; the first piece comes after them."""
    tokenizer = trained(model, MASK, "<|user|>")
    assert tokenizer.tokens(range(262)) == [*SPECIALS, *BYTES, MASK, "<|user|>"]
    assert (tokenizer.special_id(MASK), tokenizer.special_id("<|user|>")) == (260, 261)
    assert tokenizer.first_piece == 262
    again = Tokenizer.from_json(tokenizer._backend.to_str(), "again")
    assert again.specials == tokenizer.specials


@pytest.mark.parametrize("model", MODELS)
def test_specials_are_never_found_in_a_text_nor_written(model: str) -> None:
    """Text that looks like one is spelt out; decoding skips the token itself."""
    tokenizer = trained(model, MASK)
    ids = tokenizer.encode("the <mask> dog")
    assert 260 not in ids
    assert tokenizer.decode([*ids, 260, 3]) == "the <mask> dog"
    splits = tokenizer.splits()
    assert 260 not in {*splits.left.tolist(), *splits.right.tolist()}


@pytest.mark.parametrize("model", MODELS)
def test_without_specials_nothing_changes(model: str) -> None:
    """A tokenizer has the ids and the pieces that it had; asking for a token it lacks is said."""
    plain, masked = trained(model), trained(model, MASK, vocab_size=401)
    assert plain.first_piece == 260
    assert plain.tokens(range(260, plain.vocab_size)) == masked.tokens(
        range(261, masked.vocab_size)
    )
    with pytest.raises(InputError, match=r'no special token <mask>.*specials = \["<mask>"\]'):
        plain.special_id(MASK)


def test_pieces_may_be_characters() -> None:
    """Each character of the text is one piece and there are no others, up to the vocabulary."""
    tokenizer = trained("characters")
    pieces = tokenizer.tokens(range(260, tokenizer.vocab_size))
    assert sorted(pieces) == sorted(set("".join(TEXTS)))
    assert len(tokenizer.encode("\nsmall dog")) == len(" \nsmall dog")
    assert len(trained("characters", vocab_size=300).tokens(range(260, 300))) == 40


def test_the_rest_of_a_text_gets_no_space() -> None:
    """In the middle of a text the first word is the piece that it is there."""
    tokenizer = trained("bpe")
    whole = tokenizer.encode("small dog\ndog")
    assert tokenizer.encode_rest(["dog"])[0] == whole[-len(tokenizer.encode_rest(["dog"])[0]) :]
    assert tokenizer.encode_rest([""]) == [[]]
    with pytest.raises(InputError, match="surrogate"):
        tokenizer.encode_rest(["\ud800"])
