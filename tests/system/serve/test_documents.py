"""Documents through the APIs of LibreTranslate and DeepL, and our own."""

import json
import re
import sqlite3
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path
from time import sleep, time

import pytest
from tests.docs.pages import ROOT
from tests.processors import needs_independent_translations
from tests.system.serve.live import (
    Answered,
    Client,
    Gate,
    Live,
    form,
    in_background,
    serving,
    until,
)

from dragoman.errors import InputError
from dragoman.serve import documents
from dragoman.serve.settings import ApiKeys, RequestLimits
from dragoman.serve.state import StateFolder, StoredDocument
from dragoman.tasks.translate.translator import Translator

LINES = ["the cat sees a dog", "", "123", "a house", "the cat sees a dog"]
TEXT = "\r\n".join(LINES).encode()
PAIR = {"source": "en", "target": "zh"}


@pytest.fixture
def expected(translator_folder: Path) -> bytes:
    """The translated document, without the control characters that the model outputs."""
    alone = Translator.load(translator_folder)
    found = alone.translate([LINES[0], LINES[3]])
    first, second = (one.text.translate(dict.fromkeys(range(32))) for one in found)
    return "\r\n".join([first, "", "123", second, first]).encode()


def sent(
    live: Live,
    path: str,
    fields: dict[str, str],
    content: bytes = TEXT,
    name: str = "a.txt",
    headers: dict[str, str] | None = None,
) -> Answered:
    """Post a form that contains a file."""
    body, kind = form(fields, content, name)
    return live.send("POST", path, body, kind | (headers or {}))


def filed(live: Live, fields: dict[str, str] = PAIR, content: bytes = TEXT) -> str:
    """Translate a file as LibreTranslate's clients do; return its path."""
    url: str = sent(live, "/translate_file", fields, content).json["translatedFileUrl"]
    return url.removeprefix(f"http://127.0.0.1:{live.port}")


def uploaded(live: Live, headers: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """Upload a document as DeepL's clients do; return its path, and its key as a form."""
    handle = sent(live, "/v2/document", {"target_lang": "ZH"}, headers=headers).json
    return f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}


@needs_independent_translations
def test_libretranslate_says_where_the_file_is(live: Live, expected: bytes) -> None:
    """The address does not reveal the file's name, but the download restores it."""
    assert ".txt" in live.get("/frontend/settings").json["supportedFilesFormat"]
    for source in ("en", "auto"):
        answer = sent(live, "/translate_file", PAIR | {"source": source}, name="../../é;a.txt")
        url = answer.json["translatedFileUrl"]
        prefix = f"http://127.0.0.1:{live.port}/download_file/"
        assert url.startswith(prefix)
        assert len(url) == len(prefix) + 32 + len(".txt")
        file = live.get(url.removeprefix(f"http://127.0.0.1:{live.port}"))
        assert file.body == expected
        assert file.headers["content-disposition"].endswith("UTF-8''%C3%A9%3Ba.txt")
    for path in ("/download_file/none", "/download_file/..%2fstate.sqlite"):
        assert live.get(path).status == 404


@pytest.mark.parametrize("page", ["serve.md", "zh/serve.md"])
def test_the_address_of_a_file_is_right_behind_nginx(translator_folder: Path, page: str) -> None:
    """With the settings from our documentation, which also admit all that the server allows."""
    block = (ROOT / "docs" / page).read_text("utf-8").partition("```nginx")[2].partition("```")[0]
    given = {"$http_host": "their.example:8443", "$scheme": "https", '""': ""}
    set_by_it = re.findall(r"proxy_set_header (\S+) (\S+);", block)
    headers = {name.lower(): given[value] for name, value in set_by_it}
    with serving(translator_folder, host_name=("their.example",)) as live:
        for prefix in "", "/translate":
            under = headers | {"x-forwarded-prefix": prefix}
            url = sent(live, "/translate_file", PAIR, headers=under).json["translatedFileUrl"]
            assert url.startswith(f"https://their.example:8443{prefix}/download_file/")
    limits = RequestLimits()
    (size,) = re.findall(r"client_max_body_size (\d+)m;", block)
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", block)
    assert int(size) << 20 > limits.file
    assert int(seconds) > limits.deadline


def test_who_waits_is_told_that_a_document_was_removed(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document reached its maximum age before it was translated."""
    monkeypatch.setattr(documents, "SWEEP", 0.05)
    with serving(translator_folder, limits=RequestLimits(file_seconds=0.5)) as live:
        gate = Gate(live, "en-zh")
        for path, fields in ("/translate_file", PAIR), ("/v1/documents", {"tgt_lang": "zh"}):
            assert sent(live, path, fields).status == 404
        gate.opened.set()


IN_FRENCH = (
    b'<xliff version="1.2"><file source-language="en" target-language="fr">'
    b'<trans-unit id="u"><source>One.</source></trans-unit></file></xliff>'
)


@pytest.mark.parametrize(
    ("fields", "name", "content", "error"),
    [
        ({"source": ""}, "a.txt", b"a", "missing source parameter"),
        ({"target": "fr"}, "a.txt", b"a", "fr is not supported"),
        ({}, "a.xlf", IN_FRENCH, "a file in other languages: en, fr: unit u"),
        ({}, "a.pdf", b"a", "is a PDF"),
        ({}, "a.xyz", b"a", "The name of a.xyz does not tell the format. Give one of: text, "),
        ({}, "a.docx", b"no zip", "a.docx"),
        ({}, "a.txt", b"PK\x03\x04\x00", "a.txt is a document (docx, xlsx, odt) or another zip"),
        ({}, "a.html", b"%PDF-1.7", "a.html is a PDF, not html"),
        ({}, "", b"a", "No document was sent"),
    ],
)
def test_what_cannot_be_translated_is_said(
    live: Live, fields: dict[str, str], name: str, content: bytes, error: str
) -> None:
    """The error is a sentence, and nothing is kept of the document."""
    answer = sent(live, "/translate_file", PAIR | fields, content, name)
    assert answer.status == 400
    assert error in answer.json["error"]
    assert not live.service.store.all(StoredDocument)[2:]


@needs_independent_translations
def test_our_own_door_answers_with_the_document(live: Live, expected: bytes) -> None:
    """Our own API returns the document and keeps nothing of it."""
    before = len(live.service.store.all(StoredDocument))
    answer = sent(live, "/v1/documents", {"tgt_lang": "zh"})
    assert (answer.status, answer.body) == (200, expected)
    assert len(live.service.store.all(StoredDocument)) == before
    assert sent(live, "/v1/documents", {"tgt_lang": "fr", "src_lang": "en"}).status == 400
    assert sent(live, "/v1/documents", {"beam": "2"}).status == 400
    assert live.post("/v1/documents", {}).json["error"]["where"] == "file"


def test_our_own_door_says_what_is_wrong_and_what_to_do(live: Live) -> None:
    """Errors name the fault and the remedy, as for texts."""
    to_french = live.post("/v1/translate", {"text": "a", "tgt_lang": "fr"})
    assert sent(live, "/v1/documents", {"tgt_lang": "fr"}).json == to_french.json
    two = sent(live, "/v1/documents", {'glossary"; filename="g.tsv': "a\tb", "tgt_lang": "zh"})
    assert (two.status, "1 file, and all else as text" in two.json["error"]["do"]) == (400, True)
    body, kind = form({"tgt_lang": "zh"}, TEXT)
    part = live.send("POST", "/v1/documents", body.removesuffix(b"--x--\r\n"), kind)
    assert (part.status, "no closing boundary" in part.json["error"]["what"]) == (400, True)
    unread = sent(live, "/v1/documents", {"tgt_lang": "zh"}, b"no zip", "a.docx").json["error"]
    assert unread["what"].startswith("a.docx is damaged, or no document: ")
    assert (unread["where"], unread["do"]) == ("file", "Save the document anew.")


@pytest.fixture
def client(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """DeepL's client, without its polling interval of 5 s."""
    monkeypatch.setattr("deepl.translator.time.sleep", lambda _: sleep(0.01))
    return client


@needs_independent_translations
def test_the_client_of_deepl_fetches_a_document(
    client: Client, live: Live, tmp_path: Path, expected: bytes
) -> None:
    """Upload, polling and download work; the characters are counted once."""
    (tmp_path / "a.txt").write_bytes(TEXT)
    before = client.get_usage().character.count
    status = client.translate_document_from_filepath(
        tmp_path / "a.txt", tmp_path / "b.txt", target_lang="ZH"
    )
    assert (tmp_path / "b.txt").read_bytes() == expected
    assert status.billed_characters == len(LINES[0]) + len(LINES[3])
    assert client.get_usage().character.count == before + status.billed_characters
    handle = client.translate_document_upload(TEXT, filename="a.txt", target_lang="ZH")
    path = f"/v2/document/{handle.document_id}"
    assert live.post(path, {"document_key": "wrong"}).status == 404
    assert live.get(f"/download_file/{handle.document_id}").status == 404
    client.translate_document_wait_until_done(handle)
    out = BytesIO()
    client.translate_document_download(handle, out)
    assert out.getvalue() == expected
    before = client.get_usage().character.count
    assert live.post(f"{path}/result", {"document_key": handle.document_key}).body == expected
    assert client.get_usage().character.count == before


def test_deepl_refuses_what_it_cannot_do(client: Client, live: Live) -> None:
    """Immediately if possible, otherwise in the status of the document."""
    for more in ({"output_format": "pdf"}, {"target_lang": "FR"}, {"source_lang": "FR"}):
        with pytest.raises(Exception, match="not supported"):
            client.translate_document_upload(
                TEXT, filename="a.txt", **({"target_lang": "ZH"} | more)
            )
    handle = client.translate_document_upload(b"no zip", filename="a.docx", target_lang="ZH")
    status = client.translate_document_wait_until_done(handle)
    assert not status.ok
    assert status.error_message.startswith("a.docx is damaged, or no document: ")
    assert status.error_message.endswith(". Save the document anew.")
    ready = live.post(
        f"/v2/document/{handle.document_id}/result", {"document_key": handle.document_key}
    )
    assert ready.status == 503


def test_documents_have_limits(translator_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size, number and age are limited; old documents are removed with their files."""
    monkeypatch.setattr(documents, "SWEEP", 0.05)
    limits = RequestLimits(file=2000, files=2, file_seconds=600, body=4000)
    with serving(translator_folder, limits=limits) as live:
        large = sent(live, "/translate_file", PAIR, b"a" * 3000)
        assert large.status == 413
        assert "2,000 bytes, which is the server's limit `file`" in large.json["error"]
        for _ in range(2):
            assert sent(live, "/translate_file", PAIR, b"a house " * 100).status == 200
        assert sent(live, "/translate_file", PAIR).status == 429
        folder = live.service.store._files
        assert len([*folder.iterdir()]) == 2
        monkeypatch.setattr(documents, "time", lambda: time() + 600)
        until(lambda: not live.service.store.all(StoredDocument))
        assert not [*folder.iterdir()]
        assert sent(live, "/translate_file", PAIR).status == 200
    assert not folder.exists()


def test_a_document_waits_for_its_place(translator_folder: Path) -> None:
    """Its pieces wait for room while texts are answered; a disconnect removes it."""
    with serving(translator_folder, queue_tokens=120) as live:
        lines = [f"the cat {number} sees a dog" for number in range(40)]
        content = "\n".join(lines).encode()
        call = in_background(partial(sent, live, "/v1/documents", {"tgt_lang": "zh"}, content))
        answered = 0
        while live.service.store.all(StoredDocument) or not answered:
            answered += live.post("/v1/translate", {"text": "the"}).status == 200
        assert len(call().body.decode().splitlines()) == 40
        gate = Gate(live, "en-zh")
        leaving = live.connect()
        leaving.request("POST", "/v1/documents", *form({}, content))
        until(lambda: bool(gate.batches))
        leaving.close()
        until(lambda: not live.service.store.all(StoredDocument))
        gate.opened.set()
        until(lambda: not live.service.queue.costs)


@needs_independent_translations
def test_documents_survive_a_restart(
    translator_folder: Path, tmp_path: Path, expected: bytes
) -> None:
    """Unfinished documents do not delay the shutdown and start again; other files stay."""
    state = tmp_path / "state"
    with serving(translator_folder, state=state, shutdown_timeout=600.0) as live:
        gate = Gate(live, "en-zh")
        path, key = uploaded(live)
        until(lambda: bool(gate.batches))
        with pytest.raises(InputError, match="cannot be used"):
            StateFolder(state)
        (one,) = live.service.store.all(StoredDocument)
        live.end()
        assert live.drained() == {"lost": 0, "kept": 1, "unfetched": 0}
        gate.opened.set()
    (state / "documents" / f"{'0' * 32}.source").write_bytes(b"secret")
    (state / "documents" / "letter.source").write_bytes(b"a user's own")
    (state / "documents" / "2024").mkdir()
    with serving(translator_folder, state=state) as live:
        until(lambda: live.post(path, key).json["status"] == "done")
        assert live.post(f"{path}/result", key).body == expected
    left = {file.name for file in (state / "documents").iterdir()}
    assert left == {"letter.source", "2024", f"{one.id}.target"}


def test_what_is_left_of_a_document_is_told_by_what_is_done(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining time is estimated within a piece once some of it is translated."""
    now = time()
    monkeypatch.setattr(documents, "time", lambda: now)
    with serving(translator_folder) as live:
        gate = Gate(live, "en-zh")
        path, key = uploaded(live)
        until(lambda: bool(gate.batches))
        answer = live.post(path, key).json
        assert answer["status"] == "translating"
        assert "seconds_remaining" not in answer
        assert live.post(f"{path}/result", key).headers["retry-after"] == "5"
        (job,) = live.service.queue.costs
        job.translated, now = len(LINES[0]), now + 36  # of 25 characters in two texts
        assert live.post(path, key).json["seconds_remaining"] == 14
        assert live.post(f"{path}/result", key).headers["retry-after"] == "14"
        job.translated = 0
        gate.opened.set()
        until(lambda: live.post(path, key).json["status"] == "done")
        assert job.translated == len(LINES[0]) + len(LINES[3])


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """A file, a folder of something else, another database, and a record that is cut."""
    (tmp_path / "file").write_text("x")
    letter = tmp_path / "other" / "documents" / "letter.docx"
    letter.parent.mkdir(parents=True)
    letter.write_text("x")
    StateFolder(tmp_path / "cut").close()
    (tmp_path / "tables").mkdir()
    for name, statement in (
        ("tables", "CREATE TABLE document (x)"),
        ("cut", "INSERT INTO document VALUES ('a', '', '{')"),
    ):
        with closing(sqlite3.connect(tmp_path / name / "state.sqlite")) as base, base:
            base.execute(statement)
    for name in ("file", "other", "tables", "cut"):
        with pytest.raises(InputError, match="name a folder of this server's own"):
            StateFolder(tmp_path / name)
    assert [*(tmp_path / "other").rglob("*.*")] == [letter]


def test_documents_are_of_the_key_that_made_them(translator_folder: Path) -> None:
    """Another API key cannot find them, even with the document's key; each key has a share."""
    limits, keys = RequestLimits(files=8), ApiKeys(["mine", "yours"])
    with serving(translator_folder, limits=limits, keys=keys) as live:
        assert sent(live, "/translate_file", PAIR).status == 400
        assert sent(live, "/v1/documents", {}).status == 401
        assert sent(live, "/v2/document", {"target_lang": "ZH"}).status == 403
        mine, yours = ({"authorization": f"DeepL-Auth-Key {key}"} for key in ("mine", "yours"))
        path, key = uploaded(live, mine)
        assert live.post(path, key, yours).status == 404
        assert live.post(path, key, mine).status == 200
        until(lambda: live.post(path, key, mine).json["status"] == "done")
        path = filed(live, PAIR | {"api_key": "mine"})
        assert sent(live, "/translate_file", PAIR | {"api_key": "mine"}).status == 429
        assert sent(live, "/translate_file", PAIR | {"api_key": "yours"}).status == 200
        assert live.get(path).status == 200
        assert json.loads(live.get("/frontend/settings").body)["filesTranslation"]


def test_documents_make_room(translator_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetched documents go first, then old ones; our own API needs no place."""
    with serving(translator_folder, limits=RequestLimits(files=2)) as live:
        kept = live.service.store.all
        first, second = filed(live), filed(live)
        full = sent(live, "/translate_file", PAIR)
        assert full.status == 429
        assert 50 < int(full.headers["retry-after"]) <= 60
        assert sent(live, "/v1/documents", {"tgt_lang": "zh"}).status == 200
        assert live.get(second).status == 200
        assert sent(live, "/translate_file", PAIR).status == 200
        assert live.get(second).status == 404
        monkeypatch.setattr(documents, "AGAIN", 0.0)
        assert sent(live, "/translate_file", PAIR).status == 200
        assert live.get(first).status == 404
        assert len(kept(StoredDocument)) == 2


def test_terms_of_a_document_lie_beside_it(translator_folder: Path) -> None:
    """Terms are in a file that is removed after translation; all their columns apply."""
    with serving(translator_folder) as live:
        gate = Gate(live, "en-zh")
        fields = {"tgt_lang": "zh", "glossary": "cat\t我\t\tcase"}
        call = in_background(partial(sent, live, "/v1/documents", fields, b"the cat\nthe CAT"))
        until(lambda: bool(gate.batches))
        (one,) = live.service.store.all(StoredDocument)
        file = live.service.store.file(one, "glossary")
        assert json.loads(file.read_bytes())[0]["case"] is True
        gate.opened.set()
        first, second = call().body.decode().splitlines()
        assert "我" in first
        assert "我" not in second
        assert not file.exists()


@pytest.mark.parametrize("fields", [{"tgt_lang": "zh"}, {}])
def test_terms_of_a_document_are_read_in_the_languages_of_the_model(
    translator_folder: Path, fields: dict[str, str]
) -> None:
    """Columns named by them may be in any order."""
    terms = {"glossary": "zh\ten\n我\tcat"}
    with serving(translator_folder) as live:
        with pytest.warns(UserWarning, match="names of the columns"):
            answer = sent(live, "/v1/documents", fields | terms, b"cat")
        assert answer.body.decode() == "我"
