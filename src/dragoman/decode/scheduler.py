"""Many requests, few batches: what several callers ask for is computed together.

    request = scheduler.submit(courses)
    for number, answer in request: ...      # as they are finished
    request.withdraw()                      # from any thread

A request has a *course* for each text: a generator that yields `Items` (sentences of ids, say), is
sent what was found for each, and returns the text's answer. It may ask more than once. The items of
all requests wait together, and those of similar cost that are computed alike share a batch.

Whoever waits for an answer runs batches meanwhile, in which items of other threads take part. Each
thread goes on with its own courses. Requests take turns to lead a batch, so none starves.

On a CPU two batches side by side, each on one thread, take less time than one after the other on
two threads, which meet after every product. So there are *lanes*. Those that are free share what
waits, by threads that end when nothing does. A lone item has all threads.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import ismethod
from itertools import count
from threading import Condition, Thread, local
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakMethod, WeakSet, finalize

from dragoman.decode.batches import room_for
from dragoman.errors import InputError
from dragoman.nn.cpu.native import share_of_threads

Item = TypeVar("Item")
Found = TypeVar("Found")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Generic[Item]):
    """What is to be computed in any batches, with items of others that have the same `key`."""

    values: Sequence[Item]
    costs: Sequence[int]
    """What each would cost in a batch of its own, in tokens."""
    budget: int
    """What a batch may cost: the number of its items times the greatest of their costs."""
    how: Any = None
    """What `Run` is told beside the items, such as the options of a search."""
    key: Hashable = None
    """What is equal for items that are computed alike."""


Course = Generator[Items[Item], list[Found], Answer]
"""How a text is answered: it yields items, is sent what was found, and returns the answer."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What an observer of a scheduler is told of a batch before it is computed."""

    costs: list[int]
    """Of each item, in tokens; in the batch each costs as much as the most expensive one."""
    waited: list[float]
    """Seconds since each was asked for."""


Withdrawn = Callable[[int], bool]
"""Whether the answer for an item, by its number in the batch, is not wanted any more."""

Run = Callable[[Any, list[Item], Withdrawn], Sequence[Found]]
"""Computes a batch, given their `how`: something for each item, for withdrawn ones anything."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """What is known of a request."""

    num_open: int
    """How many texts are without an answer."""
    ready: deque["_Asked"] = field(default_factory=deque)
    """Courses that have all they waited for."""
    finished: deque[tuple[int, Any]] = field(default_factory=deque)
    """Answers that were not taken yet."""
    error: Exception | None = None
    withdrawn: bool = False
    """Whether nobody waits for the rest of the answers."""


@dataclass(slots=True, eq=False)
class _Asked:
    """The items that a course waits for."""

    request: _Waiting
    number: int
    """Which course of the request it is."""
    course: Course[Any, Any, Any]
    items: Items[Any]
    found: dict[int, Any] = field(default_factory=dict)
    since: float = field(default_factory=monotonic)
    """When the course asked."""


_Entry = tuple[_Asked, int]
"""What was asked for, and the number of an item in it."""
_Place = tuple[Hashable, int]
"""Where items wait: their key and their budget."""


class Request(Generic[Answer]):
    """The answers to a number of texts. Iterating yields (number of the text, answer).

    They come as they are finished; what is left when the iteration, or the request, is given up is
    withdrawn. To be iterated by one thread. Raises what a batch of its items alone, or one of its
    courses, raises.
    """

    def __init__(
        self, scheduler: "Scheduler[Any, Any]", waiting: _Waiting, run: Run[Any, Any]
    ) -> None:
        self._scheduler, self._waiting = scheduler, waiting
        self._run = run  # which is there as long as somebody waits
        finalize(self, scheduler.withdraw, waiting).atexit = False

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        try:
            while self._scheduler.run_until_news(self._waiting):
                yield self._waiting.finished.popleft()
        finally:
            self.withdraw()

    def in_order(self) -> Iterator[Answer]:
        """Yield the answers in the order of their texts, each as soon as those before it are."""
        early: dict[int, Answer] = {}
        wanted = count()
        number = next(wanted)
        for finished, answer in self:
            early[finished] = answer
            while number in early:
                yield early.pop(number)
                number = next(wanted)

    def withdraw(self) -> None:
        """Let go of what is not answered: waiting items leave at once, rows at the next step."""
        self._scheduler.withdraw(self._waiting)


_HERE = local()
"""Whether this thread computes a batch: then it may compute another, which that one waits for."""


class Scheduler(Generic[Item, Found]):
    """Serves the requests of any number of threads, in batches.

    `run` computes a batch, in several threads at once where there are `lanes`; of a method, the
    object is not kept alive. An item's result must not depend on the items beside it.
    """

    def __init__(self, run: Run[Item, Found], lanes: Callable[[], int] = lambda: 1) -> None:
        self._run: Callable[[], Run[Item, Found] | None]
        self._run = WeakMethod(run) if ismethod(run) else lambda: run
        self._lanes = lanes
        self._queues: dict[_Place, list[_Entry]] = {}
        """The items that wait, the most expensive first where a queue is not in `_unsorted`."""
        self._unsorted = set[_Place]()
        self._turns: dict[_Waiting, None] = {}
        """The requests in the order in which they lead a batch."""
        self._gone: deque[_Waiting] = deque()
        """Withdrawn requests whose items are still in a queue."""
        self.observe: Callable[[BatchReport], None] | None = None
        """Called by the thread that computes, for each batch."""
        self._begin()
        _SCHEDULERS.add(self)

    def _begin(self) -> None:
        """Let no thread compute a batch, or wait."""
        self._changed = Condition()
        self._running: dict[object, int] = {}
        """The lanes of each batch that is computed."""
        self._waiting = set[object]()
        """A mark of each thread that waits for answers."""
        self._idle = set[object]()
        """Of each of them that computes nothing."""

    def __reduce__(self) -> tuple[type, tuple[Any, Any]]:
        """A copy of the object that has a scheduler has one of its own, without requests."""
        return Scheduler, (self._run(), self._lanes)

    def submit(self, courses: Sequence[Course[Item, Found, Answer]]) -> Request[Answer]:
        """Begin to answer; nothing is computed before somebody waits for an answer."""
        run = self._run()
        assert run is not None  # noqa: S101 (whoever submits has the object)
        waiting = _Waiting(len(courses))
        request = Request[Answer](self, waiting, run)
        for number, course in enumerate(courses):
            self._advance(waiting, number, course, None)
        return request

    def run_until_news(self, request: _Waiting) -> bool:
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

    def withdraw(self, request: _Waiting) -> None:
        """Let the items of a request leave: those that wait before the next batch.

        It may be called wherever code is interrupted, by a signal or a finaliser.
        """
        if not request.withdrawn:
            request.withdrawn = True
            self._gone.append(request)
            with self._changed:
                self._changed.notify_all()

    def _run_batch(self, request: _Waiting | None) -> bool:
        """Compute a batch, or wait until another thread has, unless the request has news already.

        Without a request nobody waits here. Returns whether there was a batch. After Ctrl-C its
        items wait again: it is no affair of the others.
        """
        here, batch, nested = object(), list[_Entry](), getattr(_HERE, "computes", False)
        try:
            with self._changed:
                if request is not None and (
                    request.ready or request.error is not None or request.withdrawn
                ):
                    return False
                most = max(1, self._lanes())
                if request is not None or self._waiting:
                    self._running[here] = self._take(batch, most, nested=nested)
                if not batch:
                    if request is not None:
                        self._idle.add(here)
                        self._changed.wait()
                    return False
                alone = self._running[here] == most
                if (
                    self._queues and sum(self._running.values()) < most
                ):  # others have something to do, too
                    if self._idle:
                        self._changed.notify()
                    else:
                        Thread(target=self._help, name="dragoman lane").start()
            _HERE.computes = True
            with share_of_threads(1 if alone else most):
                self._compute(batch)
        except BaseException:
            with self._changed:
                for entry in batch:
                    self._enqueue(*entry)
            raise
        finally:
            _HERE.computes = nested
            self._idle.discard(here)
            if self._running.pop(here, 0):
                with self._changed:
                    self._changed.notify_all()
        return True

    def _help(self) -> None:
        """Compute batches as long as some wait that somebody waits for."""
        while self._run_batch(None):
            pass

    def _take(self, batch: list[_Entry], most: int, *, nested: bool) -> int:
        """Move the items of the next batch into `batch`; return the lanes that it takes of `most`.

        None where none wait, or no lane is free and no batch of this thread waits for one. The
        first item is the most expensive of those that the request whose turn it is asked for first;
        the rest are those, of any request, that follow it by cost.
        """
        free = most - sum(self._running.values())
        if free < 1 and not nested:
            return 0
        if self._gone:
            self._gone.clear()
            for place, queue in [*self._queues.items()]:
                self._queues[place] = [entry for entry in queue if not entry[0].request.withdrawn]
                if not self._queues[place]:
                    del self._queues[place]
        for leader in [*self._turns]:
            for place, queue in self._queues.items():
                if place in self._unsorted:
                    queue.sort(key=lambda entry: -entry[0].items.costs[entry[1]])
                    self._unsorted.discard(place)
                start = next((n for n, (a, _) in enumerate(queue) if a.request is leader), None)
                if start is None:
                    continue
                asked, index = queue[start]
                room = room_for(asked.items.costs[index], asked.items.budget // most)
                room = min(room, -(-len(queue) // max(1, free)))
                batch += queue[start : start + room]
                del queue[start : start + room]
                if not queue:
                    del self._queues[place]
                self._turns[leader] = self._turns.pop(leader)  # and now the others
                return most if len(batch) == 1 and free == most and not self._queues else 1
            del self._turns[leader]
        return 0

    def _compute(self, batch: list[_Entry]) -> None:
        """Run a batch; one that fails is run for each request by itself, and fails that."""
        requests = [asked.request for asked, _ in batch]
        if not batch:
            return
        try:
            results = self._results(batch, requests)
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            alone = {request: [e for e in batch if e[0].request is request] for request in requests}
            if len(alone) > 1:
                for entries in alone.values():
                    self._compute(entries)
            else:
                requests[0].error = requests[0].error or error
                self.withdraw(requests[0])
            return
        with self._changed:
            for (asked, index), one in zip(batch, results, strict=True):
                if index not in asked.found:
                    asked.found[index] = one
                    if len(asked.found) == len(asked.items.values):
                        asked.request.ready.append(asked)

    def _results(self, batch: list[_Entry], requests: list[_Waiting]) -> Sequence[Any]:
        values = [asked.items.values[index] for asked, index in batch]
        run = self._run()
        assert run is not None  # noqa: S101 (whoever waits has it)
        if self.observe is not None:
            costs = [asked.items.costs[index] for asked, index in batch]
            self.observe(BatchReport(costs, [monotonic() - asked.since for asked, _ in batch]))
        return run(batch[0][0].items.how, values, lambda number: requests[number].withdrawn)

    def _advance(
        self,
        request: _Waiting,
        number: int,
        course: Course[Item, Found, Any],
        found: list[Found] | None,
    ) -> None:
        """Let a course go on to its next items, or to its answer."""
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
            self.withdraw(request)
        else:
            asked = _Asked(request, number, course, items)
            with self._changed:
                for index in range(len(items.values)):
                    self._enqueue(asked, index)

    def _enqueue(self, asked: _Asked, index: int) -> None:
        """Let an item wait that has not been computed."""
        if index not in asked.found and not asked.request.withdrawn:
            place = asked.items.key, asked.items.budget
            self._queues.setdefault(place, []).append((asked, index))
            self._unsorted.add(place)
            self._turns.setdefault(asked.request)


_SCHEDULERS = WeakSet[Scheduler[Any, Any]]()


def _begin_again() -> None:
    """In a forked child: the threads that computed or waited are not there."""
    _HERE.computes = False
    for scheduler in _SCHEDULERS:
        scheduler._begin()  # noqa: SLF001 -- this file's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
