"""Many requests, few batches: what several callers ask for is computed together.

    request = scheduler.submit(courses)
    for number, answer in request: ...      # as they are finished
    request.withdraw()                      # from any thread

A request has a *course* for each text: a generator that yields `Items` (sentences of ids, say), is
sent the result for each, and returns the text's answer. It may yield more than once. The items of
all requests wait together, and items of similar cost that are computed alike share a batch.

A thread that waits for an answer runs batches in the meantime, which may contain items of other
threads, and advances its own courses. Requests take turns at leading a batch, so none starves.

On a CPU two batches at once, on a thread each, take less time than one after the other on two
threads, which synchronise after every product. So there are *lanes*. Free lanes take what waits,
in threads that end when nothing does. A lone item has all threads until another one waits.

Between two steps of a batch with many items of one request, its thread computes requests that cost
much less, for at most half of the time: a sentence does not wait for a document.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from inspect import ismethod
from threading import Condition, RLock, Thread, local
from time import monotonic
from typing import Any, Generic
from weakref import WeakMethod, WeakSet

from dragoman.decode.compiled import call_back
from dragoman.decode.requests import (
    Answer,
    Asked,
    BatchReport,
    Course,
    Entry,
    Found,
    Item,
    Place,
    Request,
    Run,
    Waiting,
    cost_of,
    room_for,
)
from dragoman.errors import InputError
from dragoman.nn.cpu.native import share_of_threads

SHORT = 8
"""A request is short if another one's items in a batch cost this many times as much as it does."""
PATIENCE = 0.01
"""Seconds for which a batch computes its own steps before it checks who else waits."""
_HERE = local()
"""Whether this thread computes a batch; it may then compute another while the first one waits."""


class Scheduler(Generic[Item, Found]):
    """Serves the requests of any number of threads, in batches.

    `run` computes a batch, in up to `lanes` threads at the same time; if it is a method, its object
    is not kept alive. An item's result must not depend on the other items of its batch.
    """

    def __init__(self, run: Run[Item, Found], lanes: Callable[[], int] = lambda: 1) -> None:
        self._run: Callable[[], Run[Item, Found] | None]
        self._run = WeakMethod(run) if ismethod(run) else lambda: run
        self._lanes = lanes
        self._queues: dict[Place, list[Entry]] = {}
        """The waiting items, the most expensive first unless the queue is in `_unsorted`."""
        self._unsorted = set[Place]()
        self._turns: dict[Waiting, None] = {}
        """The requests in the order in which they lead a batch."""
        self._gone: deque[Waiting] = deque()
        """Withdrawn requests whose items are still in a queue."""
        self.observe: Callable[[BatchReport], None] | None = None
        """Called for each batch by the thread that computes it."""
        self._begin()
        _SCHEDULERS.add(self)

    def _begin(self) -> None:
        """Start without threads that compute a batch or wait."""
        self._lock = RLock()  # in C: Ctrl-C cannot leave it locked, unlike a Condition
        self._running: dict[object, int] = {}
        """The lanes of each running batch."""
        self._asleep: dict[Waiting, Condition] = {}
        """The condition on which the thread of a request sleeps until there is news."""
        self._waiting = set[object]()
        """A marker for each thread that waits for answers."""

    def __reduce__(self) -> tuple[type, tuple[Any, Any]]:
        """Give a copy of the object that has a scheduler its own, without requests."""
        return Scheduler, (self._run(), self._lanes)

    def submit(self, courses: Sequence[Course[Item, Found, Answer]]) -> Request[Answer]:
        """Submit texts; nothing is computed until someone waits for an answer."""
        run = self._run()
        assert run is not None  # noqa: S101 (whoever submits has the object)
        waiting = Waiting(len(courses))
        request = Request[Answer](waiting, self._run_until_news, self._withdraw, run)
        for number, course in enumerate(courses):
            self._advance(waiting, number, course, None)
        return request

    def _run_until_news(self, request: Waiting) -> bool:
        """Run batches until the request has an answer to take; return whether there is one.

        Raises the request's error.
        """
        here = object()
        try:
            self._waiting.add(here)
            while True:
                while request.ready:
                    asked = request.ready.popleft()
                    found = [asked.found[number] for number in range(len(asked.found))]
                    self._advance(request, asked.number, asked.course, found)
                if request.finished:
                    return True
                if request.error is not None:
                    raise request.error
                if not request.num_open or request.withdrawn:
                    return False
                self._run_batch(request)
        finally:
            self._waiting.discard(here)

    def _withdraw(self, request: Waiting) -> None:
        """Withdraw a request: its waiting items leave before the next batch.

        It may be called by a signal handler or finaliser at any point of the code.
        """
        if not request.withdrawn:
            request.withdrawn = True
            call_back()
            self._gone.append(request)
            with self._lock:
                self._wake(request)

    def _run_batch(self, request: Waiting | None) -> bool:
        """Compute a batch, or sleep if there is none, unless the request already has news.

        Without a request it does not sleep. Returns whether there was a batch. After Ctrl-C the
        items return to their queue, so that other requests are not affected.
        """
        here, batch, nested = object(), list[Entry](), getattr(_HERE, "computes", False)
        stays = False  # to compute the next batch
        try:
            with self._lock:
                if request is not None and request.news:
                    return False
                most = max(1, self._lanes())
                if request is not None or self._waiting:
                    self._running[here] = self._take(batch, most, nested=nested)
                if not batch:
                    self._running.pop(here, 0)
                    if request is not None:
                        self._sleep(request)
                        stays = not request.news
                    return False
                alone = self._running[here] == most
                self._fill_lanes()
            _HERE.computes = True
            with ExitStack() as threads:
                threads.enter_context(share_of_threads(1 if alone else most))
                self._compute(batch, self._between_steps(here, batch, most, threads))
            stays = request is None or not request.news
        except BaseException:
            with self._lock:
                for entry in batch:
                    self._enqueue(*entry)
            raise
        finally:
            _HERE.computes = nested
            try:  # Ctrl-C may come here, too
                self._running.pop(here, 0)
            finally:
                with self._lock:
                    if not stays and self._free():
                        self._wake()
        return True

    def _sleep(self, request: Waiting) -> None:
        """Wait until there is news for a request or its thread should compute a batch."""
        self._asleep[request] = condition = Condition(self._lock)
        try:
            condition.wait()
        finally:
            self._asleep.pop(request, None)

    def _wake(self, request: Waiting | None = None) -> bool:
        """Wake the thread of a request, or the last one to sleep, whose caches are warm.

        Returns whether one was asleep.
        """
        request = request or next(reversed(self._asleep), None)
        condition = None if request is None else self._asleep.pop(request, None)
        if condition is not None:
            condition.notify()
        return condition is not None

    def _free(self) -> bool:  # there are items, and lanes for them
        return bool(self._queues) and sum(self._running.values()) < max(1, self._lanes())

    def _between_steps(
        self, here: object, batch: list[Entry], most: int, threads: ExitStack
    ) -> Callable[[], None]:
        """Return what the thread of a batch does between steps for waiting requests."""
        look = monotonic() + PATIENCE

        def between_steps() -> None:
            nonlocal look
            if not self._queues or (now := monotonic()) < look:
                return
            if self._running.get(here, 1) > 1:
                with self._lock:
                    self._running[here] = 1
                    self._fill_lanes()
                threads.enter_context(share_of_threads(most))
            else:
                self._compute_short(batch, most)
            after = monotonic()
            look = after + max(PATIENCE, after - now)

        return between_steps

    def _compute_short(self, beside: list[Entry], most: int) -> None:
        """Compute waiting items of requests that are short next to one in the batch."""
        batch, costs = list[Entry](), Counter[Waiting]()
        for entry in beside:
            costs[entry[0].request] += cost_of(entry)
        [(largest, cost)] = costs.most_common(1)
        try:
            with self._lock:
                self._forget_withdrawn()
                short = {a for a in self._turns if a is not largest and 0 < a.cost <= cost / SHORT}
                for place, queue in [*self._queues.items()] if short else []:
                    if found := [entry for entry in queue if entry[0].request in short]:
                        share = found[0][0].items.budget // most // SHORT
                        room = room_for(max(map(cost_of, found)), share)
                        batch += found[:room]
                        left = [entry for entry in queue if entry[0].request not in short]
                        self._queues[place] = left + found[room:]
                        self._unsorted.add(place)
                        self._taken(place, batch)
                        break
            if batch:
                self._compute(batch, lambda: None)
        except BaseException:
            with self._lock:
                for entry in batch:
                    self._enqueue(*entry)
            raise

    def _fill_lanes(self) -> None:
        """Let another thread compute if items wait and a lane is free."""
        if self._free() and not self._wake():
            with suppress(RuntimeError):  # no more threads: continue with these
                Thread(target=self._help, name="dragoman lane").start()

    def _help(self) -> None:
        """Compute batches as long as there are items that someone waits for."""
        while self._run_batch(None):
            pass

    def _take(self, batch: list[Entry], most: int, *, nested: bool) -> int:
        """Move the items of the next batch into `batch`; return how many of `most` lanes it takes.

        It takes none if nothing waits, or if no lane is free and the batch is not nested. The first
        item is the most expensive one of the leading request in its first queue; the rest follow it
        by cost and belong to any request.
        """
        free = most - sum(self._running.values())
        if free < 1 and not nested:
            return 0
        self._forget_withdrawn()
        for leader in [*self._turns]:
            for place, queue in self._queues.items():
                if place in self._unsorted:
                    queue.sort(key=cost_of, reverse=True)
                    self._unsorted.discard(place)
                start = next((n for n, (a, _) in enumerate(queue) if a.request is leader), None)
                if start is None:
                    continue
                room = room_for(cost_of(queue[start]), queue[start][0].items.budget // most)
                room = min(room, -(-len(queue) // max(1, free)))
                batch += queue[start : start + room]
                del queue[start : start + room]
                self._taken(place, batch)
                self._turns[leader] = self._turns.pop(leader)  # to the end of the line
                return most if len(batch) == 1 and free == most and not self._queues else 1
            del self._turns[leader]
        return 0

    def _taken(self, place: Place, batch: list[Entry]) -> None:
        """Account for items taken out of a queue, and remove the queue if it is empty."""
        for entry in batch:
            entry[0].request.cost -= cost_of(entry)
        if not self._queues[place]:
            del self._queues[place]
            self._unsorted.discard(place)

    def _forget_withdrawn(self) -> None:
        """Remove the items of withdrawn requests from the queues."""
        if self._gone:
            self._gone.clear()
            for place, queue in [*self._queues.items()]:
                self._queues[place] = [entry for entry in queue if not entry[0].request.withdrawn]
                if not self._queues[place]:
                    del self._queues[place]

    def _compute(self, batch: list[Entry], between_steps: Callable[[], None]) -> None:
        """Run a batch; if it fails, run it for each request alone, and fail only that one."""
        requests = [asked.request for asked, _ in batch]
        try:
            results = self._results(batch, requests, between_steps)
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            alone = {request: [e for e in batch if e[0].request is request] for request in requests}
            if len(alone) > 1:
                for entries in alone.values():
                    self._compute(entries, between_steps)
            else:
                requests[0].error = requests[0].error or error
                self._withdraw(requests[0])
            return
        with self._lock:
            for (asked, index), one in zip(batch, results, strict=True):
                if index not in asked.found:
                    asked.found[index] = one
                    if len(asked.found) == len(asked.items.values):
                        asked.request.ready.append(asked)
                        self._wake(asked.request)

    def _results(
        self, batch: list[Entry], requests: list[Waiting], between_steps: Callable[[], None]
    ) -> Sequence[Any]:
        values = [asked.items.values[index] for asked, index in batch]
        run = self._run()
        assert run is not None  # noqa: S101 (whoever waits has it)
        if self.observe is not None:
            costs = [asked.items.costs[index] for asked, index in batch]
            self.observe(BatchReport(costs, [monotonic() - asked.since for asked, _ in batch]))

        def withdrawn(number: int) -> bool:
            between_steps()
            return requests[number].withdrawn

        return run(batch[0][0].items.how, values, withdrawn)

    def _advance(
        self,
        request: Waiting,
        number: int,
        course: Course[Item, Found, Any],
        found: list[Found] | None,
    ) -> None:
        """Advance a course to its next items or to its answer."""
        if request.withdrawn:
            return
        try:
            items = next(course) if found is None else course.send(found)
            while not items.values:
                items = course.send([])
            if items.budget < 1:
                raise InputError(f"max_batch_tokens is {items.budget}; it must be 1 or more.")
        except StopIteration as end:
            request.finished.append((number, end.value))
            request.num_open -= 1
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            request.error = request.error or error
            self._withdraw(request)
        else:
            asked = Asked(request, number, course, items)
            with self._lock:
                for index in range(len(items.values)):
                    self._enqueue(asked, index)

    def _enqueue(self, asked: Asked, index: int) -> None:
        """Queue an item that has not been computed."""
        if index not in asked.found and not asked.request.withdrawn:
            place = asked.items.key, asked.items.budget
            self._queues.setdefault(place, []).append((asked, index))
            asked.request.cost += asked.items.costs[index]
            self._unsorted.add(place)
            self._turns.setdefault(asked.request)


_SCHEDULERS = WeakSet[Scheduler[Any, Any]]()


def _begin_again() -> None:
    """Reset the schedulers of a forked child, which lacks the parent's other threads."""
    _HERE.computes = False
    for scheduler in _SCHEDULERS:
        scheduler._begin()  # noqa: SLF001 -- this file's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
