"""Glossaries that a server stores: owned by keys, checked when stored, and built once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from dragoman.errors import InputError
from dragoman.serve.job import ServeJob
from dragoman.serve.models import ServeModels
from dragoman.serve.refusals import Refusal
from dragoman.serve.state import GlossaryHead, StateFolder, StoredGlossary
from dragoman.text.glossary import MOST, Glossary, GlossaryTerm

READY = 100_000
"""Maximum terms of the built glossaries in memory, unless the last one alone has more."""

Key = tuple[str, str, tuple[str, ...]]
"""An owner, a language pair, and the ids of glossaries."""


class GlossaryDesk:
    """All glossaries of a server. Used only in the event loop."""

    def __init__(self, models: ServeModels, store: StateFolder) -> None:
        self._models, self._store = models, store
        self._ready = dict[Key, Glossary]()
        """Built glossaries, the most recently used last."""
        self._changes = 0
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    def of(self, owner: str) -> list[GlossaryHead]:
        """Return all glossaries of an owner, without their terms."""
        return self._store.all(GlossaryHead, owner)

    def is_full(self, owner: str) -> bool:
        """Whether the limit for all glossaries, or for those of an owner, is reached."""
        settings, count = self._models.settings, self._store.count
        most = settings.limits.glossaries
        return count() >= most or count(owner) >= settings.share(most)

    def find(self, owner: str, name: str) -> StoredGlossary:
        """Return a glossary by its id. Raises Refusal if it does not exist or has another owner."""
        found = self._store.get(name)
        if found is None or found.owner != owner:
            raise no_glossary()
        return found

    @asynccontextmanager
    async def changing(self, owner: str, name: str) -> AsyncIterator[StoredGlossary]:
        """Yield a glossary, and store it as the block changed it; its changes run one at a time.

        Raises Refusal as `find` does.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            one = self.find(owner, name)
            yield one
            self.put(one)

    def put(self, one: StoredGlossary) -> None:
        """Store a glossary, replacing one with the same id."""
        self._forget(one)
        self._store.put(one)

    async def remove(self, owner: str, name: str) -> None:
        """Remove a glossary. Raises Refusal as `find` does."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            one = self.find(owner, name)
            self._forget(one)
            self._store.remove(one)

    async def ready(self, job: ServeJob, pair: str, names: Sequence[str]) -> Glossary:
        """Return the terms of glossaries for a language pair; earlier ones take precedence.

        Raises Refusal if a glossary does not exist or lacks the pair, and InputError if they have
        more terms together, repeated ones included, than a glossary may have.
        """
        names = [*dict.fromkeys(names)]
        key = job.owner, pair, tuple(names)
        if (known := self._ready.pop(key, None)) is not None:
            self._ready[key] = known
            return known
        dictionaries = list[dict[str, str]]()
        for name in names:
            found = self.find(job.owner, name).dictionaries.get(pair)
            if found is None:
                what = f"The glossary has no dictionary for {pair.replace(' ', ' to ')}."
                raise Refusal(400, what, "", where="glossary_id")
            dictionaries.append(found)
            if sum(map(len, dictionaries)) > MOST:
                raise InputError(
                    f"the glossaries have more than {MOST:,} terms, repeated ones included; "
                    "name fewer of them"
                )
        changes = self._changes
        job.characters += sum(map(len, dictionaries))  # many are merged in a thread
        made = await self._models.in_thread(job, lambda: united(dictionaries))
        if changes == self._changes:
            self._keep_ready(key, made)
        return made

    def _keep_ready(self, key: Key, made: Glossary) -> None:
        others = [*self._ready]
        self._ready[key] = made
        for other in others:
            if sum(map(len, self._ready.values())) <= READY:
                break
            del self._ready[other]

    def _forget(self, one: StoredGlossary) -> None:
        """Drop the built glossaries that include a glossary that changes."""
        self._changes += 1
        for key in [key for key in self._ready if one.id in key[-1]]:
            del self._ready[key]


def no_glossary() -> Refusal:
    """Return the refusal of a glossary that does not exist."""
    return Refusal(404, "Glossary not found.", "", where="glossary_id")


def united(dictionaries: Sequence[dict[str, str]]) -> Glossary:
    """Merge dictionaries; of equal terms, the first is kept. Raises InputError as Glossary does."""
    terms = dict[tuple[str, bool], GlossaryTerm]()
    for dictionary in dictionaries:
        for pair in dictionary.items():
            term = GlossaryTerm(*pair)
            terms.setdefault(term.key, term)
    return Glossary(terms.values())
