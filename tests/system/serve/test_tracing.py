"""Spans of requests, as OpenTelemetry's SDK collects them."""

import json
import logging
import sys
import warnings
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, export
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.system.serve.live import serving, until

from dragoman.errors import InputError
from dragoman.serve import service, tracing
from dragoman.serve.settings import ApiKeys

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEXT = "the cat sees a secret"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """A collection of this process's spans, which are not sent."""
    kept = InMemorySpanExporter()

    def processor(exporter: OTLPSpanExporter) -> SpanProcessor:
        assert exporter._endpoint == "http://127.0.0.1:1/v1/traces"
        return export.SimpleSpanProcessor(kept)

    monkeypatch.setattr(export, "BatchSpanProcessor", processor)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    return kept


def test_a_span_for_each_request(translator_folder: Path, spans: InMemorySpanExporter) -> None:
    """It is a child of the caller's span, and has the fields of the log but no texts."""

    def children() -> list[ReadableSpan]:
        return [span for span in spans.get_finished_spans() if span.parent is not None]

    with serving(translator_folder) as live:
        parent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        assert live.post(f"/translate?q={TEXT.replace(' ', '%20')}", {}, parent).status == 400
        assert live.post("/v1/translate", {"text": TEXT}, parent).status == 200
        until(lambda: len(children()) == 2)
    refused, answered = sorted(children(), key=lambda span: span.start_time or 0)
    assert [refused.name, answered.name] == ["POST /translate", "POST /v1/translate"]
    for span in refused, answered:
        assert span.parent is not None
        assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
        assert span.status.status_code == StatusCode.UNSET
        assert span.resource.attributes["service.name"] == "dragoman"
        assert "secret" not in span.to_json()
    assert answered.kind == SpanKind.SERVER
    assert 0 < (answered.end_time or 0) - (answered.start_time or 0) < 60e9
    told = dict(answered.attributes or {})
    assert (told["http.route"], told["http.response.status_code"]) == ("/v1/translate", 200)
    assert told["dragoman.model"] == "en-zh"
    assert int(str(told["dragoman.tokens"])) > 0


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
