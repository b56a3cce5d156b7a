"""The ASGI application: the endpoints of all dialects and those for the operator."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.process import give_memory_back
from dragoman.serve import (
    deepl,
    deepl_glossaries,
    libretranslate,
    openai,
    openai_completions,
    openai_embeddings,
    page,
    v1,
)
from dragoman.serve.endpoints import Dialect, Endpoint
from dragoman.serve.metrics import log, write_log
from dragoman.serve.openapi import describe
from dragoman.serve.refusals import Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.service import Service
from dragoman.serve.web import BoundPath, Call

OPERATOR = Dialect(name="operator")


async def live(_call: Call) -> Response:
    """Report that the process is running."""
    return json_response({"status": "live"})


async def ready(call: Call) -> Response:
    """Report whether requests should be sent here."""
    if call.service.ready:
        return json_response({"status": "ready"})
    return json_response({"status": "draining" if call.service.draining else "loading"}, 503)


async def metrics(call: Call) -> Response:
    """Return the metrics for Prometheus."""
    return Response(call.service.metrics.text(), media_type="text/plain; version=0.0.4")


async def openapi(_call: Call) -> Response:
    """Describe all endpoints."""
    return json_response(describe(ENDPOINTS))


DIALECTS = {
    **dict.fromkeys(("/v2/", "/v3/"), deepl.DEEPL),
    **dict.fromkeys(
        ("/v1/chat/", "/v1/completions", "/v1/responses", "/v1/embeddings"), openai.OPENAI
    ),
}
"""Dialects by the beginnings of the paths that their clients request."""
_at = partial(Endpoint, "GET", dialect=OPERATOR, always=True)
TRIM = 10.0
"""Seconds between two calls of `give_memory_back`."""
ENDPOINTS: tuple[Endpoint, ...] = (
    _at("/health/live", live, open=True),
    _at("/health/ready", ready, open=True),
    _at("/metrics", metrics),
    _at("/openapi.json", openapi, open=True),
    *v1.ENDPOINTS,
    *libretranslate.ENDPOINTS,
    *deepl.ENDPOINTS,
    *deepl_glossaries.ENDPOINTS,
    *openai.ENDPOINTS,
    *openai_completions.ENDPOINTS,
    *openai_embeddings.ENDPOINTS,
)
"""All endpoints, in the order of the OpenAPI description."""


async def _trim() -> None:
    """Return freed memory to the system at intervals: batches of all sizes fragment it.

    Also write the log lines that a pipe did not take before.
    """
    while True:
        await asyncio.sleep(TRIM)
        write_log()
        await asyncio.to_thread(give_memory_back)


def make_app(service: Service) -> Starlette:
    """Return the application for a service; it loads the models in the background."""
    paths = dict[str, BoundPath]()
    for each in (*ENDPOINTS, *page.ENDPOINTS):
        paths.setdefault(each.path, BoundPath(service)).endpoints[each.method] = each

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        kept = service.shelf.load_all(), service.documents.keep(), _trim()
        tasks = [loop.create_task(each) for each in kept]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        service.close()

    async def on_error(request: Request, error: Exception) -> Response:
        """Answer a request for an unknown path, or with a method that the path does not have."""
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these)
        phrase = HTTPStatus(error.status_code).phrase
        allowed = (error.headers or {}).get("Allow")
        why = f"this path takes {allowed}." if allowed else "no such path."
        log("refused", {"status": error.status_code})  # a path may contain a text
        path = request.scope["path"]
        theirs = (each for start, each in DIALECTS.items() if path.startswith(start))
        dialect = next(theirs, OPERATOR)
        other = "; OpenAI's begin with /v1." if dialect is OPERATOR else "."
        refusal = Refusal(
            error.status_code,
            f"{phrase}: {why}",
            f"GET /openapi.json lists all paths{other}",
            where="path",
            headers=error.headers,
        )
        return dialect.error(refusal)

    origins = list(service.settings.cors)
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["retry-after"],
    )
    app = Starlette(
        routes=[
            Route(path.replace("{model}", "{model:path}"), each, methods=[*each.endpoints])
            for path, each in paths.items()
        ],
        middleware=[cors] if origins else [],
        exception_handlers={HTTPException: on_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app
