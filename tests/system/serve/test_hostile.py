"""Hostile requests: each is refused with an error of ours, and nothing hangs."""

import json
import re
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.system.serve.live import Live, form, rest_of, serving, taken, until
from tests.system.serve.test_documents import PAIR, sent

from dragoman import serve
from dragoman.serve.admission import SMALL, WHOLE
from dragoman.serve.connections import PIPELINED
from dragoman.serve.settings import ApiKeys, RequestLimits

HIDDEN = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"

BAD_JSON = {
    "nothing": b"",
    "no JSON": b"text=hello",
    "broken": b'{"text": "a"',
    "a list": b"[]",
    "no text": b"{}",
    "an unknown key": b'{"text": "a", "beam": 3}',
    "NaN": b'{"text": "a", "temperature": NaN}',
    "infinity": b'{"text": "a", "length_penalty": 1e999}',
    "a huge integer": b'{"text": "a", "beam_size": ' + b"9" * 5000 + b"}",
    "a large seed": b'{"text": "a", "seed": 9223372036854775808}',
    "minus": b'{"text": "a", "beam_size": -1}',
    "above our limit": b'{"text": "a", "beam_size": 21}',
    "too many samples": b'{"text": "a", "n_best": 1000, "temperature": 1}',
    "a long translation": b'{"text": "a", "max_length_constant": 20000000}',
    "options that exclude each other": b'{"text": "a", "beam_size": 4, "temperature": 1.0}',
    "an operator's option": b'{"text": "a", "max_batch_tokens": 1}',
    "another task's option": b'{"text": "a", "max_tokens": 4}',
    "nested": b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "invalid UTF-8": b'{"text": "\xff\xfe"}',
    "lone surrogate": b'{"text": "\\ud800"}',
    "an unknown model": b'{"text": "a", "model": "none"}',
    "an unknown language": b'{"text": "a", "tgt_lang": "xx"}',
    "prefixes that are too few": b'{"text": ["a", "b"], "prefix": ["c"]}',
    "too many texts": json.dumps({"text": ["a"] * 1001}).encode(),
    "too many characters": json.dumps({"text": "a" * 200_001}).encode(),
    "too many stop strings": json.dumps({"text": "a", "forbidden_words": ["b"] * 101}).encode(),
}


@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON)
def test_a_bad_body_is_refused(live: Live, body: bytes) -> None:
    """The error says what is wrong, where, and what to do, without a traceback."""
    answer = live.post("/v1/translate", body)
    assert 400 <= answer.status < 500
    error = answer.json["error"]
    assert set(error) == {"message", "what", "where", "do"}
    assert all(error.values())
    assert "Traceback" not in answer.body.decode()
    if rb"\ud8" in body:
        assert "surrogate pair" in error["what"]


GOOD_TEXTS = [
    "\0",
    "\u2028",
    "</s><s>",
    "a" * 5000,
    "\U0010ffff",
    "👩‍👩‍👧",
    "\ufeff",
    "%s {x}",
    " \t\r\n",
]


def test_any_text_is_answered(live: Live) -> None:
    """Special tokens in a text are plain text."""
    assert len(live.texts(GOOD_TEXTS, {"beam_size": 1, "retry": False})) == len(GOOD_TEXTS)


def test_other_requests_are_refused(live: Live) -> None:
    """A wrong path, method, content type or size is refused."""
    assert live.get("/v1/nothing").status == 404
    wrong = live.get("/v1/translate")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json["error"]["what"] == "Method Not Allowed: this path takes POST."
    assert wrong.json["error"]["do"].startswith("GET /openapi.json lists all paths")
    assert live.send("POST", "/v1/translate", b'{"text": "a"}').status == 415
    large = live.post("/v1/translate", b" " * (1 << 20) + b"{}")
    assert (large.status, large.headers["connection"]) == (413, "close")
    for path in ("/%ff", "/v1/translate%00", "/../../etc/passwd", "//v1", "/v1/translate/"):
        assert live.get(path).status in {400, 404, 405}


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 33_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: 1\r\n" * 5500,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
        b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
        b"content-length: 4\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n"
        b"content-length: 2\r\n\r\nab",
        b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: 1\r\n folded: 2\r\nx y: 3\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: \0\r\n\r\n",
    ],
    ids=[
        *("a long header", "many headers", "TLS", "version", "length", "chunks"),
        *("two lengths of a kind", "two lengths", "an encoding", "a folded header", "a NUL"),
    ],
)
def test_what_is_no_proper_request_is_refused(live: Live, sent: bytes) -> None:
    """The connection is closed after a 4xx status."""
    with live.raw() as raw:
        raw.sendall(sent)
        found = rest_of(raw)
    assert found.startswith(b"HTTP/1.1 4")


def test_other_proper_requests_are_answered(live: Live) -> None:
    """HEAD, OPTIONS, chunked bodies and any host name work; unsupported encodings get 415."""
    assert live.send("HEAD", "/v1/models").body == b""
    allowed = live.send("OPTIONS", "/v1/models").headers["allow"]
    assert sorted(allowed.split(", ")) == ["GET", "HEAD"]
    gzipped = live.post("/v1/translate", b"\x1f\x8b\x08\0", {"content-encoding": "gzip"})
    assert (gzipped.status, gzipped.json["error"]["what"]) == (415, "The body is compressed.")
    windows = '{"text": "the cat"}'
    assert live.post("/v1/detect", windows.encode("utf-8-sig")).status == 200
    wide = live.post("/v1/detect", windows.encode("utf-16"))
    assert (wide.status, wide.json["error"]["what"]) == (415, "The body is in UTF-16.")
    assert live.get("/health/live", {"host": "../../etc"}).status == 200
    with live.raw() as raw:
        head = b"POST /v1/detect HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        raw.sendall(head + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n")
        for piece in (b'{"text"', b': "the cat"}', b""):
            raw.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        found = rest_of(raw)
    assert found.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("body", [b'{"text": "a"}', [b'{"text"', b': "a"}']], ids=["", "chunked"])
def test_an_offer_of_http_2_is_ignored(live: Live, body: bytes | list[bytes]) -> None:
    """Java's client makes it with every request to a server without TLS, beside the body."""
    settings = {"connection": "Upgrade, HTTP2-Settings", "http2-settings": "AAMAAABkAAQCAAAAAAIA"}
    headers = {"content-type": "application/json", "Upgrade": "h2c"} | settings
    connection = live.connect()
    for _ in range(2):
        connection.request("POST", "/v1/detect", body, headers, encode_chunked=True)
        assert taken(connection.getresponse()).status == 200
    connection.close()


def test_no_request_hides_in_a_body_that_offers_another_protocol(live: Live) -> None:
    """What follows a request that was refused at once is as long as it says."""
    body = b"\r\nupgrade:" * len(HIDDEN) + HIDDEN
    with live.raw() as raw:
        raw.sendall(b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: ")
        raw.sendall(b"%d\r\n\r\n" % len(body))
        assert raw.recv(4096).startswith(b"HTTP/1.1 404")
        raw.sendall(body + HIDDEN.replace(b"1.1", b"1.0"))
        found = rest_of(raw)
    assert found.count(b"HTTP/1.1 ") == 1


OFFERING = (
    b"POST /v1/detect HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n"
    b"content-length: %d\r\n\r\n" % len(HIDDEN)
)


@pytest.mark.parametrize("cut", [2, 3, 6, 8, 9, 10])
def test_a_divided_offer_hides_no_request(live: Live, cut: int) -> None:
    """Wherever the network divides the header that makes it; behind its name, the connection ends
    with the answer.
    """
    divided, found = OFFERING.index(b"\r\nupgrade") + cut, b""
    with live.raw() as raw, suppress(ConnectionError):
        for part in (
            OFFERING[:divided],
            OFFERING[divided:],
            HIDDEN + HIDDEN.replace(b"1.1", b"1.0"),
        ):
            raw.sendall(part)
            sleep(0.05)
        while piece := raw.recv(4096):
            found += piece
    assert found.count(b"HTTP/1.1 ") == 1 + (cut != 9)


def test_an_offer_behind_another_request_hides_none(live: Live) -> None:
    """A client may send it before the first answer; the connection ends with the second."""
    with live.raw() as raw:
        raw.sendall(HIDDEN + OFFERING)
        sleep(0.05)
        with suppress(ConnectionError):
            raw.sendall(HIDDEN)
        found = rest_of(raw)
    assert found.count(b"HTTP/1.1 ") == 2


def test_a_connection_has_only_so_many_open_requests(live: Live) -> None:
    """They cost memory, and the time in which others would be answered."""
    before = live.log.getvalue().count('"refused"')
    with live.raw() as raw:
        raw.sendall(HIDDEN * 1000)
        found = rest_of(raw)
    assert found.count(b"HTTP/1.1 200") == PIPELINED
    assert live.log.getvalue().count('"refused"') == before + 1


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 9])
def test_a_body_behind_divided_headers_is_unchanged(live: Live, cut: int) -> None:
    """Wherever the network divides them, a line of the body may look like a header."""
    body = b"the cat\r\nUpgrade: b"
    request = b"POST /v1/detect HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n"
    request += b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
    divided = len(request) - len(body) - cut
    with live.raw() as raw:
        raw.sendall(request[:divided])
        sleep(0.05)
        raw.sendall(request[divided:])
        found = rest_of(raw)
    assert found.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("sent", [b"x: y\r\n" * 10_000, b"x" * 65_536], ids=["many", "one"])
def test_headers_after_a_body_cost_no_memory(live: Live, sent: bytes) -> None:
    """Endless trailers close the connection."""
    with live.raw() as raw, suppress(ConnectionError):
        raw.sendall(b"GET /health/live HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        raw.sendall(b"0\r\nx: ")
        for _ in range(40 * (1 << 20) // len(sent)):
            raw.sendall(sent)
        raise AssertionError("it was taken")
    assert live.get("/health/live").status == 200


def test_slow_clients_are_not_waited_for(translator_folder: Path) -> None:
    """Missing headers, missing or partial bodies, and clients that do not read time out."""
    limits = RequestLimits(read_seconds=0.3, write_seconds=0.3)
    with serving(translator_folder, limits=limits) as live:
        head = (
            b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        )
        started = monotonic()
        with live.raw() as no_headers, live.raw() as no_body:
            no_headers.sendall(b"GET / HT")
            no_body.sendall(head + b'content-length: 100\r\n\r\n{"text')
            assert no_body.recv(4096).startswith(b"HTTP/1.1 408")
            assert no_headers.recv(4096) == b""
        with live.raw() as half:
            half.sendall(head + b'content-length: 100\r\n\r\n{"text')
        assert 0.2 < monotonic() - started < RequestLimits().read_seconds
        ask = {"text": ["the cat"] * 300, "n_best": 5, "retry": False}
        body = json.dumps(ask).encode()
        with live.raw() as unread:
            unread.setsockopt(1, 8, 4096)  # SO_RCVBUF
            sent = head + f"content-length: {len(body)}\r\n\r\n".encode() + body
            for _ in range(20):
                unread.sendall(sent)
            until(lambda: not live.service.queue.costs)
        with live.raw() as unread:
            unread.setsockopt(1, 8, 4096)
            unread.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 200)
            sleep(1)  # longer than `write_seconds`
        assert live.texts(["the cat"])
        assert '"level": "error"' not in live.log.getvalue()
        until(lambda: live.counted('dragoman_requests_total{dialect="v1",outcome="gone"') >= 1)


@pytest.mark.parametrize(
    ("first", "rest"), [(b"GET /health/live", b"\r\n"), (b"POST /v1/detect", b"x")]
)
def test_bytes_that_begin_no_request_keep_no_connection(
    live: Live, monkeypatch: pytest.MonkeyPatch, first: bytes, rest: bytes
) -> None:
    """An empty line, or more of the body of a request that was refused before its end."""
    monkeypatch.setattr(live.server.config, "timeout_keep_alive", 0.3)
    with live.raw() as raw:
        raw.sendall(first + b" HTTP/1.1\r\nhost: localhost\r\ncontent-length: ")
        raw.sendall(b"0\r\n\r\n" if first.startswith(b"GET") else b"100\r\n\r\n")
        assert raw.recv(4096)
        raw.sendall(rest)
        assert raw.recv(4096) == b""


def test_there_are_only_so_many_connections(translator_folder: Path) -> None:
    """A further connection gets 503 and is closed."""
    with serving(translator_folder, limits=RequestLimits(connections=3)) as live:
        open_ones = [live.raw() for _ in range(3)]
        with live.raw() as more:
            assert more.recv(4096).startswith(b"HTTP/1.1 503")
        for one in open_ones:
            one.close()
        until(lambda: live.get("/health/live").status == 200)


def test_responses_that_nobody_reads_have_a_bound_together(translator_folder: Path) -> None:
    """Those who have read nothing for longest are disconnected."""
    limits = RequestLimits(file=1 << 16, body=1 << 16, write_seconds=1000)
    with serving(translator_folder, limits=limits) as live, ExitStack() as stack:
        for _ in range(40):
            unread = stack.enter_context(live.raw())
            unread.setsockopt(1, 8, 4096)  # SO_RCVBUF
            unread.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 90)
        connections = live.server.server_state.connections
        until(lambda: len(connections) < 30)
        sizes = [one.transport.get_write_buffer_size() for one in connections]
        assert sum(sizes) <= WHOLE * limits.file + max(sizes)
        assert live.get("/openapi.json").status == 200


def test_bodies_that_arrive_have_a_bound_together(translator_folder: Path) -> None:
    """Half of it for clients without a known key; small bodies are always accepted."""
    limits, keys = RequestLimits(file=100_000, body=80_000), ApiKeys(["k"])
    content = b"the cat " + b"\n" * 90_000
    whole, headers = form(PAIR, content)
    path, known = "/translate_file", headers | {"authorization": "Bearer k"}
    ways = (path, headers), (f"{path}?api_key=k", headers), (path, known)
    with serving(translator_folder, limits=limits, keys=keys) as live, ExitStack() as stack:
        bodies = live.service.bodies
        for _ in range(WHOLE):
            raw = stack.enter_context(live.raw())
            raw.sendall(b"POST /translate_file HTTP/1.1\r\nhost: localhost\r\n")
            raw.sendall(b"content-length: 100000\r\n\r\n" + b"a" * 99_999)
        until(lambda: bodies.bytes > WHOLE // 2 * limits.file - len(whole))
        assert [live.send("POST", at, whole, own).status for at, own in ways] == [503, 200, 200]
        refused = live.send("POST", path, whole, headers)
        assert refused.headers["retry-after"] == "1"
        assert "as many bytes as it accepts" in refused.json["error"]
        assert bodies.bytes <= WHOLE // 2 * limits.file + WHOLE * SMALL
        assert live.post("/translate", PAIR | {"q": "the cat", "api_key": "k"}).status == 200
        stack.close()
        until(lambda: not bodies.bytes)
        assert live.send("POST", path, *form(PAIR | {"api_key": "k"}, content)).status == 200


def test_a_stranger_s_page_gets_nothing(live: Live) -> None:
    """All APIs with content refuse it, in the format of each dialect."""
    evil = {"host": "evil.example:8000"}
    for path in ("/v1/models", "/metrics", "/languages", "/v2/glossaries", "/"):
        refused = live.get(path, evil)
        assert refused.status == 403
        assert b"--host-name evil.example " in refused.body
    assert live.get("/v2/glossaries", evil).json["message"]
    for path in ("/health", "/health/live"):  # monitors request these by any name
        assert live.get(path, evil).status == 200
    page = {"origin": "https://evil.example", "content-type": "application/x-www-form-urlencoded"}
    refused = live.send("POST", "/v2/glossaries", b"name=x", page)
    assert (refused.status, b"--cors https://evil.example." in refused.body) == (403, True)


def test_the_page_has_words_of_its_own_for_usual_refusals(live: Live) -> None:
    """The page recognizes them by the server's messages."""
    page = Path(serve.__file__).with_name("page")
    known = dict(re.findall("^  (\\w+): /(.+)/,$", (page / "server.js").read_text("utf-8"), re.M))
    translate = partial(live.post, "/v1/translate")
    file = partial(sent, live, "/v1/documents", {"tgt_lang": "zh"})
    refused = {
        "bytes": file(b"a" * (11 << 20)),
        "characters": translate({"text": "the cat " * 30_000}),
        "lines": translate({"text": ["a"] * 1001}),
        "pdf": file(name="a.pdf"),
        "format": file(name="a"),
        "pair": translate({"text": "a", "tgt_lang": "de"}),
    }
    assert refused.keys() == known.keys()
    labels = json.loads((page / "labels.json").read_text("utf-8"))
    for name, answer in refused.items():
        message = "{what} {do}".format(**answer.json["error"])
        assert re.search(known[name], message), message
        assert all(f"error.{name}" in each for each in labels.values())
    message = refused["bytes"].json["error"]["message"]
    assert re.findall(known["bytes"], message) == ["10,485,760"]
