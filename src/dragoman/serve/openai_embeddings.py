"""Embeddings as OpenAI's clients request them."""

from base64 import b64encode
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from dragoman.serve.endpoints import Endpoint
from dragoman.serve.openai import OPENAI
from dragoman.serve.openai_fields import Count
from dragoman.serve.refusals import Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.schema import as_list
from dragoman.serve.web import Call
from dragoman.serve.work import BATCH_TOKENS


class EmbeddingsForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts to embed."""

    model: str
    input: str | Annotated[list[str], msgspec.Meta(min_length=1)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Count | None = None
    user: str | None = None


class VectorAnswer(msgspec.Struct):
    """The vector of a text: numbers, or the bytes of float32 in base64."""

    index: int
    embedding: list[float | None] | str
    object: Literal["embedding"] = "embedding"


class EmbeddingsAnswer(msgspec.Struct):
    """The vectors of texts."""

    data: list[VectorAnswer]
    model: str
    usage: dict[str, int]
    object: Literal["list"] = "list"


async def embeddings(call: Call, form: EmbeddingsForm) -> Response:
    """Embed texts."""
    service, texts = call.service, as_list(form.input)
    service.accept(call, texts)
    served = service.shelf.find(form.model, "embed")
    async with service.lease(call, served, len(texts)) as reader:
        if form.dimensions not in {None, reader.dim}:
            what = f"The vectors of {served.name} have {reader.dim} dimensions."
            raise Refusal(400, what, "Ask for as many, or leave it out.", where="dimensions")
        read = await service.in_thread(call, partial(reader.size, texts))
        found = await service.ask(
            call, reader.scheduler, lambda: reader.courses(texts, BATCH_TOKENS)
        )
    for number, each in enumerate(found, start=1):
        if each is None or "unreadable" in each.flags:
            what, status = f"Text {number} could not be embedded.", 500 if each is None else 400
            raise Refusal(status, what, "Leave it out.", where="input")
    vectors: list[Any] = [each.vector.astype("<f4") for each in found]
    if form.encoding_format == "base64":
        data = [b64encode(vector.tobytes()).decode() for vector in vectors]
    else:
        data = [vector.tolist() for vector in vectors]
    counts = {"prompt_tokens": read, "total_tokens": read}
    answers = [VectorAnswer(number, vector) for number, vector in enumerate(data)]
    return json_response(EmbeddingsAnswer(answers, served.name, counts))


ENDPOINTS = (
    Endpoint(
        "POST", "/v1/embeddings", embeddings, EmbeddingsForm, EmbeddingsAnswer, dialect=OPENAI
    ),
)
