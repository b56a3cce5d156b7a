"""A scheduler and its threads: interrupts, forks, other schedulers, and object lifetimes."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import count, islice
from random import Random
from threading import Barrier, Event, Thread, current_thread
from threading import enumerate as enumerate_threads
from types import FrameType
from typing import Any
from weakref import ref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.decode.test_scheduler import (
    SOURCES,
    Search,
    Sources,
    course,
    scheduler_of,
    searched,
)

from dragoman.decode import Course, Items, Scheduler


@given(st.lists(SOURCES, min_size=2, max_size=4), st.integers(0, 2**31), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_threads_that_submit_and_withdraw_at_random_change_no_answer(
    requests: list[Sources], seed: int, lanes: int
) -> None:
    """Each thread takes some answers of each of its requests, and gives up the rest."""
    scheduler, wrong = scheduler_of(lanes=lanes), list[object]()

    def caller(number: int) -> None:
        draw = Random(f"{seed} {number}")
        try:
            for _ in range(3):
                inputs = requests[draw.randrange(len(requests))]
                request = scheduler.submit([course(src) for src in inputs])
                wanted = draw.randrange(len(inputs) + 2)
                for index, found in islice(request, wanted):
                    if found != searched([inputs[index]])[0]:
                        wrong.append((inputs[index], found))
                request.withdraw()
        except BaseException as error:  # noqa: BLE001 -- shown by the test
            wrong.append(error)

    threads = [Thread(target=caller, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)
    request = scheduler.submit([course([3, 4])])  # and nothing is left of what was given up
    assert [*request] == [(0, searched([[3, 4]])[0])]


@given(SOURCES, st.integers(1, 60), st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_batches_side_by_side_change_no_answer(inputs: Sources, budget: int, lanes: int) -> None:
    """One caller's texts are shared by the lanes, and together cost no more than the budget."""
    batches: list[Sources] = []
    request = scheduler_of(batches, lanes).submit([course(src, budget) for src in inputs])
    assert [*request.in_order()] == [searched([src])[0] for src in inputs]
    assert sorted(src for batch in batches for src in batch) == sorted(inputs)
    for batch in batches:
        assert len(batch) == 1 or max(map(len, batch)) * len(batch) <= budget // lanes


def one(number: int, budget: int = 1, key: int | None = None) -> Course[int, int, int]:
    """Ask for a number, in a batch of its own or with those of the same key."""
    key = number if key is None else key
    (found,) = yield Items(values=[number], costs=[1], budget=budget, key=key)
    return found


def meeting(lanes: int, texts: int) -> tuple[list[int], list[str]]:
    """Run single items whose batches wait for each other; return their thread counts and names."""
    together, seen = Barrier(lanes), list[tuple[int, str]]()

    def run(_how: None, batch: list[int], _withdrawn: object) -> list[int]:
        together.wait(20)
        seen.append((torch.get_num_threads(), current_thread().name))
        return batch

    request = Scheduler(run, lambda: lanes).submit([one(number, lanes) for number in range(texts)])
    assert dict(request) == {number: number for number in range(texts)}
    return [threads for threads, _ in seen], [name for _, name in seen]


def test_as_many_batches_run_at_a_time_as_there_are_lanes() -> None:
    """Each runs on one thread, in threads that end; the waiting caller takes part."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        threads, names = meeting(3, 9)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert threads == [1] * 9
    assert current_thread().name in names
    for thread in enumerate_threads():
        if thread.name == "dragoman lane":
            thread.join(20)
            assert not thread.is_alive()


def test_one_thread_answers_where_no_other_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """This happens at a container's thread limit or at interpreter shutdown."""

    def start(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", start)
    inputs = [[3], [4], [5, 5], [6]]
    request = scheduler_of(lanes=3).submit([course(src, 1) for src in inputs])
    assert [*request.in_order()] == [searched([src])[0] for src in inputs]


def test_ctrl_c_leaves_no_lane_behind() -> None:
    """The waiting caller is interrupted; the batch next to it ends; later all lanes are free."""
    begun, go_on, main = Event(), Event(), current_thread()

    def run(_how: None, batch: list[int], _withdrawn: object) -> list[int]:
        if batch == [0] and current_thread() is main:
            begun.wait(20)
            raise KeyboardInterrupt
        begun.set()
        go_on.wait(20)
        return batch

    scheduler = Scheduler(run, lambda: 2)
    with pytest.raises(KeyboardInterrupt):
        dict(scheduler.submit([one(number, 2) for number in range(5)]))
    go_on.set()
    assert dict(scheduler.submit([one(7, 2), one(8, 2)])) == {0: 7, 1: 8}


def interrupt_after(events: int) -> Callable[[FrameType, str, object], None]:
    """Return a profiler that raises KeyboardInterrupt where the interpreter may.

    That is at the start of each function that `_run_batch` calls, or after a C function.
    """
    left = count(events, -1)

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        by = frame if event == "c_return" else frame.f_back if event == "call" else None
        if by is not None and by.f_code.co_name == "_run_batch" and not next(left):
            raise KeyboardInterrupt

    return profile


def test_ctrl_c_at_any_place_of_a_batch_stops_no_other_thread() -> None:
    """Wherever it comes, the lane is free, nothing is locked, and another thread is served."""
    for events in count():
        scheduler, found = scheduler_of(), list[object]()
        mine = scheduler.submit([course([3])])
        sys.setprofile(interrupt_after(events))
        try:
            ended = [*mine] == [(0, searched([[3]])[0])]
        except KeyboardInterrupt:
            ended = False
        finally:
            sys.setprofile(None)
        assert not scheduler._running
        other = Thread(
            target=lambda: found.extend(scheduler.submit([course([4])])),  # noqa: B023
            daemon=True,
        )
        other.start()
        other.join(20)
        assert found == [(0, searched([[4]])[0])], events
        if ended:
            return


def test_an_interrupted_batch_is_computed_for_the_others() -> None:
    """Ctrl-C affects only the thread that receives it."""
    interrupts = [KeyboardInterrupt]

    def run(_how: None, batch: list[int], _withdrawn: object) -> list[int]:
        if interrupts:
            raise interrupts.pop()
        return batch

    scheduler = Scheduler(run)
    mine, other = (scheduler.submit([one(number, 9, 0)]) for number in (1, 2))
    with pytest.raises(KeyboardInterrupt):
        next(iter(mine))
    assert [*other] == [(0, 2)]


def test_what_is_interrupted_between_batches_harms_no_other_thread() -> None:
    """An interrupted course affects only the thread that continues it."""

    def interrupted() -> Search:
        yield from course([3])
        raise KeyboardInterrupt

    scheduler = scheduler_of()
    mine, other = scheduler.submit([interrupted()]), scheduler.submit([course([3])])
    with pytest.raises(KeyboardInterrupt):
        next(iter(mine))
    assert [*other] == [(0, searched([[3]])[0])]


def test_a_request_that_nobody_has_any_more_is_withdrawn() -> None:
    """Its items are not computed for later requests."""
    batches: list[Sources] = []
    scheduler = scheduler_of(batches)
    scheduler.submit([course([3, 3])])
    gc.collect()
    assert [*scheduler.submit([course([4])])] == [(0, searched([[4]])[0])]
    assert batches == [[[4]]]


def test_two_schedulers_may_ask_each_other() -> None:
    """Each does so from one of its batches, in two threads at the same time."""
    both, schedulers = Barrier(2), list[Scheduler[int, int]]()

    def asking(other: int) -> Callable[[Any, list[int], object], list[int]]:
        def run(_how: None, batch: list[int], _withdrawn: object) -> list[int]:
            if batch == [0]:
                return [1]
            both.wait(20)
            return [1 + found for _, found in schedulers[other].submit([one(0)])]

        return run

    schedulers += [Scheduler(asking(1)), Scheduler(asking(0))]
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda each: dict(each.submit([one(1)])), schedulers)
        assert [*found] == [{0: 2}, {0: 2}]


def test_its_owner_is_not_kept_alive_and_can_be_copied() -> None:
    """A model is freed with the object that owns it."""

    class Owner:
        def __init__(self) -> None:
            self.scheduler = Scheduler(self.run)

        def run(self, _how: None, batch: list[int], _withdrawn: object) -> list[int]:
            return [number + 1 for number in batch]

    owner = Owner()
    other, gone = deepcopy(owner), ref(owner)
    request = owner.scheduler.submit([one(1)])
    del owner
    assert [*request] == [(0, 2)]
    del request
    assert gone() is None
    assert [*other.scheduler.submit([one(2)])] == [(0, 3)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    """A batch that a thread of the parent computes is not the child's."""
    begun, ends = Event(), Event()

    def run(_how: None, batch: list[int], _withdrawn: object) -> list[int]:
        if batch == [1]:
            begun.set()
            ends.wait(20)
        return batch

    scheduler = Scheduler(run)
    thread = Thread(target=lambda: [*scheduler.submit([one(1)])])
    thread.start()
    begun.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if [*scheduler.submit([one(2)])] == [(0, 2)] else 1)
    assert os.waitpid(child, 0)[1] == 0
    ends.set()
    thread.join(20)
