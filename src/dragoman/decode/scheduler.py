"""Many requests, few batches: what several callers ask for is computed together.

    request = scheduler.submit(courses)
    for number, answer in request: ...      # as they are finished
    request.withdraw()                      # from any thread

A request has a *course* for each text: a generator that yields `Items` (sentences of ids,
say), is sent what was found for each of them, and returns the text's answer. It may ask more than
once, as a translation does that is searched again. The items of all requests wait together, and
those of similar cost that are computed alike share a batch within a budget of tokens.

A scheduler has no thread of its own: whoever waits for an answer runs batches meanwhile, one at a
time, in which items of other threads take part. Each thread goes on with its own courses. Requests
take turns to lead a batch, so none starves.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import ismethod
from itertools import count
from threading import Condition, local
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakMethod, WeakSet, finalize

from dragoman.errors import InputError

Item = TypeVar("Item")
Found = TypeVar("Found")
Answer = TypeVar("Answer")


def schedule(
    lengths: Sequence[int], max_batch_tokens: int, *, beam_size: int = 1
) -> list[list[int]]:
    """Batches of indices into `lengths`, each index in exactly one batch.

    A batch of n inputs whose longest has m tokens costs `n * m * beam_size` (padding included, as
    it is computed too) and stays within `max_batch_tokens`; an input that alone costs more gets a
    batch of its own. Sorting makes padding small. The longest come first: a batch that is too large
    for the memory fails at once instead of near the end, and an estimate of the time left errs on
    the side of too much. Equal lengths keep their order.
    """
    if max_batch_tokens < 1:
        raise InputError(f"max_batch_tokens is {max_batch_tokens}; it must be 1 or more.")
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches: list[list[int]] = []
    while order:
        room = room_for(lengths[order[0]] * beam_size, max_batch_tokens)
        batches.append(order[:room])
        del order[:room]
    return batches


def room_for(cost: int, budget: int) -> int:
    """How many items of at most this cost a batch has room for."""
    return max(1, budget // max(1, cost))


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

    `run` computes a batch; of a method, the object is not kept alive. An item's result must not
    depend on the items beside it.
    """

    def __init__(self, run: Run[Item, Found]) -> None:
        self._run: Callable[[], Run[Item, Found] | None]
        self._run = WeakMethod(run) if ismethod(run) else lambda: run
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
        self._busy = False

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        """A copy of the object that has a scheduler has one of its own, without requests."""
        return Scheduler, (self._run(),)

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

    def withdraw(self, request: _Waiting) -> None:
        """Let the items of a request leave: those that wait before the next batch.

        It may be called wherever code is interrupted, by a signal or a finaliser.
        """
        if not request.withdrawn:
            request.withdrawn = True
            self._gone.append(request)
            with self._changed:
                self._changed.notify_all()

    def _run_batch(self, request: _Waiting) -> None:
        """Compute a batch, or wait until another thread has, unless the request has news already.

        After Ctrl-C the items of the batch wait again: it is no affair of the others.
        """
        batch, leads, nested = list[_Entry](), False, getattr(_HERE, "computes", False)
        try:
            with self._changed:
                if request.ready or request.error is not None or request.withdrawn:
                    return
                if nested or not self._busy:
                    self._take(batch)
                if not batch:
                    self._changed.wait()
                    return
                leads = not self._busy
                self._busy = True
            _HERE.computes = True
            self._compute(batch)
        except BaseException:
            with self._changed:
                for entry in batch:
                    self._enqueue(*entry)
            raise
        finally:
            _HERE.computes = nested
            if batch:
                with self._changed:
                    self._busy = self._busy and not leads
                    self._changed.notify_all()

    def _take(self, batch: list[_Entry]) -> None:
        """Move the items of the next batch into `batch`; none where none wait.

        The first item is the most expensive of those that the request whose turn it is asked for
        first; the rest are those, of any request, that follow it by cost.
        """
        if self._gone:
            self._gone.clear()
            for place, queue in [*self._queues.items()]:
                self._queues[place] = [entry for entry in queue if not entry[0].request.withdrawn]
        for leader in [*self._turns]:
            for place, queue in self._queues.items():
                if place in self._unsorted:
                    queue.sort(key=lambda entry: -entry[0].items.costs[entry[1]])
                    self._unsorted.discard(place)
                start = next((n for n, (a, _) in enumerate(queue) if a.request is leader), None)
                if start is None:
                    continue
                asked, index = queue[start]
                end = start + room_for(asked.items.costs[index], asked.items.budget)
                batch += queue[start:end]
                del queue[start:end]
                if not queue:
                    del self._queues[place]
                self._turns[leader] = self._turns.pop(leader)  # and now the others
                return
            del self._turns[leader]

    def _compute(self, batch: list[_Entry]) -> None:
        """Run a batch; one that fails is run for each request by itself, and fails that."""
        requests = [asked.request for asked, _ in batch]
        if not batch:
            return
        try:
            found = self._results(batch, requests)
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            alone = {request: [e for e in batch if e[0].request is request] for request in requests}
            if len(alone) > 1:
                for entries in alone.values():
                    self._compute(entries)
            else:
                requests[0].error = requests[0].error or error
                self.withdraw(requests[0])
            return
        for (asked, index), one in found:
            if index not in asked.found:
                asked.found[index] = one
                if len(asked.found) == len(asked.items.values):
                    asked.request.ready.append(asked)

    def _results(self, batch: list[_Entry], requests: list[_Waiting]) -> list[tuple[_Entry, Any]]:
        values = [asked.items.values[index] for asked, index in batch]
        how = batch[0][0].items.how
        run = self._run()
        assert run is not None  # noqa: S101 (whoever waits has it)
        if self.observe is not None:
            costs = [asked.items.costs[index] for asked, index in batch]
            self.observe(BatchReport(costs, [monotonic() - asked.since for asked, _ in batch]))
        results = run(how, values, lambda number: requests[number].withdrawn)
        return [*zip(batch, results, strict=True)]

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
