"""OpenTelemetry spans of requests, if the environment names a collector."""

import os
from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any

from starlette.types import Scope

from dragoman.errors import InputError, how_to_install
from dragoman.serve.metrics import log_library

VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Environment variables, one of which names the collector; the SDK reads its others itself."""

RecordSpan = Callable[[Scope, Mapping[str, Any], float], None]
"""Sends the span of a request, given its scope, the fields of its log line and its seconds."""


def open_tracing() -> RecordSpan | None:
    """Return a function that sends spans to the environment's collector; None without one.

    A span is the child of the one that the request's header `traceparent` names (W3C Trace
    Context). The SDK's warnings become lines of our log. Raises InputError if the SDK is not
    installed, or rejects a variable.
    """
    if not any(map(os.environ.get, VARIABLES)):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.propagate import extract
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode

        log_library("opentelemetry", "tracing")
        named_by_user = OTELResourceDetector().detect().attributes
        resource = Resource.create({"service.name": "dragoman", **named_by_user})
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ModuleNotFoundError as error:
        named, how = next(filter(os.environ.get, VARIABLES)), how_to_install("serve-otel")
        raise InputError(f"{named} is set, but OpenTelemetry is not installed; {how}.") from error
    except ValueError as error:  # in another variable; the imports read some
        raise InputError(f"OpenTelemetry cannot be set up ({error}); correct OTEL_*.") from error
    tracer = provider.get_tracer("dragoman")

    def record(scope: Scope, fields: Mapping[str, Any], seconds: float) -> None:
        end = time_ns()
        pairs = [(name.decode(), value.decode("latin-1")) for name, value in scope["headers"]]
        span = tracer.start_span(
            f"{scope['method']} {fields['path']}",
            context=extract(dict(pairs)),
            kind=SpanKind.SERVER,
            start_time=end - int(seconds * 1e9),
            attributes={
                "http.request.method": scope["method"],
                "http.route": fields["path"],
                **{f"dragoman.{key}": value for key, value in fields.items() if key not in KNOWN},
            },
        )
        if fields["status"]:  # 0 if the client has disconnected
            span.set_attribute("http.response.status_code", fields["status"])
        if fields["status"] >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)

    return record


KNOWN = {"path", "status", "seconds"}
"""Fields for which OpenTelemetry has its own names."""
