"""The application on Ray Serve: replicas on many machines, with one service each.

    serve run dragoman.serve.ray:build models=/models/en-zh,/models/en-de replicas=4

The schedulers of a replica's models batch all requests that Ray sends it together, so `serve.batch`
is not needed. A client that disconnects is noticed as with uvicorn. With many models, each replica
loads those that are requested: a request with the header `serve_multiplexed_model_id` goes to a
replica that has its model in memory.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from ray import serve
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.errors import InputError
from dragoman.process import prepare_threads
from dragoman.serve.app import make_app
from dragoman.serve.models import WAITING
from dragoman.serve.service import Service
from dragoman.serve.settings import ApiKeys, ServeSettings

QUEUED = 256
"""Maximum requests that wait for a replica; more are refused (503)."""
MODELS = 16
"""Models per replica that Ray routes by; `max_memory` bounds what is loaded."""


@serve.ingress()
class TranslationReplica:
    """A service in a Ray process."""

    def __init__(self, settings: ServeSettings) -> None:
        """Open the folders. Raises InputError if no model can be used."""
        prepare_threads()
        self.service = Service(settings)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Return the application; Ray runs its lifespan, which loads the models."""
        return choosing(make_app(self.service), self.keep)

    @serve.multiplexed(max_num_models_per_replica=MODELS)  # type: ignore[untyped-decorator] # Ray's
    async def keep(self, name: str) -> str:
        """Load a model, which tells Ray that this replica has it."""
        served = self.service.shelf.models.get(name)
        if served is not None and served.usable and served.answering is None:
            await self.service.shelf.load(served)
        return name

    def check_health(self) -> None:
        """Raise InputError if no model can be used, so that Ray replaces the replica."""
        if not self.service.shelf.usable():
            raise InputError("No model can be used; the log of the replica says why.")


def choosing(app: Starlette, keep: Callable[[str], Awaitable[str]]) -> ASGIApp:
    """Return an application that first loads the model for which Ray chose the replica."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (name := serve.get_multiplexed_model_id()):
            await keep(name)
        await app(scope, receive, send)

    return answer


class RayOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of `build`, in addition to those in `SHARED`."""

    models: str
    """Model folders, separated by commas, at the same paths on every machine."""
    replicas: Annotated[int, msgspec.Meta(ge=1)] | Literal["auto"] = 1
    """Number of replicas; `auto` follows the number of requests."""
    cpus: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """CPUs per replica."""
    api_keys: str | None = None
    """File of API keys."""


SHARED = ("lazy", "max_memory", "queue_tokens", "deadline", "compute")
"""Further options, which are settings of `dragoman serve`; `max_memory` is in bytes."""


def build(given: Mapping[str, Any]) -> serve.Application:
    """Return the application for `serve run` and `serve deploy`, from options like `replicas=4`.

    Raises InputError for an option that is unknown or out of range.
    """
    shared = {name: value for name, value in given.items() if name in SHARED}
    own = {name: value for name, value in given.items() if name not in SHARED}
    try:
        options = msgspec.convert(own, RayOptions, strict=False)
        settings = msgspec.convert(shared, ServeSettings, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{error}; dragoman.serve.ray has the options.") from error
    models = tuple(map(Path, options.models.split(",")))
    keys = ApiKeys.read(Path(options.api_keys) if options.api_keys else None)
    deployment = serve.deployment(
        num_replicas=options.replicas,
        ray_actor_options={"num_cpus": options.cpus},
        max_ongoing_requests=WAITING,
        max_queued_requests=QUEUED,
    )
    settings = replace(settings, models=models, keys=keys, host="")  # Ray listens, under any name
    return deployment(TranslationReplica).bind(settings)
