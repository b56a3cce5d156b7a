"""What all dialects call: a service answers texts by the models that it holds."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from functools import partial
from itertools import repeat
from threading import Event
from typing import Any, TypeVar

from dragoman.decode import Course, Scheduler
from dragoman.decoding import Decoding, merged, wide_enough
from dragoman.documents.document import Document
from dragoman.documents.translate import Draft, Places
from dragoman.folder.rereading import FolderFault
from dragoman.serve.admission import AdmissionQueue, ArrivingBodies, guessed
from dragoman.serve.documents import TOGETHER, DocumentDesk
from dragoman.serve.glossaries import GlossaryDesk
from dragoman.serve.markup import MarkedAnswer, MarkedResult, answers_of, joined
from dragoman.serve.metrics import ServeMetrics, log, log_failure, log_warnings, write_log
from dragoman.serve.refusals import Refusal, ended, refusal_of
from dragoman.serve.settings import ServeSettings
from dragoman.serve.shelf import Served, Shelf
from dragoman.serve.state import StateFolder
from dragoman.serve.tracing import open_tracing
from dragoman.serve.web import Call, ServeJob
from dragoman.serve.work import PricedRequest, Translating, run_steps, tracked
from dragoman.tasks.generate.ids import See
from dragoman.tasks.generate.prompts import TextStream
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.translator import Translator
from dragoman.text.detection import Detected, LanguageDetector

T = TypeVar("T")

Frame = tuple[str, str, str]
"""White space, what is to translate of a line, and white space."""

WAITING = 64
"""Threads that wait for answers: so many requests share batches. Others wait for a thread."""
PRICING = 2
"""Threads that turn texts into ids, by which requests are priced."""
STEPPING = 2
"""Threads for what no scheduler computes: scores, and looks inside."""
AT_ONCE = 500
"""Characters that are turned into ids at once: a thread for it would take as long."""
TEXTS = 32
"""Texts that are turned into ids between two looks whether the client is still there."""
LINES = 10
"""Lines of texts for each text that a request may have."""


class Service:
    """Models, their queue, and the threads in which requests are answered."""

    def __init__(self, settings: ServeSettings) -> None:
        """Open the folders. Raises InputError if no model can be used."""
        log_warnings()  # those of opening are lines of the log too
        with suppress(OSError):  # it was read, and may be gone
            settings.keys.warn_of_readers()
        self.settings = settings
        self.queue = AdmissionQueue(settings.queue_tokens)
        self.bodies = ArrivingBodies(settings.limits)
        self.metrics = ServeMetrics(self.queue)
        self.shelf = Shelf(settings, self.metrics)
        self.store = StateFolder(settings.state)
        self.glossaries = GlossaryDesk(self, self.store)
        self.documents = DocumentDesk(self, self.store)
        self.record_span = open_tracing()
        self.draining = False
        """Whether the server is about to end: it is not ready, but accepts requests for a while."""
        self.characters = 0
        """Of the texts and documents that were translated for all dialects."""
        self._waiting = ThreadPoolExecutor(WAITING, "wait")
        self._pricing = ThreadPoolExecutor(PRICING, "price")
        self._reading = ThreadPoolExecutor(TOGETHER, "read")
        """For documents alone, which take long to be read and to be priced."""
        self._stepping = ThreadPoolExecutor(STEPPING, "step")

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here."""
        usable = self.shelf.usable()
        return bool(usable) and not self.shelf.pending and not self.draining

    def accept(
        self,
        call: Call,
        texts: Sequence[str],
        options: Decoding | None = None,
        *,
        beside: Sequence[str] = (),
    ) -> None:
        """Count a request in the queue, by its length until it is priced.

        `beside` are texts that belong to others, such as prefixes. Raises Refusal where the queue
        is full, InputError for what is above a limit.
        """
        self.settings.limits.check(texts, options, beside=beside)
        call.characters = sum(map(len, (*texts, *beside)))
        self.queue.guess(call, call.characters)

    async def ask(
        self,
        job: ServeJob,
        scheduler: Scheduler[Any, Any],
        courses: Callable[[], Iterable[Course[Any, Any, Any]]],
        finish: Callable[[Any], Any] | None = None,
        longer: Callable[[int], int] = int,
    ) -> list[Any]:
        """Return the answers of courses, in order; None where a library failed at one text.

        `finish` is called with each answer. The request, which was accepted, counts what the first
        items of the courses cost, as `longer` changes it. Raises Refusal where the queue has no
        room for that, and for a request that is too late, Gone for a client that has left: what
        waited for an answer leaves the queue, and what is computed the batch, at its next step.
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
        call: Call,
        steps: Iterable[Callable[[], list[Any]]],
        aside: AbstractContextManager[Any],
    ) -> list[Any]:
        """Return what is computed outside a scheduler, a few answers at a time; raises as `ask`.

        It is never priced: the length of its texts tells what it costs.
        """
        withdrawn, cost = Event(), guessed(call.characters)
        self.queue.take(call, cost)
        call.notes["tokens"] = cost
        try:
            return await self._in(self._stepping, call, lambda: run_steps(steps, aside, withdrawn))
        finally:
            withdrawn.set()

    async def in_thread(self, job: ServeJob, compute: Callable[[], T]) -> T:
        """Return what is computed in a moment, but for long texts not in the event loop."""
        if job.characters <= AT_ONCE:
            return compute()
        pool = self._pricing if isinstance(job, Call) else self._reading
        return await self._in(pool, job, compute)

    async def _in(self, pool: ThreadPoolExecutor, job: ServeJob, compute: Callable[[], T]) -> T:
        return await job.unless_gone(asyncio.get_running_loop().run_in_executor(pool, compute))

    async def growing(
        self,
        call: Call,
        scheduler: Scheduler[Any, Any],
        courses: Callable[[See], Iterable[Course[Any, Any, Any]]],
        text: TextStream,
    ) -> AsyncGenerator[Any, None]:
        """Yield the pieces of the text of one course while it grows, then its answer, as `ask`."""
        loop = asyncio.get_running_loop()
        known = asyncio.Queue[Sequence[int] | None]()

        def see(ids: Sequence[int]) -> None:
            loop.call_soon_threadsafe(known.put_nowait, ids)

        work = loop.create_task(self.ask(call, scheduler, lambda: courses(see)))
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
        """Return the languages of texts, among those that the translators read or write."""
        translators = self.shelf.usable("translate")
        read = (code for one in translators for code in one.sources)
        written = (code for one in translators for code in one.targets)
        detector = LanguageDetector(read, written)
        return await self.in_thread(job, lambda: [*map(detector.detect, texts)])

    async def sources_of(self, job: ServeJob, texts: Sequence[str]) -> list[str | None]:
        """Return the likeliest language of each text."""
        found = await self.detect(job, texts)
        return [each.candidates[0].language if each.candidates else None for each in found]

    def refusal(self, error: BaseException) -> Refusal:
        """Return what a client is told about an error, without paths.

        A bug is logged, and a full disk, and what is wrong with a folder.
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
        """Keep a model in memory for a request, whose log names it."""
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
        """Return the translations of texts; None where a library failed at one.

        With `aligning`, what came from where is found with the translations, for `finish`.
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
        """Translate the texts of a document; None where a library failed."""

        def finish(found: Translation) -> MarkedResult:
            with how.chosen[0].aside:
                return MarkedResult(found.text, found.text_links, found.flags, found.terms)

        lines, kept = [text for text, _ in texts], [places for _, places in texts]
        return await self.translate(how, lines, kept=kept, finish=finish, aligning=True)

    async def translate_markup(
        self, how: Translating, read: Callable[[str], Document], texts: Sequence[str]
    ) -> list[MarkedAnswer]:
        """Translate texts, each read as a document; equal sentences once."""
        documents, draft = await self.in_thread(
            how.job, lambda: (some := [*map(read, texts)], Draft(joined(some)))
        )
        found = await self.translate_marked(how, draft.texts)
        self.characters += sum(map(len, texts))
        return answers_of(documents, draft, found)

    async def translate_lines(self, how: Translating, texts: Sequence[str]) -> list[list[str]]:
        """Return the translations of each text, best first; its lines and outer spaces stay.

        So does a line without letters and digits. Raises Refusal where a library failed.
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

    def abandon(self) -> int:
        """Let go of all that is not answered; return how many requests that are."""
        lost = [*self.queue.costs]
        for job in lost:
            job.end(ended())
        self.documents.cancel()
        return len(lost)

    def close(self) -> None:
        """Let idle threads end."""
        for pool in (self._waiting, self._pricing, self._reading, self._stepping):
            pool.shutdown(wait=False, cancel_futures=True)
        self.shelf.close()
        self.store.close()
        write_log()


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


def lengthened(texts: int, options: Decoding, own: Decoding, cost: int) -> int:
    """Return what texts cost whose translations may be longer than the model's own options say."""
    constant = max(0, options.max_length_constant - own.max_length_constant)
    factor = max(1.0, options.max_length_factor / (own.max_length_factor or 1.0))
    return int(cost * factor) + texts * constant * options.beam_size
