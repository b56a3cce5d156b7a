"""The state of a server in a folder: documents, their translations, and glossaries.

The records are in SQLite, which survives a `kill -9`. File names are generated here; names that
clients give are only data in the records.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from dragoman.errors import InputError


class StoredDocument(msgspec.Struct, kw_only=True):
    """A document to translate, and its state."""

    table: ClassVar = "document"
    id: str
    owner: str = ""
    """A hash of the API key that created it; "" if the server has no keys."""
    digest: str
    """A hash of the document's own key, which opens it."""
    name: str
    made: float
    """Seconds since 1970."""
    source: str | None
    target: str | None
    model: str | None = None
    status: Literal["queued", "translating", "done", "error"] = "queued"
    error: str = ""
    characters: int = 0
    """Characters of its texts."""
    passing: bool = False
    """Whether it is answered at once, and not kept."""
    ended: float = 0.0
    """When it was finished, in seconds since 1970; 0 before."""
    sent: float = 0.0
    """When its translation was sent, in seconds since 1970; 0 before."""


class GlossaryHead(msgspec.Struct, kw_only=True):
    """A glossary without its terms, which take long to read."""

    table: ClassVar = "glossary_head"
    id: str
    owner: str
    name: str
    made: str
    counts: dict[str, int]
    """The number of terms of each language pair."""


class StoredGlossary(msgspec.Struct, kw_only=True):
    """A glossary."""

    table: ClassVar = "glossary"
    id: str
    owner: str = ""
    """As for a document."""
    name: str
    made: str
    """Time of creation in ISO 8601."""
    dictionaries: dict[str, dict[str, str]]
    """Target terms by source terms, for each language pair, such as "en de"."""

    @property
    def counts(self) -> dict[str, int]:
        """As for a head."""
        return {pair: len(terms) for pair, terms in self.dictionaries.items()}


Stored = TypeVar("Stored", StoredDocument, StoredGlossary, GlossaryHead)

FILES = ("source", "target", "glossary")
"""Suffixes of the files that a document has on the disk."""


class StateFolder:
    """A state folder. Used only in the event loop, except for the files of documents.

    Each table contains ids, owners, and records as JSON.
    """

    def __init__(self, folder: Path | None) -> None:
        """Open a folder; without one, a temporary folder that is removed with the server.

        Raises InputError if it is in use, or has documents but no database.
        """
        path, self._temporary = folder or Path(gettempdir()), None
        try:
            if folder is None:
                self._temporary = TemporaryDirectory("dragoman")
                path = Path(self._temporary.name)
            self._files = path / "documents"
            path.mkdir(mode=0o700, parents=True, exist_ok=True)  # parents get the umask's mode
            self._files.mkdir(mode=0o700, exist_ok=True)
            base = path / "state.sqlite"
            if not base.exists() and any(self._files.iterdir()):
                raise FileExistsError(f"there are files in {self._files.name}, but no {base.name}")
            base.touch(0o600)  # SQLite's other files copy its mode
            self._base = sqlite3.connect(base, timeout=1, check_same_thread=False)
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA journal_mode = WAL")
            for kind in (StoredDocument, StoredGlossary, GlossaryHead):
                columns = "id TEXT PRIMARY KEY, owner TEXT, content BLOB"
                self._do(f"CREATE TABLE IF NOT EXISTS {kind.table} ({columns})")
                self._do(f"CREATE INDEX IF NOT EXISTS {kind.table}_of ON {kind.table} (owner)")
            self._remove_unknown()
        except (OSError, sqlite3.Error, msgspec.DecodeError) as error:
            raise InputError(
                f"--state {path} cannot be used ({error}); name a folder of this server's own."
            ) from error

    def _remove_unknown(self) -> None:
        """Remove the files of documents without a record, and no others."""
        known = {each.id for each in self.all(StoredDocument)}
        for name in FILES:
            for file in self._files.glob(f"{'[0-9a-f]' * 32}.{name}"):
                if file.stem not in known:
                    file.unlink()

    def all(self, kind: type[Stored], owner: str | None = None) -> list[Stored]:
        """Return all records of a kind, or those of an owner, in the order of their creation."""
        rows = self._base.execute(
            f"SELECT content FROM {kind.table} WHERE ?1 IS NULL OR owner = ?1 ORDER BY rowid",  # noqa: S608 -- a name of ours
            (owner,),
        )
        return [msgspec.json.decode(content, type=kind) for (content,) in rows]

    def count(self, owner: str | None = None) -> int:
        """Return the number of glossaries, or of those of an owner."""
        query = "SELECT COUNT(*) FROM glossary WHERE ?1 IS NULL OR owner = ?1"
        (found,) = self._base.execute(query, (owner,)).fetchone()
        return int(found)

    def get(self, name: str) -> StoredGlossary | None:
        """Return a glossary by its id, or None."""
        found = self._base.execute("SELECT content FROM glossary WHERE id = ?", (name,)).fetchone()
        return None if found is None else msgspec.json.decode(found[0], type=StoredGlossary)

    def put(self, one: StoredDocument | StoredGlossary) -> None:
        """Store a record, replacing one with the same id; a glossary with its head."""
        is_glossary = isinstance(one, StoredGlossary)
        heads = [msgspec.convert(one, GlossaryHead, from_attributes=True)] if is_glossary else []
        with self._base:
            for each in (one, *heads):
                self._do(
                    f"INSERT INTO {each.table} VALUES (?, ?, ?) "  # noqa: S608
                    "ON CONFLICT (id) DO UPDATE SET content = excluded.content",
                    (each.id, each.owner, msgspec.json.encode(each)),
                )

    def remove(self, one: StoredDocument | StoredGlossary) -> None:
        """Remove a record; a document's files go first, which makes room on a full disk."""
        heads = [] if isinstance(one, StoredDocument) else [GlossaryHead.table]
        if isinstance(one, StoredDocument):
            for name in FILES:
                self.file(one, name).unlink(missing_ok=True)
        with self._base:
            for table in (one.table, *heads):
                self._do(f"DELETE FROM {table} WHERE id = ?", (one.id,))  # noqa: S608

    def file(self, one: StoredDocument, name: str) -> Path:
        """Return the path of a document's source, target or glossary."""
        return self._files / f"{one.id}.{name}"

    def write(self, one: StoredDocument, name: str, content: bytes) -> None:
        """Write a file of a document, which other users cannot read."""
        file = self.file(one, name)
        file.touch(0o600)
        file.write_bytes(content)

    def close(self) -> None:
        """Close the folder."""
        self._base.close()
        self.discard()

    def discard(self) -> None:
        """Remove a temporary folder; any thread may do so just before the process ends."""
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.cleanup()

    def _do(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        self._base.execute(statement, values)
