"""Completions as OpenAI's older clients request them: a decoder continues prompts."""

from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from dragoman.decoding import Decoding
from dragoman.serve.endpoints import Endpoint
from dragoman.serve.openai import OPENAI, Reply, answers, head_of, streamed, usage
from dragoman.serve.openai_fields import SamplingForm
from dragoman.serve.refusals import Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.schema import as_list
from dragoman.serve.web import Call
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.ids import Prompt


class CompletionForm(SamplingForm, kw_only=True, forbid_unknown_fields=True):
    """Prompts to continue or, with a suffix, to fill the gap behind."""

    prompt: str | Annotated[list[str], msgspec.Meta(min_length=1)]
    suffix: str | None = None
    echo: bool | None = None
    best_of: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None


class CompletionChoice(msgspec.Struct, kw_only=True):
    """One continuation."""

    text: str
    index: int
    logprobs: None = None
    finish_reason: Literal["stop", "length"]


class CompletionAnswer(msgspec.Struct):
    """Continuations that are not streamed, in the order of their prompts."""

    id: str
    object: str
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: dict[str, int]


async def completions(call: Call, form: CompletionForm) -> Response:
    """Continue prompts."""
    texts = as_list(form.prompt)
    served = call.service.shelf.find(form.model, "generate")
    if form.echo:
        raise Refusal(
            400, "This server does not repeat the prompt.", "Leave out echo.", where="echo"
        )

    def asking(generator: Generator, options: Decoding) -> list[Prompt]:
        return [generator.prompt(text, options, form.suffix or None) for text in texts]

    suffixes = [form.suffix or ""] * len(texts)
    answer = answers(call, form, served, texts, asking, beside=suffixes)
    head = head_of(form, "cmpl", "text_completion")
    if form.stream:
        if len(texts) > 1:
            raise Refusal(400, "Only one prompt can be streamed.", "Send one.", where="prompt")
        return await streamed(call, answer, form, head, piece)
    replies = [each async for each in answer if isinstance(each, Reply)]
    choices = [
        CompletionChoice(text=each.text, index=number, finish_reason=each.finish_reason)
        for number, each in enumerate(replies)
    ]
    return json_response(head | {"choices": choices, "usage": usage(replies, form)})


def piece(text: str | None, *, first: bool) -> dict[str, Any]:  # noqa: ARG001 -- as `delta`
    """Return a piece of a continuation; its end (None) is empty."""
    return {"text": text or "", "logprobs": None}


ENDPOINTS = (
    Endpoint(
        "POST", "/v1/completions", completions, CompletionForm, CompletionAnswer, dialect=OPENAI
    ),
)
