"""Work in threads: what a request costs, its answers, and its end when nobody waits for them."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, TypeVar

from dragoman.decode import Course, Items, Request, Scheduler, schedule
from dragoman.decoding import Decoding
from dragoman.errors import DragomanError
from dragoman.serve.metrics import log_failure
from dragoman.serve.refusals import ended
from dragoman.serve.shelf import Chosen
from dragoman.serve.web import ServeJob
from dragoman.text.glossary import Glossary
from dragoman.text.unreadable import is_library_error

Answer = TypeVar("Answer")

BATCH_TOKENS = 8192
"""Padded tokens of an encoder's batch."""


@dataclass(frozen=True, slots=True)
class Translating:
    """How a job's texts are translated: by a model that was chosen, between two languages."""

    job: ServeJob
    chosen: Chosen
    options: Decoding | None = None
    glossary: Glossary | None = None


class PricedRequest(Generic[Answer]):
    """The answers to a request's texts, which one thread waits for.

    An answer is None where a library failed at its text alone.
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
        """Begin the courses, up to the first items that they ask for; return what these cost.

        That is in padded tokens. Raises Refusal where it is withdrawn meanwhile.
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
        """Wait for the answers, computing meanwhile. Raises Refusal where it was withdrawn."""
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
        """Let go of what is not answered; it may be called from any thread, at any time."""
        self._withdrawn.set()
        if self._request is not None:
            self._request.withdraw()

    def _finished(self, answer: Answer | None) -> Any:  # noqa: ANN401 -- what `finish` returns
        """What is made of an answer, such as its alignment."""
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
    """Return the answers of steps, each of which is computed inside `aside`.

    Raises Refusal where the request is withdrawn meanwhile.
    """
    found: list[Any] = []
    for step in steps:
        with aside:
            if withdrawn.is_set():
                raise ended()
            found += step()
    return found


def tracked(job: ServeJob, text: str, course: Course[Any, Any, Answer]) -> Course[Any, Any, Answer]:
    """A course of a job, which counts its text when it is translated."""
    answer = yield from course
    job.translated += len(text)
    return answer


def padded_tokens(costs: Sequence[int], budget: int) -> int:
    """Return what items cost in batches of their own: in each, as much as its most expensive."""
    return sum(len(batch) * costs[batch[0]] for batch in schedule(costs, budget))


def _answered(answer: Answer) -> Course[Any, Any, Answer]:
    yield Items(values=(), costs=(), budget=1)
    return answer


def _guarded(
    first: Items[Any], course: Course[Any, Any, Answer]
) -> Course[Any, Any, Answer | None]:
    """The rest of a course that has asked for its first items."""
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
    """Log a library's failure, a panic of Rust among them; raise any other error again."""
    if isinstance(error, DragomanError | GeneratorExit) or not is_library_error(error):
        raise error
    log_failure(error)
