"""Searching in a list per sentence: the laws that make it the same search."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import INDEPENDENT
from tests.unit.models.small import PAD, SMALL, make_model
from tests.unit.tasks.complete import translating

from dragoman.decode import Hypothesis
from dragoman.decode.shortlist import Shortlist
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.nn import Arithmetic
from dragoman.tasks.held import Held
from dragoman.tasks.translate.ids import IdTranslator, Source, Specials
from dragoman.text.tokenizer import Frame

V = 300  # lists of one to four times 64 tokens
CONFIG = replace(SMALL, src_vocab_size=V, tgt_vocab_size=V)
MODEL = make_model(CONFIG, torch.float32)
SPECIALS = Specials(
    src_pad_id=PAD, src_frame=Frame((), (3,)), pad_id=PAD, bos_id=2, eos_id=3, forbidden=(PAD, 1, 2)
)
SEEDS = st.integers(0, 2**32)
SOURCES = st.lists(st.tuples(st.integers(1, 12), SEEDS), min_size=1, max_size=5)
OPTIONS = {
    "greedy": translating(beam_size=1, shortlist=True),
    "beam": translating(beam_size=4, n_best=4, shortlist=True),
    "groups": translating(beam_size=4, beam_groups=2, shortlist=True),
    "blocked": translating(beam_size=3, no_repeat_ngrams=1, min_length=3, shortlist=True),
    "weakened": translating(beam_size=2, repetition_penalty=1.5, shortlist=True),
    "sampled": translating(beam_size=1, temperature=1.0, top_p=0.9, shortlist=True),
}
NAMES = st.sampled_from(list(OPTIONS))


def shortlist(seed: int, each: int) -> Shortlist:
    """Draw `each` target tokens for each source token."""
    rng = np.random.default_rng(seed)
    return Shortlist(
        starts_V=np.arange(V + 1) * each,
        ids_X=rng.integers(4, V, V * each),
        always_A=np.array([4, 5]),
    )


def everything() -> Shortlist:
    """List all target tokens for every source."""
    return Shortlist(np.zeros(V + 1, dtype=int), np.array([], dtype=int), np.arange(V))


def sources_of(drawn: Sequence[tuple[int, int]]) -> list[Source]:
    """Return sources of these lengths and seeds."""
    return [
        Source(np.random.default_rng(seed).integers(4, V, length).tolist())
        for length, seed in drawn
    ]


def translator(words: Shortlist | None, precision: Arithmetic = "fp32") -> IdTranslator:
    """Return the small model with a shortlist."""
    given = None if words is None else lambda: words
    return IdTranslator(Held.of(MODEL, precision), SPECIALS, given)


def searched(ids: IdTranslator, sources: list[Source], options: Decoding) -> list[list[Hypothesis]]:
    """Return what the search finds."""
    with ids.model.inference():
        return ids.search(sources, options)


@given(SOURCES, NAMES)
@settings(max_examples=25)
def test_a_list_of_all_tokens_changes_nothing(drawn: list[tuple[int, int]], name: str) -> None:
    """A list that leaves nothing out is the vocabulary in another order."""
    options, sources = OPTIONS[name], sources_of(drawn)
    found = searched(translator(everything()), sources, options)
    wanted = searched(translator(None), sources, replace(options, shortlist=False))
    if options.temperature == 0:  # sampling takes the first place whose sum exceeds a number
        assert [[h.ids for h in best] for best in found] == [
            [h.ids for h in best] for best in wanted
        ]
        for best, expected in zip(found, wanted, strict=True):
            assert [h.score for h in best] == pytest.approx([h.score for h in expected], abs=1e-5)


@given(SOURCES, NAMES, SEEDS, st.integers(1, 20))
@settings(max_examples=25)
def test_what_is_written_is_in_the_list(
    drawn: list[tuple[int, int]], name: str, seed: int, each: int
) -> None:
    """Whatever the strategy and the processors are."""
    words, sources = shortlist(seed, each), sources_of(drawn)
    for source, best in zip(
        sources, searched(translator(words), sources, OPTIONS[name]), strict=True
    ):
        allowed = set(words.of(source.ids).tolist())
        assert all(set(h.ids) <= allowed for h in best)


@pytest.mark.parametrize("precision", INDEPENDENT)
@given(drawn=SOURCES, name=NAMES, seed=SEEDS)
@settings(max_examples=12)
def test_neighbours_change_no_bit(
    precision: Arithmetic, drawn: list[tuple[int, int]], name: str, seed: int
) -> None:
    """Neither the lengths of their lists nor what the others leave out."""
    sources = sources_of([*drawn, (12, 0), (11, 1)])
    ids = translator(shortlist(seed, 20), precision)
    together = searched(ids, sources, OPTIONS[name])
    assert together == [searched(ids, [source], OPTIONS[name])[0] for source in sources]


@given(SOURCES, SEEDS)
@settings(max_examples=10)
def test_ensembles_and_wide_beams_have_lists_too(drawn: list[tuple[int, int]], seed: int) -> None:
    """A model that cannot leave out outputs computes all of them, with the same result."""
    sources, words = sources_of(drawn), shortlist(seed, 5)
    one = translator(words)
    twice = replace(one, others=(translator(words).model,))
    for wanted, found in zip(
        searched(one, sources, OPTIONS["beam"]),
        searched(twice, sources, OPTIONS["beam"]),
        strict=True,
    ):
        assert [h.ids for h in found] == [h.ids for h in wanted]
    wide = translating(beam_size=24, shortlist=True)
    for source, best in zip(sources, searched(one, sources, wide), strict=True):
        assert all(set(h.ids) <= set(words.of(source.ids).tolist()) for h in best)


@given(SOURCES, SEEDS, st.lists(st.integers(4, V - 1) | st.just(1), min_size=1, max_size=4))
@settings(max_examples=20)
def test_a_prefix_is_in_the_list(
    drawn: list[tuple[int, int]], seed: int, prefix: list[int]
) -> None:
    """It can be written even if no source token lists it, or could not be written otherwise.

    For example a letter that the vocabulary lacks.
    """
    sources = [Source(source.ids, tuple(prefix)) for source in sources_of(drawn)]
    for (best,) in searched(translator(shortlist(seed, 2)), sources, OPTIONS["greedy"]):
        assert list(best.ids[: len(prefix)]) == prefix


def test_sentences_end_where_they_begin_with_the_token_that_ends_them() -> None:
    """Some models read eos first; it may still be written."""
    same = replace(SPECIALS, bos_id=SPECIALS.eos_id)
    nothing = Shortlist(
        np.zeros(V + 1, dtype=int), np.array([], dtype=int), np.array([], dtype=int)
    )
    ids = IdTranslator(Held.of(MODEL, "fp32"), same, lambda: nothing)
    ((best, *_),) = searched(ids, [Source([7, 8])], OPTIONS["beam"])
    assert (best.ids, best.stopped) == ((), "eos")


def test_a_translator_without_a_shortlist_says_so() -> None:
    """A translator that was made in memory has none."""
    with pytest.raises(InputError, match="no shortlist"):
        searched(translator(None), [Source([5])], OPTIONS["greedy"])
