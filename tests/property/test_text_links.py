"""Laws of links between a line and its translation, in characters, for any Unicode string."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_text import TOKENIZERS, texts, tokenizers
from tests.unit.tasks.tiny import DECODING, make_config, make_model, random_lines
from torch import Tensor

from dragoman.decode import Hypothesis, Strategy
from dragoman.decode.requests import Withdrawn
from dragoman.decoding import Decoding
from dragoman.tasks.held import Held
from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.ids import Ids, IdTranslator, Source
from dragoman.tasks.translate.translator import Translator
from dragoman.text.spans import in_common, lengths_of
from dragoman.text.tokenizer import Tokenizer


def assert_laws(line: str, found: Translation) -> None:
    """Links are ordered, inside both texts, trimmed, and cover all visible target text."""
    links = found.text_links
    for a, b, c, d in links:
        assert line[a:b] == line[a:b].strip() != ""
        assert found.text[c:d] == found.text[c:d].strip() != ""
    assert all(before[3] <= after[2] for before, after in pairwise(links))
    covered = {n for _, _, start, end in links for n in range(start, end)}
    parts = [range(*place[2:]) for place in found.sentences]
    assert covered >= {n for part in parts for n in part if not found.text[n].isspace()}


@tokenizers
@given(text=texts)
@settings(max_examples=100, deadline=None)
def test_pieces_stand_in_their_text(tokenizer: Tokenizer, text: str) -> None:
    """Each piece is the text at its place; together they are all that is seen."""
    ids = tokenizer.encode(text)
    spans = tokenizer.spans(text)
    assert len(spans) == len(ids)
    for id_, span in zip(ids, spans, strict=True):
        alone = tokenizer.decode_rest([id_]).strip()
        if span is not None and alone and alone != "\ufffd":
            assert text[slice(*span)] == alone
    places = dict.fromkeys(span for span in spans if span is not None)
    assert "".join("".join(text[a:b].split()) for a, b in places) == "".join(text.split())


def by_prefixes(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Return how many final characters each prefix adds to those before it."""
    seen = ["".join(tokenizer.decode(ids[:n]).split()) for n in range(len(ids) + 1)]
    same = accumulate((in_common(seen[-1], each) for each in seen), max)
    return [after - before for before, after in pairwise(same)]


parts = st.sampled_from(["a cat", "\U0001f600", "\u4e2d", "e\u0301x", " ", "<"])


@tokenizers
@given(text=st.lists(parts, max_size=9).map("".join))
@settings(max_examples=100, deadline=None)
def test_a_letter_is_that_of_its_last_byte(tokenizer: Tokenizer, text: str) -> None:
    """As by decoding every prefix."""
    ids = tokenizer.encode(text)
    assert tokenizer.lengths(ids) == by_prefixes(tokenizer, ids)


@tokenizers
@pytest.mark.parametrize("char", ["\U0001f600", "\ufffd"])
def test_bytes_are_decoded_in_linear_time(tokenizer: Tokenizer, char: str) -> None:
    """A long line with letters that the vocabulary lacks is not slow."""
    ids, decoded = tokenizer.encode(f"a {char} " * 300), list[int]()

    def decode_rest(some: Sequence[int]) -> str:
        decoded.append(len(some))
        return tokenizer.decode_rest(some)

    assert sum(lengths_of(ids, tokenizer.decode, decode_rest)) == 600
    assert sum(decoded) < 20 * len(ids)


@tokenizers
@given(ids=st.lists(st.integers(4, 390), max_size=30))
@settings(max_examples=100, deadline=None)
def test_every_character_is_some_tokens(tokenizer: Tokenizer, ids: list[int]) -> None:
    """Also of ids that no text has, with bytes that form no letter."""
    ids = [id_ for id_ in ids if id_ < tokenizer.vocab_size]
    lengths = tokenizer.lengths(ids)
    assert len(lengths) == len(ids)
    assert min(lengths, default=0) >= 0
    assert sum(lengths) == len("".join(tokenizer.decode(ids).split()))


class EchoingIds(IdTranslator):
    """Writes what it reads, and attends to each token when it writes it."""

    def search(
        self,
        sources: Sequence[Source],
        options: Decoding,  # noqa: ARG002
        strategy: Strategy | None = None,  # noqa: ARG002
        withdrawn: Withdrawn | None = None,  # noqa: ARG002
    ) -> list[list[Hypothesis]]:
        """Return each source as its own hypothesis."""
        rest = {"score": 0.0, "log_prob": 0.0, "token_log_probs": (), "stopped": "eos"}
        return [[Hypothesis(ids=tuple(source.ids), **rest)] for source in sources]  # type: ignore[arg-type]

    def attention(self, src: Ids, tgt: Ids) -> Tensor:
        """Return diagonal attention."""
        return torch.eye(len(tgt) + 1, len(src) + 1)


class Echo(Translator):
    """Translates each line into itself."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = make_model(make_config(tokenizer))
        super().__init__(model, tokenizer, tokenizer, decoding=DECODING)
        self._ids = EchoingIds(Held.of(model, "fp32"), self.specials)


ECHOES = {name: Echo(tokenizer) for name, tokenizer in TOKENIZERS.items()}


@pytest.mark.parametrize("name", ECHOES)
@given(line=texts, limit=st.integers(1, 12), split=st.booleans())
@settings(max_examples=100, deadline=None)
def test_links_of_an_echo_are_the_same_text(
    name: str, line: str, limit: int, *, split: bool
) -> None:
    """Whatever the line is, its sentences and chunks: a piece comes from where it was."""
    options = Decoding(split_sentences=split, max_src_tokens=limit, retry=False)
    found = ECHOES[name].translate(line, options=options)
    assert_laws(line, found)
    for a, b, c, d in found.text_links:
        assert line[a:b].split() == found.text[c:d].split()


@pytest.fixture(scope="module")
def translator() -> Translator:
    """A translator of random weights, which writes incomplete bytes and is often retried."""
    tokenizer = TOKENIZERS["bpe"]
    return Translator(make_model(make_config(tokenizer), seed=2), tokenizer, tokenizer)


@given(line=texts, split=st.booleans())
@settings(max_examples=25, deadline=None)
def test_laws_hold_for_what_a_model_writes(
    translator: Translator, line: str, *, split: bool
) -> None:
    """Of all the n best, retried and cut."""
    options = replace(DECODING, split_sentences=split, max_src_tokens=24, n_best=2, beam_size=2)
    found = translator.translate(line, options=options)
    for each in (found, *found.alternatives):
        assert_laws(line, each)


def test_tokens_that_are_one_letter_are_one_link() -> None:
    """The bytes of an emoji share one link, to the whole emoji."""
    line = "the 😀 cat"
    links = ECHOES["bpe"].translate(line).text_links
    assert [line[a:b] for a, b, _, _ in links if "😀" in line[a:b]] == ["😀"]


def test_a_plain_translation_computes_no_links(translator: Translator) -> None:
    """Links are computed once, on request."""
    (found,) = translator.translate(random_lines(1))
    assert found.text_links == found.text_links
    assert found.alignments is found.alignments


def test_what_all_tokens_attend_to_draws_no_links() -> None:
    """A word that one token attends to is preferred to a sign that all tokens attend to."""
    weights_TS = torch.tensor(
        [[0.45, 0.05, 0.5, 0.0], [0.05, 0.45, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )
    spans = ((0, 3), (4, 7), (7, 8), None)
    tokens = ("the", "cat", ".", "</s>")
    found = Alignment(
        src_tokens=tokens,
        tgt_tokens=tokens,
        weights_TS=weights_TS,
        src_spans=spans,
        tgt_spans=spans,
    )
    assert found.text_links == ((0, 3, 0, 3), (4, 7, 4, 7), (7, 8, 7, 8))
    assert found.links == ((2, 0), (2, 1), (2, 2))
