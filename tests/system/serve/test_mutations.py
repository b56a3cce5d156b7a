"""Randomly mutated requests of all dialects against the application in this process."""

import asyncio
import json
import os
import random
import re
from collections.abc import MutableMapping
from hashlib import sha256
from time import time
from typing import Any

import pytest
from tests.system.serve.live import form
from tests.unit.tasks.tiny import save_translator
from tests.unit.tasks.tiny_chat import save_chat_generator

from dragoman.serve.app import ENDPOINTS, make_app
from dragoman.serve.service import Service
from dragoman.serve.settings import RequestLimits, ServeSettings
from dragoman.serve.state import StoredDocument, StoredGlossary

REQUESTS = int(os.environ.get("DRAGOMAN_FUZZ", "3000"))
TOGETHER = 50
"""Number of concurrent requests."""
PATIENCE = 20.0
"""Seconds within which each request must be answered."""

JSON, FORM = b"application/json", b"application/x-www-form-urlencoded"
PARTS = b"multipart/form-data; boundary=x"
PAIR = {"source": "en", "target": "zh"}
SAID = [{"role": "user", "content": "the cat"}]
SHORT = {"beam_size": 1, "retry": False}
TERMS = {"source_lang": "en", "target_lang": "zh", "entries": "cat\t我\n", "entries_format": "tsv"}
UPLOADS = ("/translate_file", "/v2/document", "/v1/documents")
UPLOAD, _ = form({"target_lang": "zh", "target": "zh"}, b"the cat")

Message = MutableMapping[str, Any]
Template = tuple[str, str, bytes, bytes]
"""A method, a path, a content type and a body."""


def in_json(path: str, content: object) -> Template:
    """Return a request with a JSON body."""
    return "POST", path, JSON, json.dumps(content).encode()


TEMPLATES: list[Template] = [
    in_json("/v1/translate", {"text": ["the cat", "我"], "n_best": 1, **SHORT}),
    in_json("/v1/generate", {"text": "the cat", "max_tokens": 4, "seed": 1, "stream": True}),
    in_json("/v1/score", {"src": "a", "tgt": "b", "model": "en-zh"}),
    in_json("/v1/detect", {"text": ["the cat", "我喜欢"]}),
    in_json("/v1/classify", {"text": "a"}),
    in_json("/translate", {"q": ["the cat\n a"], "alternatives": 1, "api_key": "k", **PAIR}),
    ("POST", "/translate", FORM, b"q=the+cat%0Aa&source=auto&target=zh&format=text"),
    ("POST", "/translate", PARTS, form({"q": "a"} | PAIR)[0]),
    in_json("/detect", {"q": "the cat"}),
    in_json("/v2/translate", {"text": ["a", "我"], "target_lang": "ZH", "formality": "default"}),
    ("POST", "/v2/translate", FORM, b"text=a&text=b&target_lang=ZH&show_billed_characters=1"),
    ("GET", "/v2/languages", FORM, b"type=target"),
    in_json("/v1/chat/completions", {"model": "town", "messages": SAID, "max_tokens": 4}),
    in_json(
        "/v1/chat/completions", {"model": "en-zh:en-zh", "messages": SAID, "stream": True, "n": 1}
    ),
    in_json("/translate", {"q": "<p>the <b>cat</b></p>", "format": "html", **PAIR}),
    in_json("/v1/translate", {"text": ["<a>the</a>"], "format": "xml", "glossary": {"a": "b"}}),
    in_json(
        "/v2/translate",
        {
            "text": ["<a>the <i>cat</i></a>"],
            "target_lang": "ZH",
            "tag_handling": "xml",
            "tag_handling_version": "v2",
            "ignore_tags": ["i"],
            "splitting_tags": ["a"],
        },
    ),
    *(("POST", path, PARTS, UPLOAD) for path in UPLOADS),
    in_json("/v1/tag", {"text": "a"}),
    in_json("/v1/embed", {"text": ["a"]}),
    in_json("/v1/embeddings", {"model": "a", "input": ["a"], "encoding_format": "base64"}),
    in_json("/v1/inspect", {"text": "the cat"}),
    in_json("/v2/document/0", {"document_key": "0"}),
    in_json("/v2/document/0/result", {"document_key": "0"}),
    in_json("/v2/glossaries", TERMS | {"name": "a"}),
    in_json("/v3/glossaries", {"name": "a", "dictionaries": [TERMS]}),
    ("PATCH", "/v3/glossaries/0", JSON, json.dumps({"dictionaries": [TERMS]}).encode()),
    ("PUT", "/v3/glossaries/0/dictionaries", JSON, json.dumps(TERMS).encode()),
    ("GET", "/v3/glossaries/0/entries", FORM, b"source_lang=en&target_lang=zh"),
    ("DELETE", "/v3/glossaries/0/dictionaries", FORM, b"source_lang=en&target_lang=zh"),
    *((each.method, re.sub("{.*?}", "0", each.path), FORM, b"") for each in ENDPOINTS),
]
TOKENS = [
    *(b"9" * 5000, b"1e999", b"-1", b"NaN", b"null", b"true", b"{}", b"[]", b'""', b"0"),
    *(b"[" * 5000, b'{"a":' * 5000, b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\u0000"),
    *(b'"' + b"a" * 30_000 + b'"', b"%ff", b"%00", b"&" * 5000, b"\r\n--x", b"--x--", b"\0"),
]
HEADERS = [
    *((b"content-type", each) for each in (b"", b"json", b"\xff", b"text/plain", b"a/b+json")),
    (b"content-type", b"application/json; charset=utf-16"),
    (b"content-type", b"multipart/form-data"),
    (b"content-type", b"multipart/form-data; boundary=" + b"x" * 5000),
    (b"content-type", b"multipart/form-data; boundary=x; charset=punycode"),
    *((b"x-deadline", each) for each in (b"", b"-1", b"nan", b"1e400", b"\xff", b"9" * 5000)),
    *((b"content-length", each) for each in (b"", b"-1", b"9" * 400, b"\xc2\xb2", b"0x10")),
    *((b"content-encoding", b"gzip"), (b"transfer-encoding", b"chunked"), (b"host", b"a/../b")),
    *((b"authorization", each) for each in (b"", b"Bearer", b"\xff \xff", b"Basic " + b"=" * 999)),
    *((b"accept-encoding", b"*"), (b"origin", b"null"), (b"cookie", b"a" * 9999)),
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get", "X" * 99]


def changed(draw: random.Random, body: bytes) -> bytes:
    """Return a body with some bytes replaced, removed, doubled or inserted."""
    content = bytearray(body)
    for _ in range(draw.randint(0, 3)):
        place = draw.randrange(len(content) + 1)
        end = place + draw.randint(0, 9)
        match draw.randrange(4):
            case 0:
                content[place:end] = draw.choice(TOKENS)
            case 1:
                content[place:end] = draw.randbytes(draw.randint(0, 4))
            case 2:
                content[place:end] = b""
            case _:
                content[place:place] = content[place:end] * 2
    return bytes(content)


def request(draw: random.Random) -> tuple[dict[str, Any], list[bytes]]:
    """Return the scope of a random request, and the pieces of its body."""
    method, path, kind, body = draw.choice(TEMPLATES)
    headers, query, body = {b"host": b"localhost", b"content-type": kind}, b"", changed(draw, body)
    match draw.randrange(10):
        case 0:
            method = draw.choice(METHODS)
        case 1:
            path += draw.choice(["/", "//", "/..", "\0", "\udcff", "?", "/x" * 1000])
        case 2:
            query = changed(draw, b"q=a&type=target&source=en")
        case 3 | 4:
            headers |= dict(draw.sample(HEADERS, 2))
    cut = draw.randrange(len(body) + 1)
    raw = path.encode("utf-8", "surrogateescape")
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
    }
    scope |= {"path": path, "raw_path": raw, "root_path": "", "query_string": query}
    return scope | {"headers": [*headers.items()]}, [body[:cut], body[cut:]]


def keep(service: Service) -> None:
    """Store the document and the glossary that the templates refer to."""
    document = StoredDocument(
        id="0",
        digest=sha256(b"0").hexdigest(),
        name="a.txt",
        made=time(),
        source="en",
        target="zh",
        status="done",
    )
    service.documents._documents[document.id] = document
    service.store.write(document, "target", b"a")
    terms = {"en zh": {"cat": "\u6211"}}
    service.glossaries.put(StoredGlossary(id="0", name="a", made="", dictionaries=terms))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service with a translator and a chat model, and small limits."""
    root = tmp_path_factory.mktemp("mutations")
    folders = (save_translator(root / "en-zh"), save_chat_generator(root / "town"))
    limits = RequestLimits(characters=2000, tokens=64, body=60_000, read_seconds=5)
    return Service(ServeSettings(models=folders, limits=limits))


def test_no_request_fails_or_hangs(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    """Each request is answered or refused in time, and no failure is logged."""
    draw, app = random.Random(11), make_app(service)
    statuses: dict[int, int] = {}

    async def send_one() -> None:
        scope, pieces = request(draw)
        arriving: list[Message] = [
            {"type": "http.request", "body": each, "more_body": each is not pieces[-1]}
            for each in pieces
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            if arriving:
                return arriving.pop(0)
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)

        await asyncio.wait_for(app(scope, receive, send), PATIENCE)
        status, body = sent[0]["status"], b"".join(each.get("body", b"") for each in sent)
        assert status < 500, (scope, pieces, body)
        assert status < 400 or b"Traceback" not in body
        statuses[status] = statuses.get(status, 0) + 1

    async def send_all() -> None:
        async with app.router.lifespan_context(app):
            while not service.ready:
                await asyncio.sleep(0.01)
            for _ in range(REQUESTS // TOGETHER):
                keep(service)
                await asyncio.gather(*(send_one() for _ in range(TOGETHER)))

    asyncio.run(send_all())
    assert sum(statuses.values()) == REQUESTS
    assert {200, 201, 204, 400, 404, 405, 413, 415} <= set(statuses)
    assert service.queue.tokens == 0
    assert '"failure"' not in capfd.readouterr().err
