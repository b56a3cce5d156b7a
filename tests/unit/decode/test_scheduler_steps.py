"""Between the steps of a long batch: shorter items of others are computed, within limits."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from threading import Event, Thread

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.decode.test_scheduler import SOURCES, Sources, course, scheduler_of, searched

from dragoman.decode import Course, Items, Scheduler, scheduler


def one(name: str, cost: int) -> Course[str, str, str]:
    """Ask for an item that is alone in its batch."""
    (found,) = yield Items(values=[name], costs=[cost], budget=10**6, how=name, key=name)
    return found


def long_batch(each_step: Callable[[], bool], lanes: Callable[[], int]) -> Scheduler[str, str]:
    """Compute "long" in steps until a step says that it is the last; anything else at once."""

    def run(name: str, batch: list[str], withdrawn: Callable[[int], bool]) -> list[str]:
        for _ in range(10_000 if name == "long" else 0):  # ten seconds
            if each_step():
                break
            withdrawn(0)
        return batch

    return Scheduler(run, lanes)


def test_a_short_item_does_not_wait_for_a_long_batch() -> None:
    """It is answered between two steps, even with a single lane."""
    begun, answered, order = Event(), Event(), list[str]()

    def last() -> bool:
        begun.set()
        return answered.wait(0.001)

    one_lane = long_batch(last, lambda: 1)

    def ask() -> None:
        begun.wait(20)
        order.extend(dict(one_lane.submit([one("short", 1)])).values())
        answered.set()

    other = Thread(target=ask)
    other.start()
    order.extend(dict(one_lane.submit([one("long", 100)])).values())
    other.join(20)
    assert order == ["short", "long"]


def test_a_short_item_does_not_wait_for_a_batch_of_another_request() -> None:
    """The other's items are as short, but many; a request of a single item is not interrupted."""

    def seen(requests: list[int]) -> list[str]:
        """Return the order in which a batch of these requests and a short item are computed."""
        order, asked = list[str](), iter([False] * 50 + [True])

        def run(name: str, batch: list[str], withdrawn: Callable[[int], bool]) -> list[str]:
            if name == "many" and not order:
                submitted.append(one_lane.submit([one("short", 2)]))
                while not next(asked):
                    withdrawn(0)
            order.append(name)
            return batch

        one_lane = Scheduler[str, str](run)
        submitted = [one_lane.submit([many(number)]) for number in requests]
        for request in submitted:
            dict(request)
        return order

    def many(number: int) -> Course[str, str, str]:
        found = yield Items(
            values=["many"] * number, costs=[2] * number, budget=10**6, how="many", key="many"
        )
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "PATIENCE", 0)
        assert seen([20]) == ["short", "many"]
        assert seen([1] * 20) == ["many", "short"]


def test_other_items_wait_for_the_end_of_a_batch() -> None:
    """Items of its own request wait, and those of requests that are not much shorter in total."""
    seen = list[str]()
    steps = iter([False] * 50 + [True])

    def run(name: str, batch: list[str], withdrawn: Callable[[int], bool]) -> list[str]:
        while name == "long" and not next(steps):
            withdrawn(0)
        seen.append(name)
        return batch

    one_lane = Scheduler[str, str](run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "PATIENCE", 0)
        first = one_lane.submit([one("long", 100), one("own", 1)])
        bulk = one_lane.submit([one("as long", 50), one("its part", 2)])
        short = one_lane.submit([one("short", 2)])
        answered = len(dict(first)) + len(dict(bulk)) + len(dict(short))
    assert answered == len(seen) == 5
    assert seen.index("short") < seen.index("long")
    assert all(seen.index("long") < seen.index(name) for name in ("own", "as long", "its part"))


def test_a_long_batch_keeps_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second for others it computes a second of its own steps."""
    now, log = 0.0, list[str]()

    def run(name: str, batch: list[str], withdrawn: Callable[[int], bool]) -> list[str]:
        nonlocal now
        for _ in range(35 if name == "long" else 1):
            now += 0.1 if name == "long" else 1.0
            log.append(name)
            withdrawn(0)
        return batch

    monkeypatch.setattr(scheduler, "monotonic", lambda: now)
    one_lane = Scheduler[str, str](run)
    first = one_lane.submit([one("long", 100)])
    others = [one_lane.submit([one(f"short {number}", 1)]) for number in range(3)]
    assert len(dict(first)) + sum(len(dict(request)) for request in others) == 4
    places = [place for place, name in enumerate(log) if name != "long"]
    assert [after - before - 1 for before, after in pairwise(places)] == [10, 10]


def test_a_lone_item_has_all_threads_until_another_waits() -> None:
    """Then it continues with its share, and the other runs next to it."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    threads, begun, answered = list[int](), Event(), Event()

    def last() -> bool:
        threads.append(torch.get_num_threads())
        begun.set()
        return answered.wait(0.001)

    lanes = long_batch(last, torch.get_num_threads)

    def ask() -> None:
        begun.wait(20)
        dict(lanes.submit([one("as long", 100)]))
        answered.set()

    other = Thread(target=ask)
    other.start()
    try:
        assert dict(lanes.submit([one("long", 100)])) == {0: "long"}
        assert answered.is_set()
        other.join(20)
        assert (threads[0], threads[-1], torch.get_num_threads()) == (2, 1, 2)
    finally:
        torch.set_num_threads(before)


@given(st.lists(SOURCES, min_size=2, max_size=4), st.integers(0, 2**31), st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_what_is_computed_between_steps_changes_no_answer(
    requests: list[Sources], seed: int, lanes: int
) -> None:
    """Wherever anything is computed between any steps, all find what they find alone."""
    draw = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "PATIENCE", 0)
        patch.setattr(scheduler, "SHORT", 1)
        asked = scheduler_of(lanes=lanes)
        submitted = [
            (inputs, asked.submit([course(src, draw.randrange(1, 40)) for src in inputs]))
            for inputs in requests
        ]
        for inputs, request in submitted:
            assert dict(request) == {n: searched([src])[0] for n, src in enumerate(inputs)}
