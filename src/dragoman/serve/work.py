"""Work in threads: pricing requests, answering them, and withdrawing them if nobody waits."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, TypeVar

from dragoman.decode import Course, Items, Request, Scheduler, schedule
from dragoman.decoding import Decoding
from dragoman.errors import DragomanError
from dragoman.serve.job import ServeJob
from dragoman.serve.metrics import log_failure
from dragoman.serve.refusals import ended
from dragoman.serve.shelf import Chosen
from dragoman.text.glossary import Glossary
from dragoman.text.unreadable import is_library_error

Answer = TypeVar("Answer")

BATCH_TOKENS = 8192
"""Maximum padded tokens of an encoder's batch."""


@dataclass(frozen=True, slots=True)
class Translating:
    """How to translate a job's texts: the chosen model and languages, options and glossary."""

    job: ServeJob
    chosen: Chosen
    options: Decoding | None = None
    glossary: Glossary | None = None


class PricedRequest(Generic[Answer]):
    """The answers to a request's texts, for which one thread waits.

    An answer is None if a library failed only at its text.
    """

    def __init__(
        self, scheduler: Scheduler[Any, Any], finish: Callable[[Answer], Any] | None = None
    ) -> None:
        """`finish` is called with each answer."""
        self._scheduler, self._finish = scheduler, finish
        self._courses = list[Course[Any, Any, Answer | None]]()
        self._request: Request[Answer | None] | None = None
        self._withdrawn = Event()

    def price(self, courses: Iterable[Course[Any, Any, Answer]]) -> int:
        """Start the courses up to their first items; return the cost of these in padded tokens.

        Raises Refusal if the request is withdrawn in the meantime.
        """
        costs, budget = list[int](), 1
        for course in courses:
            if self._withdrawn.is_set():
                raise ended()
            try:
                first = next(course)
            except StopIteration as end:
                self._courses.append(_answered(end.value))
            else:
                costs += first.costs
                budget = max(budget, first.budget)
                self._courses.append(_guarded(first, course))
        return padded_tokens(costs, budget)

    def run(self) -> list[Any]:
        """Wait for the answers, and help compute them. Raises Refusal if withdrawn."""
        self._request = self._scheduler.submit(self._courses)
        if self._withdrawn.is_set():
            self._request.withdraw()
        found: list[Any] = []
        for answer in self._request.in_order():
            if self._withdrawn.is_set():
                break
            found.append(self._finished(answer))
        if len(found) < len(self._courses):
            raise ended()
        return found

    def withdraw(self) -> None:
        """Abandon what is not answered. May be called from any thread, at any time."""
        self._withdrawn.set()
        if self._request is not None:
            self._request.withdraw()

    def _finished(self, answer: Answer | None) -> Any:  # noqa: ANN401 -- what `finish` returns
        """Return the result of `finish`, such as an alignment; None if a library failed."""
        if self._finish is None or answer is None:
            return answer
        try:
            return self._finish(answer)
        except BaseException as error:  # noqa: BLE001 -- raised again unless a library failed
            _keep(error)
            return None


def run_steps(
    steps: Iterable[Callable[[], list[Any]]], aside: AbstractContextManager[Any], withdrawn: Event
) -> list[Any]:
    """Return the answers of steps, each computed inside `aside`.

    Raises Refusal if the request is withdrawn in the meantime.
    """
    found: list[Any] = []
    for step in steps:
        with aside:
            if withdrawn.is_set():
                raise ended()
            found += step()
    return found


def tracked(job: ServeJob, text: str, course: Course[Any, Any, Answer]) -> Course[Any, Any, Answer]:
    """Return a course that adds its text to the job's translated characters when it is done."""
    answer = yield from course
    job.translated += len(text)
    return answer


def padded_tokens(costs: Sequence[int], budget: int) -> int:
    """Return the cost of items in batches of their own, each padded to its most expensive item."""
    return sum(len(batch) * costs[batch[0]] for batch in schedule(costs, budget))


def _answered(answer: Answer) -> Course[Any, Any, Answer]:
    yield Items(values=(), costs=(), budget=1)
    return answer


def _guarded(
    first: Items[Any], course: Course[Any, Any, Answer]
) -> Course[Any, Any, Answer | None]:
    """Return the rest of a course, given its first items; its answer is None if a library fails."""
    try:
        found = yield first
        while True:
            found = yield course.send(found)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    except BaseException as error:  # noqa: BLE001 -- raised again unless a library failed
        _keep(error)
        return None
    finally:
        course.close()


def _keep(error: BaseException) -> None:
    """Log a library's failure, including a Rust panic; raise any other error again."""
    if isinstance(error, DragomanError | GeneratorExit) or not is_library_error(error):
        raise error
    log_failure(error)
