"""The ladder of retries: what is tried, what is taken, and that it concerns no other sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.tasks.complete import translating
from tests.unit.tasks.tiny import make_tokenizer, make_translator, random_lines
from tests.unit.tasks.translate.test_quality import hypothesis as of_ids

from dragoman.decode import Hypothesis
from dragoman.decoding import WIDEST, Decoding
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.retries import (
    SEVERITIES,
    Found,
    Searching,
    _cut,
    search_and_retry,
    severity,
)
from dragoman.tasks.translate.source import Source
from dragoman.tasks.translate.terms import WantedText, with_terms

TOKENIZER = make_tokenizer()
GOOD = "the cat sees a dog"
LONG = "the big cat sees a dog, the tree runs, a house runs"


def hypothesis(text: str, *, limit: bool = False) -> Hypothesis:
    """One that writes this text."""
    return of_ids(TOKENIZER.encode(text), "length" if limit else "eos")


LOOP = hypothesis("cat " * 20)
CUT = hypothesis("the tree", limit=True)


@dataclass
class Stub:
    """A search that answers as told, and notes what it was asked."""

    answer: Callable[[str, Decoding], Hypothesis]
    asked: list[tuple[list[str], Decoding]] = field(default_factory=list)

    def search(
        self, sources: Sequence[Source], options: Decoding
    ) -> Searching[list[list[Hypothesis]]]:
        """The answers, one for each source, without a scheduler."""
        yield from ()
        texts = [TOKENIZER.decode(src.ids) for src in sources]
        self.asked.append((texts, options))
        return [[self.answer(text, options)] for text in texts]

    def retried(self, *texts: str, options: Decoding | None = None) -> list[Found]:
        """What the ladder makes of it."""
        sources = [Source(TOKENIZER.encode(text), text=text) for text in texts]
        options = options or translating()
        course = search_and_retry(self.search, sources, options, TOKENIZER, TOKENIZER)
        with pytest.raises(StopIteration) as end:
            next(course)
        found: list[Found] = end.value.value
        return found


def test_a_cut_source_keeps_its_terms() -> None:
    """Each is of the part that has all of it, at the place of its ids there."""
    places = [LONG.find(text) for text in ("cat", "a dog, the", "house")]
    ends = [place + size for place, size in zip(places, (3, 10, 5), strict=True)]
    wanted = [WantedText(*span, ("tree",)) for span in zip(places, ends, strict=True)]
    plain = Source(TOKENIZER.encode(LONG), text=LONG)
    source = with_terms(plain, TOKENIZER.spans(LONG), wanted, TOKENIZER)
    parts = _cut(source, TOKENIZER)
    assert len(parts) > 1
    words = [TOKENIZER.decode(p.ids[t.start : t.end]) for p in parts for t in p.terms]
    assert len(source.terms) == 3
    assert words == ["cat", "house"], "one is in no part as a whole"
    assert all(term.forms == source.terms[0].forms for part in parts for term in part.terms)


def test_nothing_is_searched_again_without_need() -> None:
    """One search where all is well, or where retries were not asked for."""
    well = Stub(lambda text, _: hypothesis(text))
    assert not any(found.retried for found in well.retried(GOOD, LONG))
    looping = Stub(lambda *_: LOOP)
    (kept,) = looping.retried(LONG, options=translating(retry=False))
    assert kept.n_best == ([LOOP],)
    assert len(well.asked) == len(looping.asked) == 1


def test_the_first_rung_that_helps_is_taken() -> None:
    """Blocked n-grams, then a wider beam, then the parts; only what failed is asked again."""
    options = translating(beam_size=4)
    rungs: list[Callable[[str, Decoding], bool]] = [
        lambda _, chosen: chosen.no_repeat_ngrams == 3,
        lambda _, chosen: chosen.beam_size == 8,
        lambda text, _: text != LONG,
    ]
    for number, helps in enumerate(rungs, start=1):

        def answer(text: str, chosen: Decoding, helps: Callable[..., bool] = helps) -> Hypothesis:
            return hypothesis(text) if text == GOOD or helps(text, chosen) else LOOP

        stub = Stub(answer)
        well, found = stub.retried(GOOD, LONG, options=options)
        assert not well.retried
        assert found.retried
        assert len(stub.asked) == number + 1
        assert all(GOOD not in texts for texts, _ in stub.asked[1:])
        assert (len(found.parts) > 1) == (number == 3)
    assert "".join(stub.asked[-1][0]).replace(" ", "") == LONG.replace(" ", "")


def test_broken_characters_are_searched_again() -> None:
    """A wider beam may spell one to its end; where none does, the first translation stays."""
    broken = replace(hypothesis(GOOD), ids=tuple(TOKENIZER.encode("the é")[:-1]))
    assert TOKENIZER.decode(broken.ids).endswith("\ufffd")
    wide = Stub(lambda text, chosen: hypothesis(text) if chosen.beam_size == 10 else broken)
    (found,) = wide.retried(GOOD)
    assert (found.n_best, found.retried) == (([hypothesis(GOOD)],), True)
    (found,) = Stub(lambda *_: broken).retried(GOOD)
    assert (found.n_best, found.retried) == (([broken],), False)


def test_what_the_user_set_stays() -> None:
    """Blocked n-grams of another length are no retry; the widest beam does not grow, and groups
    share any beam equally.
    """
    stub = Stub(lambda *_: LOOP)
    stub.retried(LONG, options=translating(no_repeat_ngrams=2, beam_size=WIDEST, n_best=2))
    assert [len(texts) > 1 for texts, _ in stub.asked] == [False, True]
    assert all(chosen.no_repeat_ngrams == 2 for _, chosen in stub.asked)
    stub.asked.clear()
    stub.retried(GOOD[:7], options=translating(beam_size=1))
    assert [chosen.beam_size for texts, chosen in stub.asked if texts] == [1, 1, 5]
    stub.asked.clear()
    stub.retried(GOOD[:7], options=translating(beam_size=2, beam_groups=2))
    assert [chosen.beam_size for texts, chosen in stub.asked if texts] == [2, 2, 4]


def test_the_least_bad_is_kept_and_of_equal_ones_the_earliest() -> None:
    """A loop that ends is better than a text without an end; a search as bad changes nothing."""
    stub = Stub(lambda _, chosen: LOOP if chosen.beam_size == 10 else CUT)
    (found,) = stub.retried(GOOD)
    assert (found.n_best, found.retried) == (([LOOP],), True)
    (found,) = Stub(lambda *_: LOOP).retried(LONG)
    assert (found.n_best, found.retried) == (([LOOP],), False)


# ------------------------------------------------------------ with a model that never learned


FAILING = make_translator(seed=2)
"""A translator that often fails, and which retries often help."""


def doubted(translation: Translation) -> set[str]:
    """The quality flags among its flags."""
    return set(translation.flags) & set(SEVERITIES)


def test_a_retry_is_never_worse() -> None:
    """Its flags weigh less than those of the plain search, which is kept otherwise."""
    translator = FAILING
    lines = random_lines(20, seed=4)
    plain = translator.translate(lines, options=replace(translator.options, retry=False))
    retried = translator.translate(lines)
    assert not any("retried" in each.flags for each in plain)
    for before, after in zip(plain, retried, strict=True):
        if "retried" in after.flags:
            assert severity(doubted(after)) < severity(doubted(before))
        else:
            assert after == before


def test_a_cut_translation_has_the_alignments_of_its_parts() -> None:
    """One for each, over all its tokens; the line says that it was cut."""
    found = FAILING.translate([LONG, *random_lines(30, seed=3)], beam_size=2, n_best=2)
    cut = [each for each in found if {"retried", "split"} <= set(each.flags)]
    assert cut
    for each in cut:
        assert len(each.alignments) > 1
        assert each.tokens == tuple(t for part in each.alignments for t in part.tgt_tokens[:-1])
