"""Documents, translated in the background: uploaded, awaited, fetched and removed.

A document enters the queue piece by piece, so that texts are answered in between, and waits while
the queue is full. Documents that are unfinished when the server ends start again with the next one.
"""

import asyncio
import hmac
import math
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, time
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from dragoman.documents.formats import format_of_name, read_document
from dragoman.documents.translate import Draft, Places
from dragoman.serve.admission import GUESS
from dragoman.serve.job import ServeJob
from dragoman.serve.metrics import log, log_failure
from dragoman.serve.models import TOGETHER, ServeModels
from dragoman.serve.refusals import Refusal, busy, ended
from dragoman.serve.responses import Download
from dragoman.serve.settings import digest_of
from dragoman.serve.state import StateFolder, StoredDocument
from dragoman.serve.work import Translating
from dragoman.text.glossary import Glossary, GlossaryTerm
from dragoman.text.unreadable import is_library_error

SHARE = 8
"""A document takes at most 1/SHARE of the queue at a time, estimated from its length."""
PAUSE = 0.5
"""Seconds before a document checks again whether the queue has room."""
LOOKED_AT = 100
"""Number of texts from which the language of a document is detected."""
LONGEST = 30 * 86_400.0
"""Deadline of a document in seconds; the document is removed long before."""
TELLING = 0.05
"""Fraction of a document to translate before the remaining time is estimated."""
SOON = 5
"""`retry-after`, in seconds, for an unfinished document without an estimate."""
AGAIN = 60.0
"""Seconds that a document stays after it is finished, or sent, so that it can be fetched again."""
SWEEP = 10.0
"""Seconds between two searches for documents to remove."""


@dataclass(slots=True, eq=False, kw_only=True)
class DocumentJob(ServeJob):
    """The translation of a document that is not finished."""

    is_document: ClassVar[bool] = True
    task: asyncio.Task[Refusal | None] = field(init=False)
    awaited: bool = False
    """Whether a client is waiting for it."""
    began: float = 0.0
    """When the translation of its texts began, in seconds since 1970."""
    size: int = 1
    """Characters of its texts, at least 1; `characters` counts those of the current piece."""


class DocumentDesk:
    """All documents of a server. Used only in the event loop."""

    def __init__(self, models: ServeModels, store: StateFolder) -> None:
        self._models, self._store = models, store
        self._jobs = dict[str, DocumentJob]()
        self._turn = asyncio.Semaphore(TOGETHER)
        self._documents = {one.id: one for one in store.all(StoredDocument)}
        """All documents by id; the store keeps them for the next server."""
        self._unkept = set[str]()
        """Those whose state could not be stored yet, for example on a full disk."""

    async def keep(self) -> None:
        """Translate what an earlier server left, and remove old documents, until cancelled."""
        for one in [*self._documents.values()]:
            if one.passing:  # nobody waits any more
                self.remove(one)
            elif one.status in {"queued", "translating"}:
                self._begin(one)
        try:
            while True:
                for one in [*self._documents.values()]:
                    if one.id in self._unkept:
                        self._put(one)
                    old = time() - one.made > self._models.settings.limits.file_seconds
                    if old or (one.sent and time() - one.sent > AGAIN):
                        self.remove(one)
                await asyncio.sleep(SWEEP)
        finally:
            self.cancel()

    def cancel(self, *, but_awaited: bool = False) -> list[asyncio.Task[Refusal | None]]:
        """Cancel all translations, or those that no client awaits; return their tasks."""
        tasks = [job.task for job in self._jobs.values() if not (but_awaited and job.awaited)]
        for task in tasks:
            task.cancel()
        return tasks

    async def pause(self) -> int:
        """Leave documents that no client awaits to the next server, if there is a state folder.

        Returns the number of these documents.
        """
        if self._models.settings.state is None:
            return 0
        tasks = self.cancel(but_awaited=True)
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    def unfetched(self) -> int:
        """Return how many finished documents may still be fetched and are lost with the server."""
        if self._models.settings.state is not None:
            return 0
        return sum(
            one.status == "done" and not one.passing and self._needed(one) > 0
            for one in self._documents.values()
        )

    def add(  # noqa: PLR0913 -- what differs from door to door has a name
        self,
        asked: ServeJob,
        source: str | None,
        target: str | None,
        *,
        model: str | None = None,
        glossary: Glossary | None = None,
        key: str = "",
        passing: bool = False,
    ) -> StoredDocument:
        """Take the document of a request and start to translate it; its id and `key` open it.

        The request no longer references its content. `passing` documents are not kept, and have a
        separate limit. Raises Refusal if there is no document or no place, or if the server is
        shutting down, and InputError for an unknown format.
        """
        if self._models.queue.closed:
            raise ended()
        if (upload := asked.file) is None or not upload.name:
            raise Refusal(400, "No document was sent.", "Send a file with a name.", where="file")
        if format_of_name(upload.name) is None:
            read_document(b"", upload.name)  # raises, and lists the formats
        self._make_room(asked.owner, passing=passing)
        one = StoredDocument(
            id=secrets.token_hex(16),
            owner=asked.owner,
            digest=digest_of(key),
            name=upload.name,
            made=time(),
            source=source,
            target=target,
            model=model,
            passing=passing,
        )
        try:
            self._store.write(one, "source", upload.content)
            if glossary is not None:
                self._store.write(one, "glossary", msgspec.json.encode([*glossary]))
            self._store.put(one)
        except BaseException:
            self.remove(one)
            raise
        asked.file = None
        self._documents[one.id] = one
        self._begin(one)
        return one

    async def done(self, asked: ServeJob, one: StoredDocument) -> StoredDocument:
        """Wait for a document that was just added. Raises Refusal if it fails or is too late.

        On any error, and if the client disconnects, the document is removed.
        """
        job = self._jobs[one.id]
        job.awaited = True
        try:
            await asked.unless_gone(asyncio.wait([job.task]))
            if one.status == "error" and (refusal := job.task.result()) is not None:
                raise Refusal(400, refusal.what, refusal.do, where="file")
            if one.status != "done":
                raise ended() if self._models.draining else no_document()
        except BaseException:
            self.remove(one)
            raise
        return one

    def _make_room(self, owner: str, *, passing: bool) -> None:
        """If the limit is reached, remove a document: one that was sent, or the oldest.

        Passing documents have a separate limit of the same size. Raises Refusal with the seconds
        until a document may be removed or, if it is passing, is done.
        """
        settings = self._models.settings
        most = settings.limits.files
        kept = [one for one in self._documents.values() if one.passing == passing]
        own = [one for one in kept if one.owner == owner]
        if len(own) >= settings.share(most):
            kept = own
        elif len(kept) < most:
            return
        if passing:
            what = "As many documents as may wait for their translation do so."
            raise busy(429, what, min(self.seconds_left(one) or SOON for one in kept))
        first = min(kept, key=self._needed)
        if (seconds := self._needed(first)) > 0:
            what = "The server keeps as many documents as it may."
            raise busy(429, what, math.ceil(seconds))
        self.remove(first)

    def _needed(self, one: StoredDocument) -> float:
        """Return the seconds until a document may be removed; negative if it already may be."""
        if one.sent:
            return -math.inf
        oldest = one.made + self._models.settings.limits.file_seconds - time()
        ended = one.ended or time() + (self.seconds_left(one) or SOON)
        return min(oldest, ended + AGAIN - time())

    def find(self, name: str, key: str = "", owner: str | None = None) -> StoredDocument:
        """Return a document by its id, its key and, if given, its owner. Raises Refusal."""
        one = self._documents.get(name)
        opened = one is not None and hmac.compare_digest(one.digest, digest_of(key))
        if one is None or not opened or owner not in {None, one.owner}:
            raise no_document()
        return one

    def seconds_left(self, one: StoredDocument) -> int | None:
        """Estimate the remaining seconds of a document; None until enough is translated."""
        job = self._jobs.get(one.id)
        if job is None or job.translated < TELLING * job.size:
            return None
        share = min(1.0, job.translated / job.size)
        return max(1, math.ceil((time() - job.began) * (1 / share - 1)))

    def fetched(self, one: StoredDocument) -> Response:
        """Return the response with the translation of a document. Raises Refusal."""
        if one.status != "done":
            raise busy(503, "Document not ready", self.seconds_left(one) or SOON)
        named = f"attachment; filename*=UTF-8''{quote(one.name, safe='')}"
        try:
            file = self._store.file(one, "target").open("rb")
        except FileNotFoundError:  # its removal may have failed halfway
            raise no_document() from None
        headers = {"content-disposition": named, "x-content-type-options": "nosniff"}
        return Download(partial(self._sent, one), file, headers)

    def _sent(self, one: StoredDocument) -> None:
        """Record when a document was sent."""
        if one.id in self._documents:
            one.sent = time()
            self._put(one)

    def remove(self, one: StoredDocument) -> None:
        """Remove a document; if that fails, it is removed once it is old."""
        if (job := self._jobs.pop(one.id, None)) is not None:
            job.task.cancel()
        self._unkept.discard(one.id)
        try:
            self._store.remove(one)
            self._documents.pop(one.id, None)
        except (OSError, sqlite3.Error) as error:
            log_failure(error)

    def _put(self, one: StoredDocument) -> None:
        """Store the state of a document; if that fails, it is tried again."""
        self._unkept.add(one.id)
        try:
            self._store.put(one)
            self._unkept.remove(one.id)
        except sqlite3.Error as error:
            log_failure(error)

    def _begin(self, one: StoredDocument) -> None:
        job = DocumentJob(deadline=monotonic() + LONGEST)
        self._models.queue.take(job, 0)  # it is accepted, and takes room piece by piece
        job.task = asyncio.get_running_loop().create_task(self._translate(one, job))
        self._jobs[one.id] = job

        def leave(_: object) -> None:
            self._jobs.pop(one.id, None)
            self._models.queue.leave(job, answered=True)

        job.task.add_done_callback(leave)

    async def _translate(self, one: StoredDocument, job: DocumentJob) -> Refusal | None:
        """Translate a document and record the outcome. Returns the refusal if it failed."""
        refusal: Refusal | None = None
        async with self._turn:
            one.status = "translating"
            self._put(one)
            try:
                await self._written(one, job)
                one.status = "done"
                self._models.characters += one.characters
            except BaseException as error:
                if not isinstance(error, Exception) and not is_library_error(error):
                    raise
                refusal = self._models.refusal(error)
                one.status, one.error = "error", refusal.sentence
                self._store.file(one, "target").unlink(missing_ok=True)
            one.ended = time()
            self._put(one)
            for name in ("source", "glossary"):
                self._store.file(one, name).unlink(missing_ok=True)
            fields = {"outcome": one.status, "characters": one.characters}
            log("document", fields | {"seconds": round(time() - one.made, 3)})
        return refusal

    async def _written(self, one: StoredDocument, job: DocumentJob) -> None:
        """Translate a document and write the result."""
        pair = one.source, one.target
        size = job.characters = (file := self._store.file(one, "source")).stat().st_size
        draft, texts, glossary = await self._models.in_thread(
            job,
            lambda: (
                made := Draft(read_document(file.read_bytes(), one.name, languages=pair)),
                made.texts,
                self._glossary(one),
            ),
        )
        source, is_told = one.source, one.source is None
        if is_told:
            some = "\n".join(text for text, _ in texts[:LOOKED_AT])
            (source,) = await self._models.sources_of(job, [some])
        if self._models.shelf.keeps(source, one.target):
            self._store.write(one, "target", file.read_bytes())
            return
        one.characters = sum(len(text) for text, _ in texts)
        chosen = self._models.shelf.choose(one.model, source, one.target, is_told=is_told)
        how = Translating(job, chosen, glossary=glossary)
        found: list[Any] = []
        job.began, job.size = time(), max(1, one.characters)
        for piece in pieces(texts, self._models.queue.most // SHARE):
            found += await self._piece(how, piece)
        job.characters = size
        content = await self._models.in_thread(job, partial(finished, draft, found))
        self._store.write(one, "target", content)

    def _glossary(self, one: StoredDocument) -> Glossary | None:
        if not (file := self._store.file(one, "glossary")).exists():
            return None
        return Glossary(msgspec.json.decode(file.read_bytes(), type=list[GlossaryTerm]))

    async def _piece(self, how: Translating, piece: Sequence[tuple[str, Places]]) -> list[Any]:
        """Return the translations of texts as soon as the queue has room for them."""
        job, queue = how.job, self._models.queue
        job.characters = sum(len(text) for text, _ in piece)
        while True:
            try:
                queue.guess(job, job.characters)
                return await self._models.translate_marked(how, piece)
            except Refusal as refusal:
                queue.take(job, 0)  # it stays accepted
                if refusal.status == 413 and len(piece) > 1:
                    half = len(piece) // 2
                    first = await self._piece(how, piece[:half])
                    return first + await self._piece(how, piece[half:])
                if refusal.status not in {429, 503}:
                    raise
            await asyncio.sleep(PAUSE)


def no_document() -> Refusal:
    """Return the refusal of a document that does not exist, or no longer does."""
    return Refusal(404, "Document not found", "", where="document_id")


def pieces(
    texts: Sequence[tuple[str, Places]], tokens: int
) -> Iterator[Sequence[tuple[str, Places]]]:
    """Yield texts in pieces of about `tokens` tokens, with at least one text each."""
    piece, size = list[tuple[str, Places]](), 0
    for each in texts:
        if piece and size + len(each[0]) > tokens * GUESS:
            yield piece
            piece, size = [], 0
        piece.append(each)
        size += len(each[0])
    if piece:
        yield piece


def finished(draft: Draft, found: Sequence[Any]) -> bytes:
    """Return the content of a document with the results of its texts."""
    draft.put(each and each[:3] for each in found)
    return draft.written()
