"""Laws of the text room, for any Unicode string."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.text.test_tokenizer import MODELS, trained

from dragoman.text.sentences import split_long
from dragoman.text.tokenizer import Tokenizer

TOKENIZERS = {model: trained(model) for model in MODELS}

MARKS = ["▁", "<s>", "</s>", "<pad>", "<unk>", "<0x41>", "\ufeff", "\ufffd", "\x00", "'s", "7"]
SPACES = [" ", "  ", "\n", "\r\n", "\t", "\x1c", "\u2028", "\u3000"]
WORDS = ["👩\u200d👧", "e\u0301", "我", "。", "“", "dog", " dog"]
tricky = st.sampled_from(MARKS + SPACES + WORDS)
texts = st.one_of(st.text(), st.lists(st.one_of(tricky, st.text(max_size=3))).map("".join))
tokenizers = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS.keys())


@tokenizers
@given(text=texts)
@settings(max_examples=150, deadline=None)
def test_decoding_is_the_inverse_of_encoding(tokenizer: Tokenizer, text: str) -> None:
    """decode(encode(text)) is text, and no special token is used."""
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert min(ids, default=4) >= 4


@tokenizers
@given(before=texts.filter(bool), rest=texts)
def test_the_rest_of_a_text_goes_on_without_loss(
    tokenizer: Tokenizer, before: str, rest: str
) -> None:
    """Both parts decode to the whole; cut after a lone line feed they even have its ids."""
    parts = tokenizer.encode(before) + tokenizer.encode_rest([rest])[0]
    assert tokenizer.decode(parts) == before + rest
    if rest[:1].strip():
        lines = before + "x\n"
        assert tokenizer.encode(lines) + tokenizer.encode_rest([rest])[0] == tokenizer.encode(
            lines + rest
        )


@tokenizers
@given(batch=st.lists(texts, max_size=5), p=st.floats(0, 1), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_sampled_ids_decode_to_the_same_texts(
    tokenizer: Tokenizer, batch: list[str], p: float, seed: int
) -> None:
    """Subword sampling changes the pieces, never the text."""
    rows = tokenizer.encode_batch(batch)
    flat = np.array([id_ for row in rows for id_ in row], dtype=np.uint16)
    offsets = np.cumsum([0, *map(len, rows)])
    ids, ends = tokenizer.splits().sample(
        flat, offsets, probability=p, rng=np.random.default_rng(seed)
    )
    assert [tokenizer.decode(ids[a:b]) for a, b in pairwise(ends)] == batch


def tokens(text: str) -> int:
    """Count the tokens."""
    return len(TOKENIZERS["bpe"].encode(text))


@pytest.mark.parametrize("length", [len, tokens])
@given(text=texts, limit=st.integers(1, 12))
@settings(deadline=None)
def test_chunks_join_to_the_line_and_respect_the_limit(
    length: Callable[[str], int], text: str, limit: int
) -> None:
    """In characters and in tokens, of which a single character may have more."""
    chunks = split_long(text, limit, length)
    assert "".join(chunks) == text
    parts = [chunk.rstrip() for chunk in chunks]
    assert all(len(part) <= 1 or length(part) <= limit for part in parts)
