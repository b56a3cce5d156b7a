"""The models of a server: opened, loaded, leased and unloaded."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import ceil, inf
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from dragoman.errors import DragomanError, InputError, did_you_mean, is_out_of_memory
from dragoman.folder.opening import open_folder
from dragoman.folder.rereading import FolderFault, weights_of
from dragoman.languages import LangCodes, covers, name_of, resolve, resolve_target, tags
from dragoman.nn import Arithmetic
from dragoman.nn.cpu.native import share_of_threads
from dragoman.serve.cache import TranslationCache
from dragoman.serve.metrics import ServeMetrics, log, log_failure
from dragoman.serve.refusals import LONGEST_NAME, Refusal, busy, check_script
from dragoman.serve.settings import ServeSettings
from dragoman.tasks.answering import Answering
from dragoman.tasks.folders import arithmetic_of
from dragoman.tasks.generate.dialogue import converses
from dragoman.tasks.held import held_bytes
from dragoman.tasks.loading import load
from dragoman.tasks.task import TASKS, find_task, task_of
from dragoman.tasks.translate.languages import languages_of, listed
from dragoman.text.unreadable import is_library_error
from dragoman.wording import format_bytes

AGAIN = 60.0
"""Seconds before another attempt to load a model that failed to load."""
SOON = 5.0
"""The same, if memory was short."""


@dataclass(slots=True, eq=False)
class Served:
    """A model of the server."""

    name: str
    path: Path
    task: str | None = None
    """Its task: translate, generate, classify, tag or embed."""
    src_lang: str | None = None
    tgt_lang: str | None = None
    languages: tuple[str, ...] = ()
    """The codes of a multilingual model's languages."""
    writes: tuple[str, ...] = ()
    """Those that it writes, if not all of them."""
    targets_only: bool = False
    """Whether `languages` are only targets: the source language needs no code."""
    chats: bool = False
    """Whether it is a decoder that answers chat messages."""
    bytes: int = 0
    """Bytes of its weights in memory."""
    weights: object = None
    """An identifier of the weights, once they have been loaded."""
    error: str | None = None
    """Why it could not be opened or loaded."""
    again: float = inf
    """When it may be tried again (`monotonic`)."""
    answering: Answering[Any, Any] | None = None
    """What answers, while it is loaded."""
    cache: TranslationCache | None = None
    """A cache of its translations, while it is loaded."""
    leases: int = 0
    """Number of requests that use it."""
    used: float = 0.0
    """When a request last used it (`monotonic`)."""
    loading: asyncio.Task[None] | None = None
    aside: Lock = field(default_factory=Lock)
    """Held by computations outside the scheduler."""

    @property
    def usable(self) -> bool:
        """Whether it has not failed, or may be tried again."""
        return self.error is None or monotonic() >= self.again

    @property
    def state(self) -> str:
        """Its state: failed, unloaded or ready."""
        if self.error is not None:
            return "failed"
        return "unloaded" if self.answering is None else "ready"

    @property
    def sources(self) -> tuple[str, ...]:
        """The codes of the languages that it reads, as far as it declares them."""
        if self.languages and not self.targets_only:
            return self.languages
        return () if self.src_lang is None else (self.src_lang,)

    @property
    def targets(self) -> tuple[str, ...]:
        """The codes of the languages that it writes, as far as it declares them."""
        written = self.writes or self.languages
        return written or (() if self.tgt_lang is None else (self.tgt_lang,))

    def pair(self, src_lang: str | None, tgt_lang: str | None) -> LangCodes | None:
        """Return the model's codes for a language pair; None if it lacks the pair.

        A model of one pair needs no codes; a language that it does not declare may be any. A
        multilingual model does not translate a language into itself.
        """
        src = src_lang and resolve(src_lang, self.sources)
        tgt = tgt_lang and resolve_target(tgt_lang, self.targets)
        if (src_lang and self.sources and not src) or (tgt_lang and self.targets and not tgt):
            return None
        if not self.languages:
            return None, None
        written = tgt or self.tgt_lang
        if written is None or written == src:
            return None
        return (None if self.targets_only else src), tgt

    def open(self, arithmetic: Arithmetic, device: str) -> None:
        """Read the folder, except for its weights. Raises InputError if it is broken."""
        folder = open_folder(self.path)
        config, task = folder.config, task_of(folder.config)
        names = {find_task(name).kind: name for name in TASKS}
        if config.task is not None or (task is not None and task.load is None):
            raise InputError(f"{self.path} holds a model of a task that is not served.")
        self.task = "embed" if task is None else names[task.kind]
        self.src_lang, self.tgt_lang = config.src_lang, config.tgt_lang
        self.languages = tuple(languages_of(folder).known) if self.task == "translate" else ()
        self.writes = tuple(sorted({tgt for _, tgt in config.directions}))
        if self.languages and config.published is not None:
            self.targets_only = folder.src_tokenizer.lang_in_source
        self.chats = self.task == "generate" and converses(folder)
        self.bytes = held_bytes(folder, arithmetic, device)


Chosen = tuple[Served, LangCodes]
"""A translator, and its codes for the language pair."""


class Shelf:
    """All models by name; only some may be in memory. Used only in the event loop."""

    def __init__(self, settings: ServeSettings, metrics: ServeMetrics) -> None:
        """Open the folders, and log broken ones. Raises InputError if all are broken."""
        self._settings, self._metrics = settings, metrics
        arithmetic = arithmetic_of(settings.compute, settings.device)
        self.models = {name: Served(name, path) for name, path in settings.named.items()}
        self.pending = True
        """Whether models must still be loaded before the server is ready."""
        self.failed = False
        """Whether no model could be used once they were loaded."""
        self._loader = ThreadPoolExecutor(1, "load")
        for served in self.models.values():
            try:
                served.open(arithmetic, settings.device)
                if served.bytes > settings.max_memory:
                    raise InputError(
                        f"{served.path} needs {format_bytes(served.bytes)}, more than --max-memory "
                        f"{format_bytes(settings.max_memory)}."
                    )
            except DragomanError as error:
                self._fail(served, str(error), inf)
        if not self.usable():
            raise InputError(self.reasons())

    def usable(self, task: str | None = None) -> list[Served]:
        """Return the models, or those of a task, that have not failed or may be tried again."""
        return [one for one in self.models.values() if one.usable and task in {None, one.task}]

    def reasons(self) -> str:
        """Return why models have failed."""
        return "; ".join(one.error for one in self.models.values() if one.error is not None)

    def find(self, name: str | None, task: str, *, or_chat: bool = False) -> Served:
        """Return a task's model by its name, or the only one. Raises Refusal if there is none.

        Without a name, none of several is chosen. With `or_chat`, the refusal also names models
        that chat.
        """
        usable = {served.name: served for served in self.usable(task)}
        if name is None and len(usable) == 1:
            return next(iter(usable.values()))
        served = self.models.get(name or "")
        if served is not None and not served.usable:
            what = f"The model {name} could not be loaded."
            if served.again == inf:
                raise Refusal(503, what, "Tell the operator.", where="model")
            raise busy(503, what, ceil(served.again - monotonic()))
        if served is not None and served.task == task:
            return served
        able = [*usable, *(one.name for one in self.usable("generate") if or_chat and one.chats)]
        do = f"Name a model that can: {', '.join(able)}."
        if not able:
            do = "GET /v1/models lists the models and their tasks."
        if not name:
            what = f"{len(usable) or 'No'} model{'s' * (len(usable) != 1)} can {task}."
            raise Refusal(400, what, do, where="model")
        name = name[:LONGEST_NAME]
        asked = f"{task} or chat" if or_chat else task
        what = f"The model {name} does not {asked}" if served else f"No model is called {name}"
        raise Refusal(404, what + (did_you_mean(name, able) or "."), do, where="model")

    def is_for(self, name: str | None, task: str) -> bool:
        """Whether a model has a task; without a name, whether any has, and none translates."""
        if name is None:
            return bool(self.usable(task)) and not self.usable("translate")
        return name in self.models and self.models[name].task == task

    def choose(
        self,
        model: str | None,
        src_lang: str | None,
        tgt_lang: str | None,
        *,
        is_told: bool = False,
    ) -> Chosen:
        """Return the translator for a request, and its codes for the languages.

        `is_told` means that the source was detected in the text. Raises Refusal for an unknown
        model, for a pair that no model has, and if several models match.
        """
        candidates = [self.find(model, "translate")] if model else self.usable("translate")
        read = [code for one in candidates for code in one.sources]
        check_script("src_lang", src_lang, read)
        check_script("tgt_lang", tgt_lang, (code for one in candidates for code in one.targets))
        fitting = [(one, pair) for one in candidates if (pair := one.pair(src_lang, tgt_lang))]
        if len(fitting) == 1 or (fitting and (src_lang or tgt_lang)):
            return fitting[0]
        if not candidates or (fitting and not model):
            return self.find(None, "translate"), (None, None)  # raises, and names them
        only = candidates[0] if len(candidates) == 1 else None
        if only and not tgt_lang and any(only.pair(src_lang, code) for code in only.targets):
            raise Refusal(
                400,
                f"The model {only.name} translates into {listed(only.targets)}.",
                "Say which by tgt_lang.",
                where="tgt_lang",
            )
        if is_told and src_lang and resolve(src_lang, read) is None:
            raise Refusal(
                400,
                f"The text seems to be in {name_of(src_lang)} ({src_lang}), which is not available "
                "as a source language.",
                f"Available: {', '.join(sorted({*tags(read).values()}))}.",
                where="text",
            )
        asked = [(code or "any language")[:LONGEST_NAME] for code in (src_lang, tgt_lang)]
        raise Refusal(
            400,
            f"No model translates {asked[0]} to {asked[1]}.",
            "GET /v1/models lists their languages.",
            where="src_lang, tgt_lang",
        )

    def keeps(self, src_lang: str | None, tgt_lang: str | None) -> bool:
        """Whether a text stays unchanged, because it is already in the requested language.

        Translators must read or write that language, and none may translate it into itself. A text
        of unknown variant may not be in the requested variant, and so does not stay.
        """
        if not src_lang or not tgt_lang or not covers(tgt_lang, src_lang):
            return False
        translators = self.usable("translate")
        known = any(resolve(src_lang, (*one.sources, *one.targets)) for one in translators)
        return known and not any(one.pair(src_lang, tgt_lang) for one in translators)

    def languages(self, code_of: Callable[[str], str]) -> dict[str, set[str]]:
        """Return the languages that translators read, each with those it is translated into.

        `code_of` converts their tags to the codes that are returned.
        """
        pairs: dict[str, set[str]] = {}
        translators = self.usable("translate")
        codes = tags(code for one in translators for code in (*one.sources, *one.targets))
        for one in translators:
            targets = {code_of(codes[code]) for code in one.targets}
            for code in one.sources:
                source = code_of(codes[code])
                pairs.setdefault(source, set()).update(targets - {source})
        return dict(sorted(pairs.items()))

    @asynccontextmanager
    async def lease(
        self, served: Served, wait: Callable[[Awaitable[None]], Awaitable[None]]
    ) -> AsyncIterator[Answering[Any, Any]]:
        """Load a model if needed, and keep it in memory during the block. Raises Refusal.

        `wait` waits for the load on behalf of the caller.
        """
        served.leases += 1
        try:
            while served.answering is None:
                self.find(served.name, served.task or "")
                await wait(asyncio.shield(self.load(served)))
            yield served.answering
        finally:
            served.leases -= 1
            served.used = monotonic()

    def load(self, served: Served) -> asyncio.Task[None]:
        """Return the task that loads a model, started if needed.

        Raises Refusal if there is no memory for the model.
        """
        if served.loading is None:
            self._make_room(served)
            served.loading = asyncio.get_running_loop().create_task(self._load(served))
        return served.loading

    async def load_all(self) -> None:
        """Load all models that there is room for, one after another."""
        try:
            wanted = [] if self._settings.lazy else self.usable()
            await asyncio.gather(*(self.load(one) for one in wanted if self._room(one) >= 0))
            self.failed = not self.usable()
        finally:
            self.pending = False

    async def _load(self, served: Served) -> None:
        """Load a model in the loader thread."""
        settings = self._settings
        try:
            answering, weights = await asyncio.get_running_loop().run_in_executor(
                self._loader, _read, served.path, settings.device, settings.compute
            )
            if served.weights not in {None, weights}:  # changed since it was unloaded
                raise FolderFault(f"{served.path} has changed; restart the server to serve it.")
        except BaseException as error:
            if not isinstance(error, Exception) and not is_library_error(error):
                raise
            short = is_out_of_memory(error)
            if not short and not isinstance(error, DragomanError):
                log_failure(error)
            self._fail(served, str(error), SOON if short else AGAIN)
        else:
            served.answering, served.weights, served.error = answering, weights, None
            hits = self._metrics.cached.labels(served.name)
            served.cache = TranslationCache(settings.limits.cached, hits.inc)
            answering.scheduler.observe = self._metrics.observer(served.name)
            served.used = monotonic()
            self._count(served, "loaded")
        finally:
            served.loading = None

    def _make_room(self, served: Served) -> None:
        """Unload the least recently used models. Raises Refusal if too many are in use."""
        while self._room(served) < 0:
            loaded = (one for one in self.models.values() if one.answering is not None)
            idle = [one for one in loaded if not one.leases]
            if not idle:
                what = f"There is no memory for the model {served.name} while others work."
                raise busy(503, what, 1)
            oldest = min(idle, key=lambda one: one.used)
            oldest.answering = oldest.cache = None
            self._count(oldest, "unloaded")

    def _room(self, served: Served) -> float:
        """Return the bytes left once a model is loaded; negative if it does not fit."""
        held = (one.bytes for one in self.models.values() if one.answering or one.loading)
        return self._settings.max_memory - sum(held) - served.bytes

    def _fail(self, served: Served, error: str, seconds: float) -> None:
        served.error, served.again = error, monotonic() + seconds
        self._count(served, "failed")

    def _count(self, served: Served, outcome: str) -> None:
        held = served.bytes if served.answering is not None else 0
        self._metrics.memory.labels(served.name).set(held)
        self._metrics.loads.labels(served.name, outcome).inc()
        fields = {"model": served.name, "outcome": outcome, "bytes": served.bytes}
        if served.error is not None:
            fields["error"] = served.error
        log("model", fields, "error" if served.error else "info")

    def close(self) -> None:
        """Shut down the loader thread."""
        self._loader.shutdown(wait=False, cancel_futures=True)


def _read(path: Path, device: str, compute: Any) -> tuple[Answering[Any, Any], object]:  # noqa: ANN401 -- a name
    folder = open_folder(path)
    with share_of_threads(1):
        answering: Answering[Any, Any] = load(folder, device=device, precision=compute)
    gc.collect()
    gc.freeze()  # else garbage collection keeps stopping all threads for 0.15 s to scan it
    return answering, weights_of(folder)
