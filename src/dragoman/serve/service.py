"""What all dialects call: a service answers texts by the models that it holds."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar

from dragoman.decode import Course, Scheduler
from dragoman.decoding import Decoding, merged, wide_enough
from dragoman.serve.admission import AdmissionQueue
from dragoman.serve.metrics import ServeMetrics, log_failure
from dragoman.serve.refusals import Refusal, refusal_of
from dragoman.serve.settings import ServeSettings
from dragoman.serve.shelf import Pair, Served, Shelf
from dragoman.serve.web import Call
from dragoman.serve.work import PricedRequest, SteppedRequest
from dragoman.tasks.generate.ids import See
from dragoman.tasks.generate.prompts import TextStream
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.translator import Translator
from dragoman.text.languages import Detected, LanguageDetector

T = TypeVar("T")

Frame = tuple[str, str, str]
"""White space, what is to translate of a line, and white space."""

WAITING = 64
"""Threads that wait for answers: so many requests share batches. Others wait for a thread."""
PRICING = 2
"""Threads that turn texts into ids, by which requests are priced."""
STEPPING = 2
"""Threads for what no scheduler computes: scores, and looks inside."""
LINES = 10
"""Lines of texts for each text that a request may have."""


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
        self.characters = 0
        """Of the texts that it was asked to translate by other dialects than ours."""
        self._waiting = ThreadPoolExecutor(WAITING, "wait")
        self._pricing = ThreadPoolExecutor(PRICING, "price")
        self._stepping = ThreadPoolExecutor(STEPPING, "step")
        self._requests = set[PricedRequest[Any] | SteppedRequest]()

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here."""
        usable = self.shelf.usable_all()
        return bool(usable) and not self.shelf.pending and not self.draining

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
        request = await call.unless_gone(
            asyncio.get_running_loop().run_in_executor(
                self._pricing, lambda: PricedRequest(scheduler, courses(), finish, log_failure)
            )
        )
        return await self.answered(call, request)

    async def answered(self, call: Call, request: PricedRequest[Any] | SteppedRequest) -> list[Any]:
        """Return the answers to a request with its price, if it is accepted; raises as `ask`."""
        call.notes["tokens"] = request.cost
        loop = asyncio.get_running_loop()
        pool = self._stepping if isinstance(request, SteppedRequest) else self._waiting
        with self.queue.admit(request.cost):
            self._requests.add(request)
            try:
                return await call.unless_gone(loop.run_in_executor(pool, request.run))
            finally:
                request.withdraw()
                self._requests.discard(request)

    async def growing(
        self,
        call: Call,
        scheduler: Scheduler[Any, Any],
        course: Callable[[See], Course[Any, Any, Any]],
        text: TextStream,
    ) -> AsyncGenerator[Any, None]:
        """Yield the pieces of a text while it grows, then its answer; raises as `ask`."""
        loop = asyncio.get_running_loop()
        known = asyncio.Queue[Sequence[int] | None]()

        def see(ids: Sequence[int]) -> None:
            loop.call_soon_threadsafe(known.put_nowait, ids)

        work = loop.create_task(self.ask(call, scheduler, lambda: [course(see)]))
        work.add_done_callback(lambda _: known.put_nowait(None))
        try:
            while (ids := await known.get()) is not None:
                if piece := text.extend(ids):
                    yield piece
            (answer,) = await work
            if piece := text.finish():
                yield piece
            yield answer
        finally:
            work.cancel()

    async def detect(self, call: Call, texts: Sequence[str]) -> list[Detected]:
        """Return the languages of texts, among those that the translators read."""
        self.settings.limits.check(texts)
        translators = self.shelf.usable("translate")
        detector = LanguageDetector(code for one in translators for code in one.sources)
        return await self.in_thread(call, lambda: [*map(detector.detect, texts)])

    async def in_thread(self, call: Call, compute: Callable[[], T]) -> T:
        """Return what is computed in a moment, but not in the event loop."""
        loop = asyncio.get_running_loop()
        return await call.unless_gone(loop.run_in_executor(self._pricing, compute))

    def refusal(self, error: BaseException) -> Refusal:
        """Return what a client is told about an error, without paths; a bug is logged."""
        refusal = refusal_of(error)
        if refusal.status == 500:
            log_failure(error)
        for served in self.shelf.models.values():
            if len(served.path.parts) > 1:
                refusal.what = refusal.what.replace(str(served.path), served.name)
        return refusal

    def lease(self, call: Call, served: Served, texts: int) -> AbstractAsyncContextManager[Any]:
        """Keep a model in memory for a request, whose log names it."""
        call.notes |= {"model": served.name, "texts": texts}
        return self.shelf.lease(served, call.unless_gone)

    async def translate(
        self,
        call: Call,
        chosen: tuple[Served, Pair],
        texts: Sequence[str],
        *,
        options: Decoding | None = None,
        prefixes: list[str] | None = None,
        finish: Callable[[Translation], Any] | None = None,
    ) -> list[Any]:
        """Translate texts by a model that was chosen, between two of its languages."""
        (served, languages), given = chosen, options or Decoding()
        async with self.lease(call, served, len(texts)) as translator:
            bound: Translator = translator.between(*languages)
            merged_ones = merged(wide_enough(given, bound.options), bound.options)
            return await self.ask(
                call, bound.scheduler, lambda: bound.courses(texts, merged_ones, prefixes), finish
            )

    async def translate_lines(
        self,
        call: Call,
        chosen: tuple[Served, Pair],
        texts: Sequence[str],
        options: Decoding | None = None,
    ) -> list[list[str]]:
        """Return the translations of each text, best first; its lines and outer spaces stay.

        So does a line without letters and digits. Raises Refusal where a library failed.
        """
        self.settings.limits.check(texts, options)
        framed = [[*map(frame, text.splitlines(keepends=True))] for text in texts]
        lines = [line for text in framed for _, line, _ in text if line]
        if len(lines) > (most := LINES * self.settings.limits.texts):
            what = f"The texts have {len(lines):,} lines. This server allows at most {most:,}"
            raise Refusal(413, f"{what}.", "Send several requests.", where="text")
        found = await self.translate(call, chosen, lines, options=options)
        if None in found:
            raise Refusal(500, "A text could not be translated.", "Try another.", where="text")
        self.characters += sum(map(len, texts))
        translated = iter(found)
        return [whole(text, translated) for text in framed]

    def abandon(self) -> int:
        """Let go of all that is not answered; return how many requests that are."""
        requests = [*self._requests]
        for request in requests:
            request.withdraw()
        return len(requests)

    def close(self) -> None:
        """Let idle threads end."""
        for pool in (self._waiting, self._pricing, self._stepping):
            pool.shutdown(wait=False, cancel_futures=True)
        self.shelf.close()


def frame(line: str) -> Frame:
    """Return the white space before a line, what is to translate, and the white space after it."""
    text = line.strip()
    if not any(map(str.isalnum, text)):
        return line, "", ""
    return line.partition(text)[0], text, line[len(line.rstrip()) :]


def whole(frames: Sequence[Frame], translated: Iterator[Translation]) -> list[str]:
    """Return the translations of a text, best first, given those of its lines."""
    lines = list[list[str]]()
    for before, line, after in frames:
        if line:
            best = next(translated)
            lines.append([f"{before}{one}{after}" for one in (best, *best.alternatives)])
        else:
            lines.append([before])
    most = max(map(len, lines), default=1)
    return ["".join(line[min(n, len(line) - 1)] for line in lines) for n in range(most)]


def with_seed(given: Decoding, defaults: Decoding) -> Decoding:
    """Return all options; where texts are sampled and no seed is given, one is drawn."""
    options = merged(given, defaults)
    if options.temperature > 0 and "seed" not in given.given():
        return replace(options, seed=secrets.randbelow(1_000_000))
    return options
