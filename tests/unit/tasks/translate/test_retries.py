"""What makes a translation degenerate, and the ladder of retries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import pytest
from tests.unit.tasks.complete import translating
from tests.unit.tasks.tiny import make_tokenizer, make_translator, random_lines

from dragoman.decode import Hypothesis
from dragoman.decoding import WIDEST, Decoding
from dragoman.tasks.lines import Chunk
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.ids import Source, WantedText
from dragoman.tasks.translate.retries import (
    LONG_ENOUGH,
    REPEATS,
    SEVERITIES,
    Found,
    Searching,
    _cut,
    is_degenerate,
    loops,
    quality_flags,
    repeats,
    search_and_retry,
    severity,
)
from dragoman.tasks.translate.terms import sources_of


def of_ids(ids: list[int], stopped: Literal["eos", "length"] = "eos") -> Hypothesis:
    """Return a hypothesis with these ids."""
    return Hypothesis(
        ids=tuple(ids), score=-1.0, log_prob=-1.0, token_log_probs=(-1.0,), stopped=stopped
    )


def count_slowly(ids: list[int]) -> int:
    """Count the most repeated cycle by trying each start and period."""
    most = 1
    for start, period in product(range(len(ids)), range(1, len(ids) + 1)):
        times = 1
        cycle = ids[start : start + period]
        while ids[start + times * period : start + (times + 1) * period] == cycle:
            times += 1
        if len(cycle) == period:
            most = max(most, times)
    return most


@pytest.mark.parametrize("length", range(9))
def test_repeats_are_those_that_one_counts(length: int) -> None:
    """This holds for every sequence of two tokens and each minimum."""
    for ids in product((5, 6), repeat=length):
        expected = count_slowly(list(ids))
        for least in (2, 3, 5):
            assert repeats(ids, least) == (expected if expected >= least else 1)


@pytest.mark.parametrize("period", [1, 2, 7])
def test_a_cycle_loops_wherever_it_stands(period: int) -> None:
    """More than REPEATS repetitions loop at the start, in the middle and at the end."""
    cycle = list(range(10, 10 + period))
    for before, after in (([], []), ([1, 2], []), ([1], [2, 3])):
        assert loops([1, 2, 3], [*before, *cycle * (REPEATS + 1), *after])
        assert not loops([1, 2, 3], [*before, *cycle * REPEATS, *after])


def test_a_source_that_repeats_may_be_answered_alike() -> None:
    """Cycles of another length are allowed too; far more repetition than the source is a loop."""
    laughing = [4, 5] * 6
    assert not loops(laughing, [7] * 9)
    assert loops(laughing, [7] * 10)
    assert not loops([8] * 20, [9, 10] * 20)


ENOUGH = [*range(LONG_ENOUGH)]
LENGTHY = Source([*range(20, 20 + 3 * LONG_ENOUGH)])
FEW = Source(LENGTHY.ids[:5], text="a \ufffd b")


@pytest.mark.parametrize(
    ("source", "found", "text", "flags"),
    [
        (LENGTHY, of_ids(ENOUGH), "text", set()),
        (LENGTHY, of_ids(ENOUGH[1:]), "text", {"short"}),
        (Source(LENGTHY.ids[: LONG_ENOUGH - 1]), of_ids([5]), "text", set()),
        (LENGTHY, of_ids(ENOUGH, "length"), "text", {"max_length"}),
        (FEW, of_ids([5]), " \n", {"no_output"}),
        (FEW, of_ids([5] * 9, "length"), "a", {"loop", "max_length"}),
        (FEW, of_ids([5]), "\ufffd x", set()),
        (FEW, of_ids([5]), "\ufffdx\ufffd", {"broken_characters"}),
        (Source([5]), of_ids([5]), "\ufffd", {"broken_characters"}),
    ],
)
def test_each_doubt_has_its_cause(
    source: Source, found: Hypothesis, text: str, flags: set[str]
) -> None:
    """A good translation has no flags."""
    assert quality_flags(source, found, text) == flags


def test_severity_orders_by_the_worst() -> None:
    """A single worse flag outweighs all lesser ones; a short output alone is not retried."""
    names = list(SEVERITIES)
    for place, name in enumerate(names):
        assert severity({name}) > severity(set(names[:place]))
        assert is_degenerate({name}) == (name != "short")
    assert not is_degenerate(set())


TOKENIZER = make_tokenizer()
GOOD = "the cat sees a dog"
LONG = "the big cat sees a dog, the tree runs, a house runs"


def hypothesis(text: str, *, limit: bool = False) -> Hypothesis:
    """Return a hypothesis with this text."""
    return of_ids(TOKENIZER.encode(text), "length" if limit else "eos")


LOOP = hypothesis("cat " * 20)
CUT = hypothesis("the tree", limit=True)
WELL = hypothesis(GOOD)
BROKEN = of_ids(TOKENIZER.encode("the é")[:-1])


@dataclass
class Stub:
    """A search that gives prepared answers and records its calls."""

    answer: Callable[[str, Decoding], Hypothesis]
    asked: list[tuple[list[str], Decoding]] = field(default_factory=list)

    def search(
        self, sources: Sequence[Source], options: Decoding
    ) -> Searching[list[list[Hypothesis]]]:
        """Return the answer for each source without a scheduler."""
        yield from ()
        texts = [TOKENIZER.decode(src.ids) for src in sources]
        self.asked.append((texts, options))
        return [[self.answer(text, options)] for text in texts]

    def retried(self, *texts: str, options: Decoding | None = None) -> list[Found]:
        """Return the result of the ladder."""
        sources = [Source(TOKENIZER.encode(text), text=text) for text in texts]
        options = options or translating()
        course = search_and_retry(self.search, sources, options, TOKENIZER, TOKENIZER)
        with pytest.raises(StopIteration) as end:
            next(course)
        found: list[Found] = end.value.value
        return found


def test_a_cut_source_keeps_its_terms() -> None:
    """Each belongs to the part that contains all of it, with adjusted positions."""
    places = [LONG.find(text) for text in ("cat", "a dog, the", "house")]
    ends = [place + size for place, size in zip(places, (3, 10, 5), strict=True)]
    forms = (tuple(TOKENIZER.encode("tree")),)
    wanted = [WantedText(*span, forms) for span in zip(places, ends, strict=True)]
    (source,) = sources_of(LONG, 0, [Chunk(LONG, TOKENIZER.encode(LONG))], wanted, TOKENIZER)
    parts = _cut(source, TOKENIZER)
    assert len(parts) > 1
    words = [TOKENIZER.decode(p.ids[t.start : t.end]) for p in parts for t in p.terms]
    assert len(source.terms) == 3
    assert words == ["cat", "house"], "one is in no part as a whole"
    assert all(term.forms == source.terms[0].forms for part in parts for term in part.terms)


def test_nothing_is_searched_again_without_need() -> None:
    """There is one search if all is well, or if retries are off."""
    well = Stub(lambda text, _: hypothesis(text))
    assert not any(found.retried for found in well.retried(GOOD, LONG))
    looping = Stub(lambda *_: LOOP)
    (kept,) = looping.retried(LONG, options=translating(retry=False))
    assert kept.n_best == ([LOOP],)
    assert len(well.asked) == len(looping.asked) == 1


def test_the_first_rung_that_helps_is_taken() -> None:
    """Blocked n-grams come first, then a wider beam, then parts; only failures are retried."""
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


def test_what_the_user_set_stays() -> None:
    """The user's n-gram blocking stays, and the widest beam does not grow.

    Groups divide each beam equally.
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


@pytest.mark.parametrize(
    ("first", "wide", "taken"),
    [
        (CUT, LOOP, LOOP),
        (LOOP, replace(LOOP, score=-2.0), LOOP),
        (BROKEN, WELL, WELL),
        (BROKEN, CUT, BROKEN),
    ],
)
def test_the_least_bad_is_kept_and_of_equal_ones_the_earliest(
    first: Hypothesis, wide: Hypothesis, taken: Hypothesis
) -> None:
    """A finished loop beats an unfinished text, and broken characters beat both."""
    (found,) = Stub(lambda _, chosen: wide if chosen.beam_size == 10 else first).retried(GOOD)
    assert (found.n_best, found.retried) == (([taken],), taken is not first)


# ------------------------------------------------------------ with an untrained model


FAILING = make_translator(seed=2)
"""A translator that often fails, and that retries often help."""


def doubted(translation: Translation) -> set[str]:
    """Return the quality flags among its flags."""
    return set(translation.flags) & set(SEVERITIES)


def test_a_retry_is_never_worse() -> None:
    """A retry is used only if its flags are less severe than those of the plain search."""
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
    """Each part has one over all its tokens, and the line is flagged as split."""
    found = FAILING.translate([LONG, *random_lines(30, seed=3)], beam_size=2, n_best=2)
    cut = [each for each in found if {"retried", "split"} <= set(each.flags)]
    assert cut
    for each in cut:
        assert len(each.alignments) > 1
        assert each.tokens == tuple(t for part in each.alignments for t in part.tgt_tokens[:-1])
