"""What a scheduler is asked and answers: items, which share batches, courses and requests."""

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import finalize

from dragoman.errors import InputError

Item = TypeVar("Item")
Found = TypeVar("Found")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Generic[Item]):
    """Items to compute in any batches, together with others' items that have the same `key`."""

    values: Sequence[Item]
    costs: Sequence[int]
    """The cost of each item in a batch of its own, in tokens."""
    budget: int
    """The most that the batches of all lanes may cost: items times the greatest cost of each batch.

    Short items that are computed between steps may cost an additional eighth of it.
    """
    how: Any = None
    """What `Run` receives with the items, such as the options of a search."""
    key: Hashable = None
    """Equal for items that are computed in the same way."""


Course = Generator[Items[Item], list[Found], Answer]
"""How a text is answered: it yields items, is sent their results, and returns the answer."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What an observer of a scheduler receives before a batch is computed."""

    costs: list[int]
    """Cost of each item, in tokens; in the batch each costs as much as the most expensive one."""
    waited: list[float]
    """Seconds since each item was requested."""


Withdrawn = Callable[[int], bool]
"""Whether the result of an item, by its number in the batch, is no longer needed."""

Run = Callable[[Any, list[Item], Withdrawn], Sequence[Found]]
"""Computes a batch, given its `how`: a result for each item, any value for withdrawn ones."""


@dataclass(slots=True, eq=False)
class Waiting:
    """The state of a request."""

    num_open: int
    """Number of texts without an answer."""
    ready: deque["Asked"] = field(default_factory=deque)
    """Courses that have all the results they waited for."""
    finished: deque[tuple[int, Any]] = field(default_factory=deque)
    """Answers that have not been taken yet."""
    error: Exception | None = None
    withdrawn: bool = False
    """Whether no one waits for the remaining answers."""
    cost: int = 0
    """Total cost of its waiting items."""

    @property
    def news(self) -> bool:
        """Whether the thread that waits for it has something to do."""
        return bool(self.ready) or self.error is not None or self.withdrawn


@dataclass(slots=True, eq=False)
class Asked:
    """The items that a course waits for."""

    request: Waiting
    number: int
    """Number of the course in the request."""
    course: Course[Any, Any, Any]
    items: Items[Any]
    found: dict[int, Any] = field(default_factory=dict)
    since: float = field(default_factory=monotonic)
    """When the course requested them."""


Entry = tuple[Asked, int]
"""Requested items and the index of one of them."""
Place = tuple[Hashable, int]
"""Where items wait: their key and their budget."""


def cost_of(entry: Entry) -> int:
    """Return the cost of an item in a batch of its own."""
    asked, index = entry
    return asked.items.costs[index]


def schedule(lengths: Sequence[int], max_batch_tokens: int) -> list[list[int]]:
    """Return batches of indices into `lengths`, with each index in exactly one batch.

    A batch of n inputs whose longest has m tokens costs `n * m` (padding included, as it is
    computed too) and stays within `max_batch_tokens`; an input that alone costs more gets a batch
    of its own. Sorting makes padding small. The longest come first: a batch that is too large for
    memory fails at once instead of near the end, and an estimate of the remaining time errs on the
    high side. Equal lengths keep their order.
    """
    if max_batch_tokens < 1:
        raise InputError(f"max_batch_tokens is {max_batch_tokens}; it must be 1 or more.")
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches, start = list[list[int]](), 0
    while start < len(order):
        end = start + room_for(lengths[order[start]], max_batch_tokens)
        batches.append(order[start:end])
        start = end
    return batches


def room_for(cost: int, budget: int) -> int:
    """Return how many items of at most this cost fit in a batch."""
    return max(1, budget // max(1, cost))


class Request(Generic[Answer]):
    """The answers to several texts. Iterating yields (number of the text, answer).

    They come as they are finished. If the iteration or the request is abandoned, the rest is
    withdrawn. Only one thread may iterate. Raises what a batch of its items alone, or one of its
    courses, raises.
    """

    def __init__(
        self,
        waiting: Waiting,
        run_until_news: Callable[[Waiting], bool],
        withdraw: Callable[[Waiting], None],
        run: Run[Any, Any],
    ) -> None:
        self._waiting, self._run_until_news, self._withdraw = waiting, run_until_news, withdraw
        self._run = run  # kept alive as long as someone waits
        finalize(self, withdraw, waiting).atexit = False

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        try:
            while self._run_until_news(self._waiting):
                yield self._waiting.finished.popleft()
        finally:
            self.withdraw()

    def in_order(self) -> Iterator[Answer]:
        """Yield the answers in the order of their texts, each as soon as possible."""
        early: dict[int, Answer] = {}
        wanted = count()
        number = next(wanted)
        for finished, answer in self:
            early[finished] = answer
            while number in early:
                yield early.pop(number)
                number = next(wanted)

    def withdraw(self) -> None:
        """Withdraw what is not answered: waiting items leave at once, rows at the next step."""
        self._withdraw(self._waiting)
