"""Documents when something is slow or missing: a thread, a client or a disk."""

import json
import operator
import sqlite3
from contextlib import suppress
from errno import ENOSPC
from functools import partial
from pathlib import Path
from socket import SO_RCVBUF, SOL_SOCKET
from threading import Event
from time import monotonic, sleep
from typing import Any
from unittest.mock import AsyncMock

import pytest
from tests.system.serve.live import Gate, Held, Live, in_background, serving, until
from tests.system.serve.test_documents import PAIR, filed, sent, uploaded

from dragoman import serve
from dragoman.documents.formats import read_document
from dragoman.documents.translate import Draft
from dragoman.serve import documents
from dragoman.serve.models import TOGETHER
from dragoman.serve.settings import RequestLimits
from dragoman.serve.state import StateFolder, StoredDocument


def test_texts_do_not_wait_for_documents_to_be_read(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for documents to be written: long ones take seconds."""
    reading, writing = Held(read_document), Held(lambda: b"")
    monkeypatch.setattr(documents, "read_document", reading)
    monkeypatch.setattr(Draft, "written", lambda _: writing())
    with serving(translator_folder) as live:
        content = b"a house\n" * 100
        calls = [
            in_background(partial(sent, live, "/v1/documents", {"tgt_lang": "zh"}, content))
            for _ in range(TOGETHER)
        ]
        for held in (reading, writing):
            until(lambda: held.begun == TOGETHER)  # noqa: B023 -- it ends here
            answer = live.post("/v1/detect", {"text": "a " * 300}, {"x-deadline": "3"})
            held.go_on.set()
            assert answer.status == 200
        assert [call().status for call in calls] == [200] * len(calls)


@pytest.mark.parametrize("name", ["web.parse_qsl", "v1.Glossary.parse"])
def test_texts_do_not_wait_for_forms_to_be_read(
    live: Live, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Those of a megabyte take a tenth of a second, and glossaries more."""
    place, _, attribute = name.rpartition(".")
    owner = operator.attrgetter(place)(serve)
    held = Held(getattr(owner, attribute))
    monkeypatch.setattr(owner, attribute, held)
    if name.startswith("web"):
        call = in_background(partial(live.form, "/translate", PAIR | {"q": "a " * 300}))
    else:
        fields = {"tgt_lang": "zh", "glossary": "\n".join(f"a{n}\tb" for n in range(200))}
        call = in_background(partial(sent, live, "/v1/documents", fields))
    until(lambda: held.begun)
    answer = live.post("/v1/detect", {"text": "a"}, {"x-deadline": "3"})
    held.go_on.set()
    assert (answer.status, call().status) == (200, 200)


def test_what_waits_for_our_door_is_on_the_disk_and_has_a_bound(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting documents have a separate limit; the request no longer references the file."""
    with serving(translator_folder, limits=RequestLimits(files=3)) as live:
        gate, desk = Gate(live, "en-zh"), live.service.documents
        done = AsyncMock(wraps=desk.done)
        monkeypatch.setattr(desk, "done", done)
        ours = partial(sent, live, "/v1/documents", {"tgt_lang": "zh"})
        calls = [in_background(ours) for _ in range(3)]
        until(lambda: done.call_count == len(calls))
        assert [each.args[0].file for each in done.call_args_list] == [None] * len(calls)
        monkeypatch.setattr(desk, "seconds_left", lambda _: 7)
        refused = ours()
        assert refused.headers["retry-after"] == "7"
        assert refused.json["error"]["what"].startswith("As many documents as may wait")
        assert refused.status == 429
        assert sent(live, "/v2/document", {"target_lang": "ZH"}).status == 200
        gate.opened.set()
        assert [call().status for call in calls] == [200] * len(calls)
        assert ours().status == 200


def test_a_full_disk_ends_no_more_than_what_it_has_no_room_for(
    translator_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures are reported and leave no files; old documents go, and later ones are kept."""
    monkeypatch.setattr(documents, "SWEEP", 0.05)
    with serving(translator_folder, state=tmp_path) as live:
        store = live.service.store
        gate, full = Gate(live, "en-zh"), Event()
        do, write = store._do, store.write

        def done(*given: Any) -> None:  # noqa: ANN401 -- as `_do`
            if full.is_set():
                raise sqlite3.OperationalError("database or disk is full")
            do(*given)

        def written(one: StoredDocument, name: str, content: bytes) -> None:
            write(one, name, content)
            if full.is_set():
                raise OSError(ENOSPC, "No space left on device")

        monkeypatch.setattr(store, "_do", done)
        monkeypatch.setattr(store, "write", written)
        path, key = uploaded(live)
        until(lambda: gate.batches)
        full.set()
        gate.opened.set()
        until(lambda: live.post(path, key).json["status"] == "error")
        refused = sent(live, "/v2/document", {"target_lang": "ZH"})
        assert (refused.status, "no room on its disk" in refused.json["message"]) == (507, True)
        until(lambda: '"code": "ENOSPC"' in live.log.getvalue())
        until(lambda: not [*(tmp_path / "documents").iterdir()])
        (kept,) = store.all(StoredDocument)
        assert kept.status == "translating"
        full.clear()
        until(lambda: [one.status for one in store.all(StoredDocument)] == ["error"])
        path = filed(live)
        assert live.get(path).status == 200
        until(lambda: any(one.sent for one in store.all(StoredDocument)))
        full.set()
        monkeypatch.setattr(documents, "AGAIN", 0.0)
        until(lambda: not [*(tmp_path / "documents").iterdir()])
        assert live.get(path).status == 404
        full.clear()
        until(lambda: len(store.all(StoredDocument)) == 1)


def test_nobody_else_reads_the_folder(tmp_path: Path) -> None:
    """What it makes is private, whatever the umask; existing folders, and parents, keep theirs."""
    state = tmp_path / "above" / "state"
    document = StoredDocument(id="a", digest="", name="a", made=0, source=None, target=None)
    for mode in (0o700, 0o750):
        folder = StateFolder(state)
        folder.write(document, "source", b"a")
        modes = {file: file.stat().st_mode & 0o777 for file in [state, *state.rglob("*")]}
        folder.close()
        assert modes.pop(state) == mode
        assert modes.pop(state / "documents") == 0o700
        assert [*modes.values()] == [0o600] * 3  # the database, its log, and a document
        state.chmod(0o750)
    (tmp_path / "usual").mkdir()
    assert state.parent.stat().st_mode == (tmp_path / "usual").stat().st_mode


SIZE = 6_000_000
"""Number of bytes that a client reads slowly."""


UNREAD = 0.4
"""`write_seconds` of its server."""


def read_slowly(live: Live, ask: bytes) -> int:
    """Count the bytes of a client that reads evenly for three times UNREAD; try again when busy."""
    size, longest = 0, 0.0
    for _ in range(20):
        with live.raw() as slow, suppress(ConnectionError):
            slow.setsockopt(SOL_SOCKET, SO_RCVBUF, 1 << 16)
            slow.sendall(ask)
            size, longest = len(slow.recv(1 << 14)), 0.0  # its beginning takes time
            latest = started = monotonic()
            while size < SIZE and (piece := slow.recv(1 << 14)):
                size, before, latest = size + len(piece), latest, monotonic()
                longest = max(longest, latest - before)
                sleep(max(0, started + 3 * UNREAD * size / SIZE - latest))
        if size >= SIZE or longest < UNREAD / 2:
            break
    return size


def test_a_document_is_sent_when_its_last_byte_has_left(translator_folder: Path) -> None:
    """Until then it is kept, and a slow reader gets all of it."""
    with serving(translator_folder, limits=RequestLimits(write_seconds=UNREAD)) as live:
        content = b"a house\n" + b"0" * SIZE
        ask = f"GET {filed(live, PAIR, content)} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()

        def moment() -> float:
            (one,) = live.service.store.all(StoredDocument)
            return one.sent

        with live.raw() as broken:
            broken.setsockopt(SOL_SOCKET, SO_RCVBUF, 1 << 16)
            broken.sendall(ask)
            assert broken.recv(1 << 14)
        ended = '"path": "/download_file/{name}", "outcome": "gone"'
        until(lambda: ended in live.log.getvalue())
        assert not moment()
        assert read_slowly(live, ask) >= SIZE
        until(moment)


def test_an_answer_may_be_read_slowly(translator_folder: Path) -> None:
    """A large answer in one piece is sent for as long as its client keeps reading."""
    limits = RequestLimits(write_seconds=UNREAD, body=2 * SIZE, characters=SIZE)
    with serving(translator_folder, limits=limits) as live:
        body = json.dumps(PAIR | {"q": "-" * SIZE}).encode()
        head = b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        ask = head + b"content-length: %d\r\n\r\n" % len(body) + body
        assert read_slowly(live, ask) >= SIZE


def test_the_log_names_what_a_full_disk_says_of_a_glossary(live: Live) -> None:
    """The log contains SQLite's name for the error."""
    base = live.service.store._base
    base.execute("PRAGMA max_page_count = 1")
    entries = "\n".join(f"a{number}\tb{number}" for number in range(50_000))
    ask = {"name": "a", "source_lang": "en", "target_lang": "zh", "entries": entries}
    refused = live.post("/v2/glossaries", ask | {"entries_format": "tsv"})
    base.execute("PRAGMA max_page_count = 4294967294")
    assert refused.status == 507
    until(lambda: '"code": "SQLITE_FULL"' in live.log.getvalue())
