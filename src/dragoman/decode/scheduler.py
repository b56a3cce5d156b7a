"""Many requests, few batches: what several callers ask for is computed together.

    request = scheduler.submit(courses)
    for number, answer in request: ...      # as they are finished
    request.withdraw()                      # from any thread

A request has a *course* for each text: a generator that yields `Items` (sentences of ids,
say), is sent what was found for each of them, and returns the text's answer. It may ask more than
once, as a translation does that is searched again. The items of all requests wait together, and
those of similar cost that are computed alike share a batch within a budget of tokens.

A scheduler has no thread of its own: whoever waits for an answer runs batches meanwhile, in which
items of other threads take part. Requests take turns to lead a batch, so none starves.
"""

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, get_ident
from typing import Any, Generic, TypeVar

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
    """What is to be computed in any batches, with items of others that have the same `how`."""

    values: Sequence[Item]
    costs: Sequence[int]
    """What each would cost in a batch of its own, in tokens."""
    budget: int
    """What a batch may cost: the number of its items times the greatest of their costs."""
    how: Hashable = None
    """What `Run` is told beside the items, such as the options of a search."""


Course = Generator[Items[Item], list[Found], Answer]
"""How a text is answered: it yields items, is sent what was found, and returns the answer."""

Withdrawn = Callable[[int], bool]
"""Whether the answer for an item, by its number in the batch, is not wanted any more."""

Run = Callable[[Any, list[Item], Withdrawn], Sequence[Found]]
"""Computes a batch, given their `how`: something for each item, for withdrawn ones anything."""


@dataclass(slots=True, eq=False)
class _Asked(Generic[Item, Found]):
    """The items that a course waits for."""

    request: "Request[Any]"
    number: int
    """Which course of the request it is."""
    course: Course[Item, Found, Any]
    items: Items[Item]
    found: dict[int, Found] = field(default_factory=dict)

    @property
    def queue(self) -> tuple[Hashable, int]:
        """Where its items wait."""
        return self.items.how, self.items.budget


_Entry = tuple[_Asked[Item, Found], int]
"""Items, and the number of an item in it."""


class Request(Generic[Answer]):
    """The answers to a number of texts. Iterating yields (number of the text, answer).

    They come as they are finished; what is left when the iteration is given up is withdrawn. Raises
    what a batch with an item of this request, or one of its courses, raises.
    """

    def __init__(self, scheduler: "Scheduler[Any, Any]", num_courses: int) -> None:
        self._scheduler = scheduler
        self.num_open = num_courses
        """How many of the texts are without an answer."""
        self.withdrawn = False
        """Whether nobody waits for the rest of the answers."""
        self.finished: deque[tuple[int, Answer]] = deque()
        """Answers that were not taken yet."""
        self.error: Exception | None = None
        self.waiting: dict[tuple[Hashable, int], int] = {}
        """How many items wait in each queue."""

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        try:
            while self._scheduler.run_until_news(self):
                yield self.finished.popleft()
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
        self._scheduler.withdraw(self)


class Scheduler(Generic[Item, Found]):
    """Serves the requests of any number of threads, in batches.

    `run` computes a batch; at most `lanes` run at the same time. An item's result must not depend
    on the items beside it.
    """

    def __init__(self, run: Run[Item, Found], lanes: int = 1) -> None:
        self._run = run
        self._lanes = lanes
        self._changed = Condition()
        self._running: list[int] = []
        """The threads that compute a batch."""
        self._queues: dict[tuple[Hashable, int], list[_Entry[Item, Found]]] = {}
        """The items that wait, the most expensive first where a queue is not in `_unsorted`."""
        self._unsorted = set[tuple[Hashable, int]]()
        self._turns: dict[Request[Any], None] = {}
        """The requests with items that wait; the first one leads the next batch."""

    def submit(self, courses: Sequence[Course[Item, Found, Answer]]) -> Request[Answer]:
        """Begin to answer; nothing is computed before somebody waits for an answer."""
        request = Request[Answer](self, len(courses))
        for number, course in enumerate(courses):
            self._advance(request, number, course, None)
        return request

    def run_until_news(self, request: Request[Any]) -> bool:
        """Run batches until the request has an answer to take; return whether there is one.

        Raises the request's error.
        """
        while True:
            with self._changed:
                while True:
                    if request.finished:
                        return True
                    if request.error is not None:
                        raise request.error
                    if not request.num_open or request.withdrawn:
                        return False
                    if batch := self._next_batch():
                        self._running.append(get_ident())
                        break
                    self._changed.wait()
            try:
                self._compute(batch)
            finally:
                with self._changed:
                    self._running.remove(get_ident())
                    self._changed.notify_all()

    def withdraw(self, request: Request[Any]) -> None:
        """Remove the items of a request from the queues, and let running ones be given up."""
        with self._changed:
            request.withdrawn = True
            for place in request.waiting:
                kept = [entry for entry in self._queues[place] if entry[0].request is not request]
                self._set_queue(place, kept)
            request.waiting.clear()
            self._turns.pop(request, None)
            self._changed.notify_all()

    def _next_batch(self) -> list[_Entry[Item, Found]]:
        """Take the items of the next batch; none where none wait or all lanes are taken.

        The first item is the most expensive of those that the request whose turn it is asked for
        first; the rest are those, of any request, that follow it by cost.
        """
        nested = get_ident() in self._running  # a batch that is computed for another batch
        if not self._turns or (len(self._running) >= self._lanes and not nested):
            return []
        leader = next(iter(self._turns))
        place = next(iter(leader.waiting))
        queue = self._queues[place]
        if place in self._unsorted:
            queue.sort(key=lambda entry: -entry[0].items.costs[entry[1]])
            self._unsorted.remove(place)
        start = next(n for n, (asked, _) in enumerate(queue) if asked.request is leader)
        asked, index = queue[start]
        end = start + room_for(asked.items.costs[index], asked.items.budget)
        batch = queue[start:end]
        del queue[start:end]
        self._set_queue(place, queue)
        self._turns[leader] = self._turns.pop(leader)  # and now the others
        for asked, _ in batch:
            self._count(asked.request, place, -1)
        return batch

    def _compute(self, batch: list[_Entry[Item, Found]]) -> None:
        """Run a batch, and let the courses go on that have all they waited for."""
        how = batch[0][0].items.how
        requests = [asked.request for asked, _ in batch]
        values = [asked.items.values[index] for asked, index in batch]
        try:
            results = self._run(how, values, lambda number: requests[number].withdrawn)
            found = [*zip(batch, results, strict=True)]
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            for request in requests:
                self._fail(request, error)
            return
        except BaseException:  # such as Ctrl-C in this thread, which is no affair of the others
            for asked, index in batch:
                self._enqueue(asked, [index])
            raise
        for (asked, index), one in found:
            asked.found[index] = one
            if len(asked.found) == len(asked.items.values):
                in_order = [asked.found[number] for number in range(len(asked.found))]
                self._advance(asked.request, asked.number, asked.course, in_order)

    def _advance(
        self,
        request: Request[Any],
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
        except StopIteration as end:
            with self._changed:
                request.finished.append((number, end.value))
                request.num_open -= 1
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            self._fail(request, error)
        else:
            self._enqueue(_Asked(request, number, course, items), range(len(items.values)))

    def _enqueue(self, asked: _Asked[Item, Found], indices: Sequence[int]) -> None:
        with self._changed:
            if not asked.request.withdrawn:
                self._queues.setdefault(asked.queue, []).extend((asked, n) for n in indices)
                self._unsorted.add(asked.queue)
                self._count(asked.request, asked.queue, len(indices))

    def _fail(self, request: Request[Any], error: Exception) -> None:
        request.error = request.error or error
        self.withdraw(request)

    def _count(self, request: Request[Any], place: tuple[Hashable, int], more: int) -> None:
        """Note that so many more items of a request wait in a queue, or, below 0, fewer."""
        request.waiting[place] = request.waiting.get(place, 0) + more
        if not request.waiting[place]:
            del request.waiting[place]
        if request.waiting:
            self._turns.setdefault(request)
        else:
            self._turns.pop(request, None)

    def _set_queue(self, place: tuple[Hashable, int], entries: list[_Entry[Item, Found]]) -> None:
        """Let these wait in a queue, which is forgotten when it is empty."""
        self._queues[place] = entries
        if not entries:
            del self._queues[place]
            self._unsorted.discard(place)
