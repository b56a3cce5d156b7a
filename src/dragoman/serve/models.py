"""The models of a server, their queue, and the threads that answer texts with them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from itertools import repeat
from threading import Event
from typing import Any, TypeVar

from dragoman.decode import Course, Scheduler
from dragoman.decoding import Decoding, merged, wide_enough
from dragoman.documents.document import Document
from dragoman.documents.translate import Draft, Places
from dragoman.folder.rereading import FolderFault
from dragoman.serve.admission import AdmissionQueue, guessed
from dragoman.serve.job import ServeJob
from dragoman.serve.markup import MarkedAnswer, MarkedResult, answers_of, joined
from dragoman.serve.metrics import ServeMetrics, log, log_failure
from dragoman.serve.refusals import Refusal, refusal_of
from dragoman.serve.settings import ServeSettings
from dragoman.serve.shelf import Served, Shelf
from dragoman.serve.work import PricedRequest, Translating, run_steps, tracked
from dragoman.tasks.generate.ids import See
from dragoman.tasks.generate.prompts import TextStream
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.translator import Translator
from dragoman.text.detection import Detected, LanguageDetector

T = TypeVar("T")

Frame = tuple[str, str, str]
"""The white space before a line, its text to translate, and the white space after it."""

TOGETHER = 2
"""Number of documents translated at the same time."""
WAITING = 64
"""Threads that wait for answers. This many requests share batches; others wait for a thread."""
PRICING = 2
"""Threads that convert texts to ids to price requests."""
STEPPING = 2
"""Threads for work outside the schedulers: scores and inspections."""
AT_ONCE = 500
"""Maximum characters to process in the event loop: passing them to a thread takes as long."""
TEXTS = 32
"""Texts converted to ids between two checks that the client is still connected."""
LINES = 10
"""Maximum lines of a request, as a multiple of its maximum number of texts."""


class ServeModels:
    """The models, their queue, and the threads that answer requests and documents."""

    def __init__(self, settings: ServeSettings) -> None:
        """Open the folders. Raises InputError if no model can be used."""
        self.settings = settings
        self.queue = AdmissionQueue(settings.queue_tokens)
        self.metrics = ServeMetrics(self.queue)
        self.shelf = Shelf(settings, self.metrics)
        self.draining = False
        """Whether the server is shutting down: not ready, but accepting requests for a while."""
        self.characters = 0
        """Characters of the texts and documents translated for all dialects."""
        self._waiting = ThreadPoolExecutor(WAITING, "wait")
        self._pricing = ThreadPoolExecutor(PRICING, "price")
        self._reading = ThreadPoolExecutor(TOGETHER, "read")
        """Only for documents, which take long to read and to price."""
        self._stepping = ThreadPoolExecutor(STEPPING, "step")

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here."""
        usable = self.shelf.usable()
        return bool(usable) and not self.shelf.pending and not self.draining

    def accept(
        self,
        job: ServeJob,
        texts: Sequence[str],
        options: Decoding | None = None,
        *,
        beside: Sequence[str] = (),
    ) -> None:
        """Count a request in the queue at a cost estimated from its length, until it is priced.

        `beside` are texts that accompany others, such as prefixes. Raises Refusal if the queue is
        full, and InputError if a limit is exceeded.
        """
        self.settings.limits.check(texts, options, beside=beside)
        job.characters = sum(map(len, (*texts, *beside)))
        self.queue.guess(job, job.characters)

    async def ask(
        self,
        job: ServeJob,
        scheduler: Scheduler[Any, Any],
        courses: Callable[[], Iterable[Course[Any, Any, Any]]],
        finish: Callable[[Any], Any] | None = None,
        longer: Callable[[int], int] = int,
    ) -> list[Any]:
        """Return the answers of courses, in order; None for a text at which a library failed.

        `finish` is called with each answer. The cost of the accepted request becomes that of the
        courses' first items, adjusted by `longer`. Raises Refusal if the queue has no room for it
        or the request is too late, and Gone if the client has disconnected. Items that wait then
        leave the queue, and those being computed leave the batch at its next step.
        """
        request = PricedRequest(scheduler, finish)
        try:
            cost = longer(await self.in_thread(job, lambda: request.price(courses())))
            self.queue.take(job, cost)
            job.notes["tokens"] = cost
            return await self._in(self._waiting, job, request.run)
        finally:
            request.withdraw()

    async def step(
        self,
        job: ServeJob,
        steps: Iterable[Callable[[], list[Any]]],
        aside: AbstractContextManager[Any],
    ) -> list[Any]:
        """Compute answers outside a scheduler, a few at a time; raises as `ask` does.

        They are not priced: the cost is estimated from the length of the texts.
        """
        withdrawn, cost = Event(), guessed(job.characters)
        self.queue.take(job, cost)
        job.notes["tokens"] = cost
        try:
            return await self._in(self._stepping, job, lambda: run_steps(steps, aside, withdrawn))
        finally:
            withdrawn.set()

    async def in_thread(self, job: ServeJob, compute: Callable[[], T]) -> T:
        """Return the result of a short computation; for long texts it runs in a thread."""
        if job.characters <= AT_ONCE:
            return compute()
        pool = self._reading if job.is_document else self._pricing
        return await self._in(pool, job, compute)

    async def _in(self, pool: ThreadPoolExecutor, job: ServeJob, compute: Callable[[], T]) -> T:
        return await job.unless_gone(asyncio.get_running_loop().run_in_executor(pool, compute))

    async def growing(
        self,
        job: ServeJob,
        scheduler: Scheduler[Any, Any],
        courses: Callable[[See], Iterable[Course[Any, Any, Any]]],
        text: TextStream,
    ) -> AsyncGenerator[Any, None]:
        """Yield the text of one course in pieces as it grows, then the answer from `ask`."""
        loop = asyncio.get_running_loop()
        known = asyncio.Queue[Sequence[int] | None]()

        def see(ids: Sequence[int]) -> None:
            loop.call_soon_threadsafe(known.put_nowait, ids)

        work = loop.create_task(self.ask(job, scheduler, lambda: courses(see)))
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

    async def detect(self, job: ServeJob, texts: Sequence[str]) -> list[Detected]:
        """Detect the language of each text, among those that the translators read or write."""
        translators = self.shelf.usable("translate")
        read = [code for one in translators for code in one.sources]
        written = [code for one in translators for code in one.targets]

        def compute() -> list[Detected]:
            detector = LanguageDetector(read, written)
            return [*map(detector.detect, texts)]

        return await self._in(self._pricing, job, compute)  # the first one loads for half a second

    async def sources_of(self, job: ServeJob, texts: Sequence[str]) -> list[str | None]:
        """Return the most likely language of each text, or None."""
        found = await self.detect(job, texts)
        return [each.candidates[0].language if each.candidates else None for each in found]

    def refusal(self, error: BaseException) -> Refusal:
        """Return the refusal for an error, without paths.

        Bugs, a full disk and faults of a model folder are logged.
        """
        refusal = refusal_of(error)
        if refusal is error:
            return refusal
        if refusal.status in {500, 507}:
            log_failure(error)
        elif isinstance(error, FolderFault):
            log("folder", {"error": str(error)}, "error")
        for served in self.shelf.models.values():
            if len(served.path.parts) > 1:
                refusal.what = refusal.what.replace(str(served.path), served.name)
        return refusal

    def lease(self, job: ServeJob, served: Served, texts: int) -> AbstractAsyncContextManager[Any]:
        """Keep a model in memory for a request, and name it in the request's log line."""
        job.notes |= {"model": served.name, "texts": texts}
        return self.shelf.lease(served, job.unless_gone)

    async def translate(
        self,
        how: Translating,
        texts: Sequence[str],
        *,
        prefixes: list[str] | None = None,
        kept: Sequence[Places] | None = None,
        finish: Callable[[Translation], Any] | None = None,
        aligning: bool = False,
    ) -> list[Any]:
        """Return the translations of texts; None for a text at which a library failed.

        With `aligning`, alignments are computed along with the translations, for `finish`.
        """
        (served, languages), given = how.chosen, how.options or Decoding()
        async with self.lease(how.job, served, len(texts)) as translator:
            bound: Translator = translator.between(*languages)
            bound = bound.aligning() if aligning else bound
            chosen_ones = merged(wide_enough(given, bound.options), bound.options)
            size = TEXTS if prefixes is None else max(1, len(texts))
            cache = served.cache
            if prefixes is not None or how.glossary is not None or chosen_ones.temperature > 0:
                cache = None

            def courses() -> Iterator[Course[Any, Any, Translation]]:
                for first in range(0, len(texts), size):
                    some = slice(first, first + size)
                    copied = kept[some] if kept is not None and any(kept[some]) else None
                    found = bound.courses(texts[some], chosen_ones, prefixes, how.glossary, copied)
                    columns = zip(texts[some], copied or repeat(()), found, strict=False)
                    for text, places, course in columns:
                        key = languages, aligning, chosen_ones, places
                        answer = course if cache is None else cache.through(text, key, course)
                        yield tracked(how.job, text, answer)

            longer = partial(lengthened, len(texts), chosen_ones, bound.options)
            return await self.ask(how.job, bound.scheduler, courses, finish, longer)

    async def translate_marked(
        self, how: Translating, texts: Sequence[tuple[str, Places]]
    ) -> list[Any]:
        """Translate the texts of a document; None for a text at which a library failed."""

        def finish(found: Translation) -> MarkedResult:
            with how.chosen[0].aside:
                return MarkedResult(found.text, found.text_links, found.flags, found.terms)

        lines, kept = [text for text, _ in texts], [places for _, places in texts]
        return await self.translate(how, lines, kept=kept, finish=finish, aligning=True)

    async def translate_markup(
        self, how: Translating, read: Callable[[str], Document], texts: Sequence[str]
    ) -> list[MarkedAnswer]:
        """Translate texts, each parsed as a document; equal sentences are translated once."""
        documents, draft = await self.in_thread(
            how.job, lambda: (some := [*map(read, texts)], Draft(joined(some)))
        )
        found = await self.translate_marked(how, draft.texts)
        self.characters += sum(map(len, texts))
        return answers_of(documents, draft, found)

    async def translate_lines(self, how: Translating, texts: Sequence[str]) -> list[list[str]]:
        """Return the translations of each text, best first; line breaks and outer spaces stay.

        A line without letters and digits stays unchanged. Raises Refusal if a library failed.
        """
        framed = [[*map(frame, text.splitlines(keepends=True))] for text in texts]
        lines = [line for text in framed for _, line, _ in text if line]
        if len(lines) > (most := LINES * self.settings.limits.texts):
            what = f"The texts have {len(lines):,} lines. This server allows at most {most:,}"
            raise Refusal(413, f"{what}.", "Send several requests.", where="text")
        found = await self.translate(how, lines)
        if None in found:
            raise Refusal(500, "A text could not be translated.", "Try another.", where="text")
        self.characters += sum(map(len, texts))
        translated = iter(found)
        return [whole(text, translated) for text in framed]

    def close(self) -> None:
        """Shut down the threads, and close the models."""
        for pool in (self._waiting, self._pricing, self._reading, self._stepping):
            pool.shutdown(wait=False, cancel_futures=True)
        self.shelf.close()


def frame(line: str) -> Frame:
    """Split a line into leading white space, the text to translate, and trailing white space."""
    text = line.strip()
    if not any(map(str.isalnum, text)):
        return line, "", ""
    return line.partition(text)[0], text, line[len(line.rstrip()) :]


def whole(frames: Sequence[Frame], translated: Iterator[Translation]) -> list[str]:
    """Return the translations of a text, best first, from those of its lines."""
    lines = list[list[str]]()
    for before, line, after in frames:
        if line:
            best = next(translated)
            lines.append([f"{before}{one}{after}" for one in (best, *best.alternatives)])
        else:
            lines.append([before])
    most = max(map(len, lines), default=1)
    return ["".join(line[min(n, len(line) - 1)] for line in lines) for n in range(most)]


def lengthened(texts: int, options: Decoding, own: Decoding, cost: int) -> int:
    """Return the cost of texts if options allow longer translations than the model's own do."""
    constant = max(0, options.max_length_constant - own.max_length_constant)
    factor = max(1.0, options.max_length_factor / (own.max_length_factor or 1.0))
    return int(cost * factor) + texts * constant * options.beam_size
