"""Spans of requests, as an OpenTelemetry collector receives them."""

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import export
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.system.serve.live import serving

from dragoman.errors import InputError
from dragoman.serve import service, tracing
from dragoman.serve.settings import ApiKeys

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEXT = "the cat sees a secret"


@pytest.fixture
def collector() -> Iterator[tuple[str, "Queue[bytes]"]]:
    """The address of a collector, and the bodies that it receives."""
    bodies = Queue[bytes]()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_span_for_each_request(
    translator_folder: Path, collector: tuple[str, "Queue[bytes]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a child of the caller's span, and has the fields of the log but no texts."""
    address, bodies = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with serving(translator_folder) as live:
        parent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        assert live.post(f"/translate?q={TEXT.replace(' ', '%20')}", {}, parent).status == 400
        assert live.post("/v1/translate", {"text": TEXT}, parent).status == 200
        sent, spans = b"", list[Span]()
        while len(spans) < 2:
            sent += (body := bodies.get(timeout=60))
            (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
            named = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert named["service.name"] == "dragoman"
            every = (span for scope in resource.scope_spans for span in scope.spans)
            spans += [span for span in every if span.parent_span_id.hex() == PARENT]
    refused, answered = sorted(spans, key=lambda span: span.start_time_unix_nano)
    assert [refused.name, answered.name] == ["POST /translate", "POST /v1/translate"]
    assert {refused.trace_id.hex(), answered.trace_id.hex()} == {TRACE}
    assert answered.kind == Span.SPAN_KIND_SERVER
    assert 0 < answered.end_time_unix_nano - answered.start_time_unix_nano < 60e9
    assert answered.status.code == refused.status.code == Status.STATUS_CODE_UNSET
    told = {each.key: each.value for each in answered.attributes}
    assert told["http.route"].string_value == "/v1/translate"
    assert told["http.response.status_code"].int_value == 200
    assert told["dragoman.model"].string_value == "en-zh"
    assert told["dragoman.tokens"].int_value > 0
    assert b"secret" not in sent


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """A collection of this process's spans, which are not sent."""
    kept = InMemorySpanExporter()
    monkeypatch.setattr(export, "BatchSpanProcessor", lambda _: export.SimpleSpanProcessor(kept))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    return kept


def record(outcome: str, status: int) -> None:
    """Record the span of one request."""
    send = tracing.open_tracing()
    assert send is not None
    fields = {"path": "/v1/translate", "status": status, "seconds": 0.1, "outcome": outcome}
    send({"method": "POST", "headers": []}, fields, 0.1)


def test_the_environment_names_the_service(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either variable of the SDK names it; OTEL_SERVICE_NAME takes precedence."""
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=x")
    record("answered", 200)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "own")
    record("answered", 200)
    names = [each.resource.attributes["service.name"] for each in spans.get_finished_spans()]
    assert names == ["mine", "own"]


def test_a_client_that_left_was_sent_no_status(spans: InMemorySpanExporter) -> None:
    """The attribute is absent, since 0 is not a status."""
    record("gone", 0)
    (span,) = spans.get_finished_spans()
    assert span.attributes is not None
    assert "http.response.status_code" not in span.attributes
    assert span.attributes["dragoman.outcome"] == "gone"


def test_warnings_of_the_sdk_are_lines_of_the_log(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are JSON, for example if the collector is unreachable, without plain text."""
    monkeypatch.setattr(logging.getLogger("opentelemetry"), "handlers", [])
    record("answered", 200)
    assert spans.get_finished_spans()
    try:
        raise ConnectionError("refused")
    except ConnectionError:
        logging.getLogger("opentelemetry.sdk").exception("Not %s.", "sent")
    warning, failure = map(json.loads, capsys.readouterr().err.splitlines())
    assert (warning["event"], warning["level"]) == ("tracing", "error")
    assert warning["message"] == "Not sent."
    assert (failure["event"], failure["error"]) == ("failure", "ConnectionError")


def test_nothing_is_sent_unless_a_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would otherwise send to a default port on this machine."""
    for name in tracing.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert tracing.open_tracing() is None


def test_a_variable_that_the_sdk_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one sentence."""
    monkeypatch.setenv(tracing.VARIABLES[0], "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    with pytest.raises(InputError, match=r"set up \(schedule_delay_millis must be positive"):
        tracing.open_tracing()


def test_a_missing_sdk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable that requires it, and how to install it."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
    message = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, but OpenTelemetry is not installed; in a"
    with pytest.raises(InputError, match=message):
        tracing.open_tracing()


def test_warnings_are_lines_of_the_log(
    translator_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those during startup, such as for a key file that others can read."""
    (file := tmp_path / "keys").write_text("k")
    file.chmod(0o644)
    keys = ApiKeys.read(file)
    monkeypatch.setattr(service, "open_tracing", lambda: warnings.warn("slow here", stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with serving(translator_folder, keys=keys) as live:
            warnings.warn("this is zero-shot", stacklevel=1)
    lines = [*map(json.loads, live.log.getvalue().splitlines())]
    found = [(one["level"], one["message"]) for one in lines if one["event"] == "warning"]
    assert found.pop(0) == (
        "warning",
        f"{file} can be read by other users of this machine; run chmod 600 on it.",
    )
    assert found == [("warning", "slow here"), ("warning", "this is zero-shot")]
