"""Glossaries that a server keeps: whose they are, checked when stored, and made ready once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dragoman.serve.refusals import Refusal
from dragoman.serve.state import StateFolder, StoredGlossary
from dragoman.serve.web import Call
from dragoman.text.glossary import Glossary, GlossaryTerm

if TYPE_CHECKING:
    from dragoman.serve.service import Service

READY = 100_000
"""Terms of all glossaries that are held ready, beside the last."""

Key = tuple[str, str, tuple[str, ...]]
"""An owner, a pair of languages, and the ids of glossaries."""


class GlossaryDesk:
    """All glossaries of a server. Used in the event loop alone."""

    def __init__(self, service: "Service", store: StateFolder) -> None:
        self._service, self._store = service, store
        self._ready = dict[Key, Glossary]()
        """The one that was used last is the last."""
        self._changes = 0
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    def of(self, owner: str) -> list[StoredGlossary]:
        """Return all that a key has made."""
        return self._store.all(StoredGlossary, owner)

    def is_full(self, owner: str) -> bool:
        """Whether there are as many as may be, or a key has its share of them."""
        settings, count = self._service.settings, self._store.count
        most = settings.limits.glossaries
        own = count(StoredGlossary, owner)
        return count(StoredGlossary) >= most or own >= settings.share(most)

    def find(self, owner: str, name: str) -> StoredGlossary:
        """Return one by its id. Raises Refusal for one that is not there, or another key's."""
        found = self._store.get(StoredGlossary, name)
        if found is None or found.owner != owner:
            raise no_glossary()
        return found

    @asynccontextmanager
    async def changing(self, owner: str, name: str) -> AsyncIterator[StoredGlossary]:
        """Find a glossary, and keep it as the block has changed it; one change comes at a time.

        Raises Refusal as `find` does.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            one = self.find(owner, name)
            yield one
            self.put(one)

    def put(self, one: StoredGlossary) -> None:
        """Keep one, in place of that with the same id."""
        self._forget(one)
        self._store.put(one)

    async def remove(self, owner: str, name: str) -> None:
        """Keep one no longer. Raises Refusal as `find` does."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            one = self.find(owner, name)
            self._forget(one)
            self._store.remove(one)

    async def ready(self, call: Call, pair: str, names: Sequence[str]) -> Glossary:
        """Return the terms of glossaries for a pair of languages; the first has the word.

        Raises Refusal for one that is not there or has not the pair, InputError for more terms
        than a glossary may have.
        """
        key = call.owner, pair, tuple(names)
        if (known := self._ready.pop(key, None)) is not None:
            self._ready[key] = known
            return known
        dictionaries = list[dict[str, str]]()
        for name in names:
            found = self.find(call.owner, name).dictionaries.get(pair)
            if found is None:
                what = f"The glossary has no dictionary for {pair.replace(' ', ' to ')}."
                raise Refusal(400, what, "", where="glossary_id")
            dictionaries.append(found)
        changes = self._changes
        call.characters += sum(map(len, dictionaries))  # which are read, too
        made = await self._service.in_thread(call, lambda: united(dictionaries))
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
        """Hold nothing ready of a glossary that changes."""
        self._changes += 1
        for key in [key for key in self._ready if one.id in key[-1]]:
            del self._ready[key]


def no_glossary() -> Refusal:
    """Return the refusal of a glossary that is not there."""
    return Refusal(404, "Glossary not found.", "", where="glossary_id")


def united(dictionaries: Sequence[dict[str, str]]) -> Glossary:
    """Return dictionaries as one; of equal terms that of the first. Raises InputError as it."""
    terms = dict[tuple[str, bool], GlossaryTerm]()
    for dictionary in dictionaries:
        for pair in dictionary.items():
            term = GlossaryTerm(*pair)
            terms.setdefault(term.key, term)
    return Glossary(terms.values())
