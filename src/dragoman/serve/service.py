"""What all dialects call: a service answers texts by the models that it holds."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dragoman.decode import Course, Scheduler
from dragoman.decoding import Decoding, merged, wide_enough
from dragoman.serve.admission import AdmissionQueue
from dragoman.serve.metrics import ServeMetrics, log_failure
from dragoman.serve.settings import ServeSettings
from dragoman.serve.shelf import Served, Shelf
from dragoman.serve.web import Call
from dragoman.serve.work import PricedRequest
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.translator import Translator

WAITING = 64
"""Threads that wait for answers: so many requests share batches. Others wait for a thread."""
PRICING = 2
"""Threads that turn texts into ids, by which requests are priced."""


class Service:
    """Models, their queue, and the threads in which requests are answered."""

    def __init__(self, settings: ServeSettings) -> None:
        """Open the folders. Raises InputError if no model can be used."""
        self.settings = settings
        self.queue = AdmissionQueue(settings.queue_tokens)
        self.metrics = ServeMetrics(self.queue)
        self.shelf = Shelf(settings, self.metrics)
        self.draining = False
        """Whether the server is about to end: it is not ready, but accepts requests for a while."""
        self._waiting = ThreadPoolExecutor(WAITING, "wait")
        self._pricing = ThreadPoolExecutor(PRICING, "price")
        self._jobs = set[PricedRequest[Any]]()

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here."""
        usable = self.shelf.usable_all()
        return bool(usable) and not self.shelf.pending and not self.draining

    def check_open(self) -> None:
        """Raise Refusal where no request is accepted any more."""
        if self.queue.closed:
            self.queue.check()

    async def ask(
        self,
        call: Call,
        scheduler: Scheduler[Any, Any],
        courses: Callable[[], Iterable[Course[Any, Any, Any]]],
        finish: Callable[[Any], Any] | None = None,
    ) -> list[Any]:
        """Return the answers of courses, in order; None where a library failed at one text.

        `courses` is called in a thread, and `finish` with each answer. Raises Refusal for a request
        that is not accepted or too late, Gone for a client that has left: what waited for an answer
        leaves the queue, and what is computed the batch, at its next step.
        """
        self.queue.check()
        loop = asyncio.get_running_loop()
        job = await call.unless_gone(
            loop.run_in_executor(
                self._pricing, lambda: PricedRequest(scheduler, courses(), finish, log_failure)
            )
        )
        call.notes["tokens"] = job.cost
        with self.queue.admit(job.cost):
            self._jobs.add(job)
            try:
                return await call.unless_gone(loop.run_in_executor(self._waiting, job.run))
            finally:
                job.withdraw()
                self._jobs.discard(job)

    async def translate(  # noqa: PLR0913 -- what a request may say
        self,
        call: Call,
        served: Served,
        texts: Sequence[str],
        *,
        languages: tuple[str | None, str | None] = (None, None),
        options: Decoding | None = None,
        prefixes: list[str] | None = None,
        finish: Callable[[Translation], Any] | None = None,
    ) -> list[Any]:
        """Translate texts by a model, between two of its languages where it has several."""
        limits, given = self.settings.limits, options or Decoding()
        limits.check_texts([*texts, *(prefixes or ())])
        limits.check_options(given)
        call.notes |= {"model": served.name, "texts": len(texts)}
        async with self.shelf.lease(served) as translator:
            assert isinstance(translator, Translator)  # noqa: S101 (the folder's task says so)
            bound = translator.between(*languages)
            chosen = merged(wide_enough(given, bound.options), bound.options)
            return await self.ask(
                call, bound.scheduler, lambda: bound.courses(texts, chosen, prefixes), finish
            )

    def abandon(self) -> int:
        """Let go of all that is not answered; return how many requests that are."""
        jobs = [*self._jobs]
        for job in jobs:
            job.withdraw()
        return len(jobs)

    def close(self) -> None:
        """Let idle threads end."""
        for pool in (self._waiting, self._pricing):
            pool.shutdown(wait=False, cancel_futures=True)
        self.shelf.close()
