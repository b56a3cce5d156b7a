"""What a model does with a text, for the page: the search, and the attention of every head."""

from typing import Any

import msgspec
from starlette.responses import Response

from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.serve.endpoints import Endpoint
from dragoman.serve.refusals import Refusal
from dragoman.serve.v1 import V1
from dragoman.serve.web import Call, json_response
from dragoman.tasks.folders import read_folder
from dragoman.wording import format_bytes

LARGEST = 1 << 30
"""Bytes of the weights that are read a second time for an inspection: decoding has its own form."""


class InspectForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A text that a translator of one pair of languages translates."""

    text: str
    model: str | None = None
    src_lang: str | None = None
    tgt_lang: str | None = None


class InspectAnswer(msgspec.Struct):
    """What `dragoman inspect --json` writes."""

    model: str
    inspection: dict[str, Any]


async def inspect(call: Call) -> Response:
    """Return what a translator does with a text."""
    form = await call.json(InspectForm)
    service = call.service
    service.accept(call, [form.text])
    served, _ = service.shelf.choose(form.model, form.src_lang, form.tgt_lang)
    if served.languages or served.bytes > LARGEST:
        why = "has several languages" if served.languages else f"takes {format_bytes(served.bytes)}"
        raise Refusal(
            400,
            f"The model {served.name} {why}, so that its inside is not shown here.",
            "Use dragoman inspect.",
            where="model",
        )

    def look() -> list[dict[str, Any]]:
        folder = read_folder(served.path, device="cpu")
        return [inspect_folder(folder, form.text, Choices()).to_dict()]

    async with service.lease(call, served, 1):
        (found,) = await service.step(call, [look], served.aside)
    inspection = found | {"model": served.name}
    return json_response({"model": served.name, "inspection": inspection})


ENDPOINT = Endpoint("POST", "/v1/inspect", inspect, InspectForm, InspectAnswer, dialect=V1)
