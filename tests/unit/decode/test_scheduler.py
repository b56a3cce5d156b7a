"""Packing inputs into batches, and serving requests of several threads with them."""

import math
from collections.abc import Callable, Sequence
from itertools import chain, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.decode.tables import EOS, Ids, TableModel, limits, random_table, sources

from dragoman.decode import (
    Beam,
    Course,
    Hypothesis,
    Items,
    Scheduler,
    schedule,
    search,
    search_steps,
)
from dragoman.errors import InputError

LENGTHS = st.lists(st.integers(0, 60), max_size=60)
SOURCES = st.lists(st.lists(st.integers(3, 6), max_size=6), max_size=12)
BROKEN = 7
"""A token that the table has no probabilities for."""


@given(LENGTHS, st.integers(1, 300))
def test_batches_are_full_within_the_budget(lengths: list[int], budget: int) -> None:
    """Each input is in one of them, the longest first, and the next never had room in the one
    before; padded tokens fit, except for an input that is too long alone.
    """
    batches = schedule(lengths, budget)
    order = [index for batch in batches for index in batch]
    assert order == sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    for batch in batches:
        assert len(batch) * lengths[batch[0]] <= budget or len(batch) == 1
    for batch in batches[:-1]:
        assert (len(batch) + 1) * max(1, lengths[batch[0]]) > budget


Sources = list[list[int]]
Search = Course[list[int], list[Hypothesis], list[Hypothesis]]


def searched(
    batch: Sequence[Sequence[int]],
    seed: int = 1,
    beam_size: int = 2,
    withdrawn: Callable[[int], bool] | None = None,
) -> list[list[Hypothesis]]:
    """Return the n best of each source by a random table; NaN for a source with a broken token."""
    known = random_table(seed, 7)

    def table(src: Ids, prefix: Ids) -> Sequence[float]:
        return [math.nan] * 7 if BROKEN in src else known(src, prefix)

    most = limits(*(len(src) + 3 for src in batch))
    beam = Beam(beam_size=beam_size, n_best=beam_size)
    model, src_BS = TableModel(table), sources(*([*src, EOS] for src in batch))
    return search(model, src_BS, beam, limits=most, withdrawn=withdrawn)


def course(src: list[int], budget: int = 24, beam_size: int = 2) -> Search:
    """Search a source once."""
    (found,) = yield Items(
        values=[src], costs=[len(src)], budget=budget, how=beam_size, key=beam_size
    )
    return found


def again(src: list[int], budget: int = 24) -> Course[list[int], list[Hypothesis], list[int]]:
    """Search a source, then both halves, then nothing; return all tokens that were found."""
    found = [*(yield Items(values=[src], costs=[len(src)], budget=budget, how=2, key=2))]
    halves = [src[: len(src) // 2], src[len(src) // 2 :]]
    found += yield Items(values=halves, costs=[*map(len, halves)], budget=budget, how=2, key=2)
    found += yield Items(values=[], costs=[], budget=budget)
    return [token for best in found for token in best[0].ids]


def scheduler_of(
    batches: list[Sources] | None = None, lanes: int = 1
) -> Scheduler[list[int], list[Hypothesis]]:
    """Return a scheduler that searches by the table, and records its batches."""

    def run(
        beam_size: int, batch: Sources, withdrawn: Callable[[int], bool]
    ) -> list[list[Hypothesis]]:
        if batches is not None:
            batches.append(batch)
        return searched(batch, beam_size=beam_size, withdrawn=withdrawn)

    return Scheduler(run, lambda: lanes)


@given(SOURCES, st.integers(1, 60), st.integers(1, 3))
@settings(max_examples=50)
def test_a_request_alone_runs_in_the_batches_of_schedule(
    inputs: Sources, budget: int, beam_size: int
) -> None:
    """And each source is searched as if alone, wherever in a batch others end before it."""
    batches: list[Sources] = []
    request = scheduler_of(batches).submit([course(src, budget, beam_size) for src in inputs])
    assert [*request.in_order()] == [searched([src], beam_size=beam_size)[0] for src in inputs]
    planned = schedule([len(src) for src in inputs], budget)
    assert batches == [[inputs[index] for index in batch] for batch in planned]


@given(SOURCES)
@settings(max_examples=20)
def test_a_course_goes_on_with_what_was_found(inputs: Sources) -> None:
    """What it asks for next is computed too, with the items of others; nothing needs no batch."""
    batches: list[Sources] = []
    request = scheduler_of(batches).submit([again(src) for src in inputs])
    answers = dict(request)
    for index, src in enumerate(inputs):
        parts = [src, src[: len(src) // 2], src[len(src) // 2 :]]
        assert answers[index] == [token for part in parts for token in searched([part])[0][0].ids]
    assert sum(map(len, batches)) == 3 * len(inputs)


def test_requests_take_turns() -> None:
    """A short request is answered before an earlier, long one is finished."""
    batches: list[Sources] = []
    scheduler = scheduler_of(batches)
    long = scheduler.submit([course([3] * 6, budget=6) for _ in range(10)])
    short = scheduler.submit([course([4], budget=6)])
    assert len([*islice(long, 2)]) == 2
    assert batches == [[[3] * 6], [[4]], [[3] * 6]]
    assert len([*short]) == 1
    assert len(batches) == 3


def test_items_of_several_requests_share_a_batch() -> None:
    """Only items that are computed alike share one: same beam, same budget."""
    batches: list[Sources] = []
    scheduler = scheduler_of(batches)
    first = scheduler.submit([course([3, 4]), course([5, 6], beam_size=3)])
    second = scheduler.submit([course([6]), course([5], budget=7)])
    assert {number for number, _ in first} == {number for number, _ in second} == {0, 1}
    assert sorted(batches) == [[[3, 4], [6]], [[5]], [[5, 6]]]


def test_what_is_withdrawn_takes_no_further_step() -> None:
    """Waiting items are not computed, running rows leave the batch, the others are unchanged."""
    taken: list[Sources] = []
    scheduler = scheduler_of(taken)
    gone, stays = ([course([3, n]) for n in (3, 4)] for _ in range(2))
    leaving, staying = scheduler.submit(gone), scheduler.submit(stays)
    leaving.withdraw()
    assert [*leaving] == []
    assert [best for _, best in sorted(staying)] == [searched([[3, n]])[0] for n in (3, 4)]
    assert taken == [[[3, 3], [3, 4]]]

    model = TableModel(random_table(1, 7))
    steps = search_steps(
        model,
        sources([3, 5, EOS], [6, 4, EOS], [5, 5, EOS]),
        Beam(beam_size=2, n_best=2),
        limits=limits(9, 9, 9),
        withdrawn=lambda sentence: sentence != 1 and model.steps == 2,
    )
    found = dict(chain.from_iterable(step.finished.items() for step in steps))
    assert (
        found[1]
        == search(
            TableModel(random_table(1, 7)),
            sources([6, 4, EOS]),
            Beam(beam_size=2, n_best=2),
            limits=limits(9),
        )[0]
    )
    (state,) = model.states
    assert state.sizes[:2] == [6, 2]


def test_all_withdrawn_ends_a_search_at_its_next_step() -> None:
    """It ends however long it would have continued."""
    model = TableModel(random_table(1, 7))
    strategy, most = Beam(beam_size=2), limits(50, 50)
    src_BS = sources([3, 5, EOS], [6, 4, EOS])
    search(model, src_BS, strategy, limits=most, withdrawn=lambda _: model.steps >= 1)
    assert model.steps == 1


@given(SOURCES, st.integers(0, 11))
@settings(max_examples=30)
def test_what_fails_harms_no_other_request(inputs: Sources, place: int) -> None:
    """Answers that are there come before the failure; who has no item in the batch sees none."""
    broken = [*inputs[:place], [BROKEN, 3, 4], *inputs[place:]]
    scheduler = scheduler_of()
    failing = scheduler.submit([course(src) for src in broken])
    other = scheduler.submit([course(src, budget=23) for src in inputs])
    found = dict[int, list[Hypothesis]]()
    with pytest.raises(InputError, match="NaN"):
        found.update(failing)
    assert all(best == searched([broken[index]])[0] for index, best in found.items())
    assert [*other.in_order()] == [searched([src])[0] for src in inputs]


def failing() -> Search:
    """A course that fails after its search."""
    yield from course([3])
    raise InputError("this text cannot be written")


@pytest.mark.parametrize(
    ("bad", "said"), [(failing, "cannot be written"), (lambda: course([BROKEN]), "NaN")]
)
def test_a_course_or_an_item_that_fails_fails_its_request(
    bad: Callable[[], Search], said: str
) -> None:
    """The request raises the error, in whichever thread it occurred; other items are computed."""
    scheduler = scheduler_of()
    request, other = scheduler.submit([bad()]), scheduler.submit([course([3])])
    assert [*other] == [(0, searched([[3]])[0])]
    with pytest.raises(InputError, match=said):
        next(iter(request))


def test_a_budget_below_one_is_refused() -> None:
    """The message is that of `schedule`."""
    request = scheduler_of().submit([course([3], budget=0)])
    with pytest.raises(InputError, match="max_batch_tokens is 0"):
        next(iter(request))


def test_a_batch_may_ask_for_another_one() -> None:
    """A processor that itself translates something does not wait for itself."""

    def run(_how: None, batch: list[int], _withdrawn: object) -> list[int]:
        return [sum(found for _, found in scheduler.submit([total(n - 1)])) + n for n in batch]

    def total(number: int) -> Course[int, int, int]:
        if number == 0:
            return 0
        (found,) = yield Items(values=[number], costs=[1], budget=1)
        return found

    scheduler = Scheduler(run)
    assert [*scheduler.submit([total(4)])] == [(0, 10)]


def test_a_runner_that_loses_a_result_is_a_bug() -> None:
    """It is an error; later results are not shifted."""
    scheduler = Scheduler[list[int], list[Hypothesis]](lambda _, batch, __: searched(batch[1:]))
    with pytest.raises(ValueError, match="shorter"):
        next(iter(scheduler.submit([course([3]), course([4])])))
